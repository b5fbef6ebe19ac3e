#include "kernels/simd/reduce_into.h"

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

namespace npu::simd {
namespace {

// A model that shares nothing with the kernel: halves become doubles digit by digit, sums are made by float as
// promised.
double HalfValue(uint16_t h, int exponent_bits) {
  const int mantissa_bits = 15 - exponent_bits;
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = (h >> mantissa_bits) & ((1 << exponent_bits) - 1);
  const int mantissa = h & ((1 << mantissa_bits) - 1);
  const double sign = (h & 0x8000) != 0 ? -1 : 1;
  if (exponent == (1 << exponent_bits) - 1) return mantissa != 0 ? std::nan("") : sign * HUGE_VAL;
  if (exponent == 0) return sign * std::ldexp(mantissa, 1 - bias - mantissa_bits);
  return sign * std::ldexp(mantissa + (1 << mantissa_bits), exponent - bias - mantissa_bits);
}

// The nearest representable value by search over neighbours: for a finite `v` the candidates around a truncation.
uint16_t NearestHalf(double v, int exponent_bits) {
  const int mantissa_bits = 15 - exponent_bits;
  const uint16_t infinity = static_cast<uint16_t>(((1 << exponent_bits) - 1) << mantissa_bits);
  const uint16_t sign = std::signbit(v) ? 0x8000 : 0;
  if (std::isnan(v)) return static_cast<uint16_t>(infinity | 1);
  const double a = std::fabs(v);
  uint16_t low = 0, high = infinity;  // bit patterns of magnitudes are ordered as their values
  const auto value = [&](uint16_t h) {
    if (h == infinity) return std::ldexp(2.0, (1 << (exponent_bits - 1)) - 1);  // where rounding would carry to
    return HalfValue(h, exponent_bits);
  };
  while (high - low > 1) {
    const auto mid = static_cast<uint16_t>((low + high) / 2);
    (value(mid) <= a ? low : high) = mid;
  }
  if (std::isinf(a)) return static_cast<uint16_t>(sign | infinity);
  const double below = a - value(low), above = value(high) - a;
  const uint16_t nearest = below < above || (below == above && low % 2 == 0) ? low : high;
  return static_cast<uint16_t>(sign | nearest);
}

template <class T>
T Apply(ReduceOp op, T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    switch (op) {
      case ReduceOp::kSum:
        return a + b;
      case ReduceOp::kProd:
        return a * b;
      default:
        break;
    }
    if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<T>::quiet_NaN();
  } else {
    using U = std::make_unsigned_t<T>;
    switch (op) {
      case ReduceOp::kSum:
        return static_cast<T>(static_cast<U>(static_cast<U>(a) + static_cast<U>(b)));
      case ReduceOp::kProd:
        return static_cast<T>(static_cast<U>(static_cast<unsigned long long>(static_cast<U>(a)) * static_cast<U>(b)));
      default:
        break;
    }
  }
  if (op == ReduceOp::kMax) return a > b ? a : b;
  return a < b ? a : b;
}

class ReduceInto_ : public testing::TestWithParam<int64_t> {
 protected:
  void SetUp() override {
    seed_ = std::random_device()();
    rng_.seed(seed_);
    RecordProperty("seed", static_cast<int>(seed_));
    std::printf("seed %u\n", seed_);
    hwy::SetSupportedTargetsForTest(GetParam());
    // The dispatch table keeps its choice until it is told to look again.
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
  void TearDown() override {
    hwy::SetSupportedTargetsForTest(0);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }

  // Runs one case with guard bytes around every buffer, and hands (sources, result) by element to `check`.
  template <class T, class Fill, class Check>
  void Case(DType type, ReduceOp op, size_t n_srcs, size_t n_dsts, size_t count, size_t shift, bool in_place,
            Stores stores, Fill fill, Check check) {
    constexpr size_t kGuard = 64;
    const size_t bytes = count * sizeof(T);
    std::vector<std::vector<uint8_t>> memory(n_srcs + n_dsts);
    for (auto& m : memory) m.assign(bytes + 2 * kGuard + shift, 0xA5);
    std::vector<std::vector<T>> in(n_srcs, std::vector<T>(count));
    std::vector<const void*> srcs;
    std::vector<void*> dsts;
    for (size_t k = 0; k < n_srcs; ++k) {
      for (auto& x : in[k]) x = fill();
      uint8_t* at = memory[k].data() + kGuard + shift;
      if (bytes > 0) std::memcpy(at, in[k].data(), bytes);
      srcs.push_back(at);
    }
    for (size_t k = 0; k < n_dsts; ++k) {
      dsts.push_back(in_place && k < n_srcs ? const_cast<void*>(srcs[k]) : memory[n_srcs + k].data() + kGuard + shift);
    }
    ReduceInto({type, op}, srcs, dsts, count, stores);
    for (void* dst : dsts) {
      for (size_t i = 0; i < count; ++i) {
        std::vector<T> column;
        for (const auto& v : in) column.push_back(v[i]);
        T got;
        std::memcpy(&got, static_cast<uint8_t*>(dst) + i * sizeof(T), sizeof(T));
        check(column, got, i);
      }
    }
    for (const auto& m : memory) {
      for (size_t i = 0; i < kGuard; ++i) {
        ASSERT_EQ(m[i], 0xA5);
        ASSERT_EQ(m[m.size() - 1 - i], 0xA5);
      }
    }
  }

  template <class F>
  void Shapes(F&& f) {
    for (ReduceOp op : {ReduceOp::kSum, ReduceOp::kProd, ReduceOp::kMax, ReduceOp::kMin}) {
      for (size_t n : {1, 2, 3, 8}) {
        for (size_t count : {size_t{0}, size_t{1}, size_t{7}, size_t{33}, size_t{2049 + rng_() % 3000}}) {
          f(op, n, rng_() % 2 == 0 ? n : 1, count, rng_() % 9, rng_() % 3 == 0,
            rng_() % 2 == 0 ? Stores::kPlain : Stores::kStreaming);
        }
      }
    }
  }

  template <class T>
  void Plain(DType type) {
    Shapes([&](ReduceOp op, size_t n, size_t n_dsts, size_t count, size_t shift, bool in_place, Stores stores) {
      const auto fill = [&] {
        if constexpr (std::is_floating_point_v<T>) {
          return rng_() % 50 == 0 ? std::numeric_limits<T>::quiet_NaN()
                                  : static_cast<T>(static_cast<double>(rng_()) / 1e9 - 2);
        } else {
          return static_cast<T>((static_cast<uint64_t>(rng_()) << 32) | rng_());
        }
      };
      Case<T>(
          type, op, n, n_dsts, count, shift, in_place, stores, fill,
          [&](const std::vector<T>& column, T got, size_t i) {
            T want = column[0];
            for (size_t k = 1; k < column.size(); ++k) want = Apply(op, want, column[k]);
            if (want != want) {
              ASSERT_NE(got, got) << Name(type) << " op " << int(op) << " n " << n << " at " << i << " of " << count;
            } else {
              ASSERT_EQ(got, want) << Name(type) << " op " << int(op) << " n " << n << " at " << i << " of " << count;
            }
          });
    });
  }

  void Halves(DType type, int exponent_bits) {
    Shapes([&](ReduceOp op, size_t n, size_t n_dsts, size_t count, size_t shift, bool in_place, Stores stores) {
      const bool wild = rng_() % 2 == 0;  // any bit pattern, or values around one
      const auto fill = [&] {
        return wild ? static_cast<uint16_t>(rng_()) : NearestHalf(static_cast<double>(rng_()) / 1e9 - 2, exponent_bits);
      };
      Case<uint16_t>(type, op, n, n_dsts, count, shift, in_place, stores, fill,
                     [&](const std::vector<uint16_t>& column, uint16_t got, size_t i) {
                       float sum = static_cast<float>(HalfValue(column[0], exponent_bits));
                       for (size_t k = 1; k < column.size(); ++k)
                         sum = Apply(op, sum, static_cast<float>(HalfValue(column[k], exponent_bits)));
                       const uint16_t want = NearestHalf(sum, exponent_bits);
                       const double got_value = HalfValue(got, exponent_bits);
                       if (std::isnan(sum)) {
                         ASSERT_TRUE(std::isnan(got_value)) << Name(type) << " op " << int(op) << " at " << i;
                       } else if (op == ReduceOp::kMax || op == ReduceOp::kMin) {
                         ASSERT_EQ(got_value, HalfValue(want, exponent_bits))
                             << Name(type) << " op " << int(op) << " at " << i;  // of two zeros either
                       } else {
                         ASSERT_EQ(got, want) << Name(type) << " op " << int(op) << " of " << column.size() << " at "
                                              << i << ": " << sum;
                       }
                     });
    });
  }

  uint32_t seed_ = 0;
  std::mt19937 rng_;
};

TEST_P(ReduceInto_, AddsFloats) {
  Plain<float>(DType::f32);
  Plain<double>(DType::f64);
}
TEST_P(ReduceInto_, WrapsSignedIntegers) {
  Plain<int8_t>(DType::i8);
  Plain<int16_t>(DType::i16);
  Plain<int32_t>(DType::i32);
  Plain<int64_t>(DType::i64);
}
TEST_P(ReduceInto_, WrapsUnsignedIntegers) {
  Plain<uint8_t>(DType::u8);
  Plain<uint16_t>(DType::u16);
  Plain<uint32_t>(DType::u32);
  Plain<uint64_t>(DType::u64);
}
TEST_P(ReduceInto_, RoundsBf16Once) { Halves(DType::bf16, 8); }
TEST_P(ReduceInto_, RoundsF16Once) { Halves(DType::f16, 5); }

TEST_P(ReduceInto_, CopiesAnyLengthFromAnyAddress) {
  std::vector<uint8_t> from(70000), to(70200);
  for (auto& b : from) b = static_cast<uint8_t>(rng_());
  for (int round = 0; round < 50; ++round) {
    const size_t bytes = rng_() % 60000, a = rng_() % 100, b = 1 + rng_() % 100;
    std::fill(to.begin(), to.end(), 0xA5);
    CopyInto(from.data() + a, to.data() + b, bytes, round % 2 == 0 ? Stores::kStreaming : Stores::kPlain);
    ASSERT_EQ(std::memcmp(from.data() + a, to.data() + b, bytes), 0);
    ASSERT_EQ(to[b - 1], 0xA5);
    ASSERT_EQ(to[b + bytes], 0xA5);
  }
}

std::vector<int64_t> Targets() {
  std::vector<int64_t> targets;
  for (int64_t rest = hwy::SupportedTargets() & HWY_TARGETS; rest != 0; rest &= rest - 1)
    targets.push_back(rest & -rest);
  return targets;
}
INSTANTIATE_TEST_SUITE_P(Target, ReduceInto_, testing::ValuesIn(Targets()),
                         [](const auto& target) { return std::string(hwy::TargetName(target.param)); });

}  // namespace
}  // namespace npu::simd
