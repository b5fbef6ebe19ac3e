#include "kernels/gemm/gemm.h"

#include <gtest/gtest.h>

#include <hwy/targets.h>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <thread>
#include <vector>

#include "kernels/gemm/half.h"
#include "kernels/gemm/micro.h"
#include "kernels/gemm/pairs.h"

namespace npu::gemm {
namespace {

// Blocks go to whichever thread is free, so a result that depends on who computes it would show.
class ThreadParallel final : public Parallel {
 public:
  explicit ThreadParallel(int workers) : workers_(workers) {}
  int Workers() const override { return workers_; }

 protected:
  void Run(int64_t n, int64_t grain, Block block, void* body) override {
    std::atomic<int64_t> next{0};
    auto work = [&] {
      for (int64_t i; (i = next.fetch_add(grain)) < n;) block(body, i, std::min(n, i + grain));
    };
    std::vector<std::thread> threads;
    for (int i = 1; i < workers_; ++i) threads.emplace_back(work);
    work();
    for (auto& t : threads) t.join();
  }

 private:
  int workers_;
};

uint32_t Seed() {
  static const uint32_t seed = [] {
    const uint32_t s = std::random_device()();
    std::printf("seed %u\n", s);
    return s;
  }();
  return seed;
}

double Read(const Operand& o, int64_t i, int64_t j, int64_t batch = 0) {
  const int64_t at = i * o.row + j * o.col + batch * o.batch[0];
  switch (o.dtype) {
    case DType::f32:
      return static_cast<float*>(o.data)[at];
    case DType::f64:
      return static_cast<double*>(o.data)[at];
    case DType::f16:
      return ToF32(static_cast<F16*>(o.data)[at]);
    case DType::bf16:
      return ToF32(static_cast<Bf16*>(o.data)[at]);
    case DType::i32:
      return static_cast<int32_t*>(o.data)[at];
    case DType::i64:
      return static_cast<double>(static_cast<int64_t*>(o.data)[at]);
    case DType::i8:
      return static_cast<int8_t*>(o.data)[at];
    default:
      ADD_FAILURE();
      return 0;
  }
}

// A matrix in memory of its own, between guard bytes, with the layout asked for.
struct Held {
  static constexpr size_t kGuard = 128;
  std::vector<unsigned char> bytes;
  Operand operand;

  enum Layout { kRows, kColumns, kPaddedRows, kPaddedColumns, kScattered };

  Held(DType type, int64_t batch, int64_t rows, int64_t cols, int layout, std::mt19937& random) {
    operand.dtype = type;
    const int64_t pad = 1 + static_cast<int64_t>(random() % 9);
    switch (layout) {
      case kRows:
        operand.row = cols, operand.col = 1;
        break;
      case kColumns:
        operand.row = 1, operand.col = rows;
        break;
      case kPaddedRows:
        operand.row = cols + pad, operand.col = 1;
        break;
      case kPaddedColumns:
        operand.row = 1, operand.col = rows + pad;
        break;
      default:
        operand.row = 2 * cols + pad, operand.col = 2;
        break;
    }
    const int64_t extent = rows == 0 || cols == 0 ? 0 : (rows - 1) * operand.row + (cols - 1) * operand.col + 1;
    operand.batch[0] = extent;
    bytes.assign(2 * kGuard + static_cast<size_t>(extent * batch * ItemSize(type)), 0xA5);
    operand.data = bytes.data() + kGuard;
    std::uniform_real_distribution<float> uniform(-2, 2);
    for (int64_t i = 0; i < extent * batch; ++i) {
      const float v = uniform(random);
      switch (type) {
        case DType::f32:
          static_cast<float*>(operand.data)[i] = v;
          break;
        case DType::f64:
          static_cast<double*>(operand.data)[i] = v;
          break;
        case DType::f16:
          static_cast<F16*>(operand.data)[i] = RoundTo<F16>(v);
          break;
        case DType::bf16:
          static_cast<Bf16*>(operand.data)[i] = RoundTo<Bf16>(v);
          break;
        case DType::i32:
          static_cast<int32_t*>(operand.data)[i] = static_cast<int32_t>(v * 9);
          break;
        case DType::i64:
          static_cast<int64_t*>(operand.data)[i] = static_cast<int64_t>(v * 9);
          break;
        default:
          static_cast<int8_t*>(operand.data)[i] = static_cast<int8_t>(v * 2);
          break;
      }
    }
  }
  bool GuardsHold() const {
    for (size_t i = 0; i < kGuard; ++i) {
      if (bytes[i] != 0xA5 || bytes[bytes.size() - 1 - i] != 0xA5) return false;
    }
    return true;
  }
};

struct Case {
  int64_t batch, m, n, k;
  int la, lb, lc;
  DType ta, tb, tc;
  double alpha, beta;

  std::string Print() const {
    return fmt::format("batch {} m {} n {} k {} layouts {} {} {} types {} {} {} alpha {} beta {}", batch, m, n, k, la,
                       lb, lc, Name(ta), Name(tb), Name(tc), alpha, beta);
  }
};

// Unit of the last place of the result type, relative.
double Epsilon(DType t) {
  return t == DType::f16    ? 0x1p-10
         : t == DType::bf16 ? 0x1p-7
         : t == DType::f32  ? 0x1p-23
         : t == DType::f64  ? 0x1p-52
                            : 0;
}

void Check(const Case& c, Parallel& parallel, std::mt19937& random) {
  SCOPED_TRACE(c.Print());
  Held a(c.ta, c.batch, c.m, c.k, c.la, random), b(c.tb, c.batch, c.k, c.n, c.lb, random),
      out(c.tc, c.batch, c.m, c.n, c.lc, random);
  Held before = out;
  before.operand.data = before.bytes.data() + Held::kGuard;
  Problem p{.m = c.m, .n = c.n, .k = c.k, .batch_rank = 1};
  p.batch_shape[0] = c.batch;
  p.a = a.operand, p.b = b.operand, p.c = out.operand;
  if (c.beta != 0) p.self = out.operand;  // in place, as aclnnInplaceAddmm
  p.alpha = c.alpha, p.beta = c.beta;
  ASSERT_TRUE(Gemm(parallel, p).ok());
  EXPECT_TRUE(out.GuardsHold());

  std::vector<bool> written(out.bytes.size(), false);
  const auto size = static_cast<size_t>(ItemSize(c.tc));
  for (int64_t x = 0; x < c.batch; ++x) {
    for (int64_t i = 0; i < c.m; ++i) {
      for (int64_t j = 0; j < c.n; ++j) {
        double sum = 0, magnitude = 0;
        for (int64_t q = 0; q < c.k; ++q) {
          const double term = Read(a.operand, i, q, x) * Read(b.operand, q, j, x);
          sum += term;
          magnitude += std::abs(term);
        }
        const double self = c.beta == 0 ? 0 : c.beta * Read(before.operand, i, j, x);
        const double want = c.alpha * sum + self;
        const double got = Read(out.operand, i, j, x);
        // One rounding to the result (by half a step of its own where a half is no longer normal), and at most k + 3
        // roundings of f32 (f64 for f64) on the way.
        const double work = c.tc == DType::f64 ? 0x1p-52 : IsInt(c.tc) ? 0 : 0x1p-23;
        const double bound = std::abs(want) * Epsilon(c.tc) * 0.51 + (c.tc == DType::f16 ? 0x1p-25 : 0) +
                             (std::abs(c.alpha) * magnitude + std::abs(self)) * work * static_cast<double>(c.k + 3);
        ASSERT_LE(std::abs(got - want), bound) << "at " << x << " " << i << " " << j << ": " << got << " for " << want;
        const auto at =
            Held::kGuard +
            static_cast<size_t>(i * out.operand.row + j * out.operand.col + x * out.operand.batch[0]) * size;
        for (size_t s = 0; s < size; ++s) written[at + s] = true;
      }
    }
  }
  for (size_t i = 0; i < out.bytes.size(); ++i) {
    if (!written[i]) {
      ASSERT_EQ(out.bytes[i], before.bytes[i]) << "byte " << i << " between the elements was changed";
    }
  }
}

// Every instruction set this machine has.
std::vector<int64_t> Targets() {
  std::vector<int64_t> out;
  const int64_t all = hwy::SupportedTargets();
  for (int64_t t : {HWY_SSE4, HWY_AVX2, HWY_AVX3, HWY_NEON}) {
    if (all & t) out.push_back(t);
  }
  return out;
}

class EveryTarget : public testing::TestWithParam<int64_t> {
 protected:
  void SetUp() override { UseTarget(GetParam()); }
  void TearDown() override { UseTarget(0); }
};
INSTANTIATE_TEST_SUITE_P(Gemm, EveryTarget, testing::ValuesIn(Targets()),
                         [](const auto& param) { return std::string(hwy::TargetName(param.param)); });

TEST_P(EveryTarget, RandomShapesAndLayouts) {
  std::mt19937 random(Seed());
  ThreadParallel parallel(3);
  auto below = [&](int64_t n) { return static_cast<int64_t>(random() % static_cast<uint64_t>(n)); };
  for (int round = 0; round < 150; ++round) {
    Case c{};
    c.batch = round % 5 == 0 ? 1 + below(4) : 1;
    const int64_t large = round % 10 == 0 ? 300 : 70;
    c.m = 1 + below(round % 3 == 0 ? 18 : large);
    c.n = 1 + below(round % 4 == 0 ? 18 : large);
    c.k = below(round % 6 == 0 ? 900 : large);
    c.la = static_cast<int>(below(5)), c.lb = static_cast<int>(below(5)), c.lc = static_cast<int>(below(5));
    const DType types[] = {DType::f32, DType::f16, DType::bf16};
    c.ta = types[below(3)], c.tb = types[below(3)], c.tc = types[below(3)];
    if (round % 2 == 0) c.ta = c.tb = c.tc = DType::f32;
    c.alpha = round % 7 == 0 ? 0.75 : 1;
    c.beta = round % 5 == 1 ? 1 : round % 5 == 2 ? -0.5 : 0;
    Check(c, parallel, random);
    if (HasFatalFailure()) return;
  }
}

TEST_P(EveryTarget, LargeEnoughToShareAndToBlock) {
  std::mt19937 random(Seed() + 1);
  ThreadParallel parallel(2);
  for (DType t : {DType::f32, DType::bf16}) {
    Check({1, 230, 190, 530, Held::kRows, Held::kRows, Held::kRows, t, t, t, 1, 1}, parallel, random);
    Check({1, 130, 410, 301, Held::kColumns, Held::kColumns, Held::kPaddedRows, t, t, t, 1, 0}, parallel, random);
    Check({1, 9, 1030, 517, Held::kRows, Held::kRows, Held::kRows, t, t, t, 1, 0}, parallel, random);
    Check({1, 5, 700, 1100, Held::kRows, Held::kColumns, Held::kRows, t, t, t, 1, 0}, parallel, random);
    Check({1, 640, 3, 400, Held::kRows, Held::kRows, Held::kRows, t, t, t, 1, 1}, parallel, random);
  }
}

TEST_P(EveryTarget, SameBitsForAnyNumberOfWorkers) {
  std::mt19937 random(Seed() + 2);
  struct Shape {
    int64_t m, n, k;
  };
  for (const Shape s : {Shape{257, 190, 610}, {65, 700, 300}, {4, 2000, 700}, {300, 2, 900}}) {
    Held a(DType::f32, 1, s.m, s.k, Held::kRows, random), b(DType::f32, 1, s.k, s.n, Held::kRows, random),
        c(DType::f32, 1, s.m, s.n, Held::kRows, random);
    Problem p{.m = s.m, .n = s.n, .k = s.k};
    p.a = a.operand, p.b = b.operand, p.c = c.operand;
    SerialParallel serial;
    ASSERT_TRUE(Gemm(serial, p).ok());
    const auto first = c.bytes;
    for (int workers : {2, 3, 7}) {
      ThreadParallel parallel(workers);
      ASSERT_TRUE(Gemm(parallel, p).ok());
      EXPECT_EQ(std::memcmp(first.data(), c.bytes.data(), first.size()), 0) << s.m << " " << s.n << " " << workers;
    }
  }
}

TEST_P(EveryTarget, NanAndInfinityGoWhereTheyBelong) {
  std::mt19937 random(Seed() + 3);
  SerialParallel serial;
  for (const int64_t m : {int64_t{3}, int64_t{40}}) {
    const int64_t n = 37, k = 29;
    Held a(DType::f32, 1, m, k, Held::kRows, random), b(DType::f32, 1, k, n, Held::kRows, random),
        c(DType::f32, 1, m, n, Held::kRows, random);
    const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
    static_cast<float*>(a.operand.data)[1 * k + 5] = nan;   // row 1
    static_cast<float*>(b.operand.data)[7 * n + 36] = inf;  // column 36, the sign by the row
    for (int64_t i = 0; i < m * n; ++i) static_cast<float*>(c.operand.data)[i] = nan;
    Problem p{.m = m, .n = n, .k = k};
    p.a = a.operand, p.b = b.operand, p.c = c.operand, p.self = c.operand;
    p.beta = 0;  // the NaN in self is not read
    ASSERT_TRUE(Gemm(serial, p).ok());
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        const double v = Read(c.operand, i, j);
        if (i == 1) {
          EXPECT_TRUE(std::isnan(v));
        } else if (j == 36) {
          EXPECT_TRUE(std::isinf(v)) << v;
        } else {
          EXPECT_TRUE(std::isfinite(v)) << i << " " << j;
        }
      }
    }
  }
}

// Every instruction set for pairs of bf16 this machine has.
std::vector<PairUnit> Units() {
  std::vector<PairUnit> out;
  for (PairUnit unit : {PairUnit::kDot, PairUnit::kTiles}) {
    if (unit <= PairUnitOfHost()) out.push_back(unit);
  }
  return out;
}

class EveryPairUnit : public testing::TestWithParam<PairUnit> {
 protected:
  void SetUp() override { LimitPairUnit(GetParam()); }
  void TearDown() override { LimitPairUnit(PairUnit::kTiles); }
};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(EveryPairUnit);
INSTANTIATE_TEST_SUITE_P(Gemm, EveryPairUnit, testing::ValuesIn(Units()),
                         [](const auto& param) { return param.param == PairUnit::kDot ? "Dots" : "Tiles"; });

TEST_P(EveryPairUnit, RandomShapesAndLayouts) {
  std::mt19937 random(Seed() + 6);
  ThreadParallel parallel(3);
  auto below = [&](int64_t n) { return static_cast<int64_t>(random() % static_cast<uint64_t>(n)); };
  for (int round = 0; round < 120; ++round) {
    Case c{};
    c.batch = round % 5 == 0 ? 1 + below(4) : 1;
    const int64_t large = round % 10 == 0 ? 300 : 90;
    c.m = 8 + below(large), c.n = 8 + below(large);
    c.k = below(round % 6 == 0 ? 900 : large);
    c.la = static_cast<int>(below(5)), c.lb = static_cast<int>(below(5)), c.lc = static_cast<int>(below(5));
    const DType types[] = {DType::f32, DType::f16, DType::bf16};
    c.ta = c.tb = DType::bf16, c.tc = round % 4 == 0 ? types[below(3)] : types[round % 2 * 2];
    c.alpha = round % 7 == 0 ? 0.75 : 1;
    c.beta = round % 5 == 1 ? 1 : round % 5 == 2 ? -0.5 : 0;
    Check(c, parallel, random);
    if (HasFatalFailure()) return;
  }
}

// More terms than one pass takes, and enough work to be shared.
TEST_P(EveryPairUnit, LongSumsAndLargeResults) {
  std::mt19937 random(Seed() + 7);
  ThreadParallel parallel(2);
  const DType half = DType::bf16;
  for (DType t : {DType::f32, DType::bf16}) {
    Check({1, 70, 50, 4100 + static_cast<int64_t>(random() % 5000), Held::kRows, Held::kRows, Held::kRows, half, half,
           t, 1, 1},
          parallel, random);
    Check({1, 330, 290, 530, Held::kColumns, Held::kColumns, Held::kPaddedRows, half, half, t, 1, 0}, parallel, random);
  }
}

TEST_P(EveryPairUnit, SameBitsForAnyNumberOfWorkers) {
  std::mt19937 random(Seed() + 8);
  Held a(DType::bf16, 1, 257, 5000, Held::kRows, random), b(DType::bf16, 1, 5000, 190, Held::kRows, random),
      c(DType::f32, 1, 257, 190, Held::kRows, random);
  Problem p{.m = 257, .n = 190, .k = 5000};
  p.a = a.operand, p.b = b.operand, p.c = c.operand;
  SerialParallel serial;
  ASSERT_TRUE(Gemm(serial, p).ok());
  const auto first = c.bytes;
  for (int workers : {2, 3, 7}) {
    ThreadParallel parallel(workers);
    ASSERT_TRUE(Gemm(parallel, p).ok());
    EXPECT_EQ(std::memcmp(first.data(), c.bytes.data(), first.size()), 0) << workers;
  }
}

// A bias is a row that serves every row of the result.
TEST_P(EveryPairUnit, AddsABiasOfAnyTypeAndRoundsOnce) {
  std::mt19937 random(Seed() + 9);
  SerialParallel serial;
  const int64_t m = 45, n = 51, k = 64;
  for (DType type : {DType::f32, DType::bf16, DType::f16}) {
    Held a(DType::bf16, 1, m, k, Held::kRows, random), b(DType::bf16, 1, k, n, Held::kColumns, random),
        c(DType::bf16, 1, m, n, Held::kRows, random), bias(type, 1, 1, n, Held::kRows, random);
    Problem p{.m = m, .n = n, .k = k};
    p.a = a.operand, p.b = b.operand, p.c = c.operand, p.self = bias.operand;
    p.self.row = 0;
    p.beta = 1;
    ASSERT_TRUE(Gemm(serial, p).ok());
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        double want = Read(bias.operand, 0, j), magnitude = std::abs(want);
        for (int64_t q = 0; q < k; ++q) {
          const double term = Read(a.operand, i, q) * Read(b.operand, q, j);
          want += term;
          magnitude += std::abs(term);
        }
        ASSERT_NEAR(Read(c.operand, i, j), want, std::abs(want) * 0x1p-8 * 1.01 + magnitude * 0x1p-23 * (k + 3.0));
      }
    }
  }
}

TEST_P(EveryPairUnit, NanAndInfinityGoWhereTheyBelong) {
  std::mt19937 random(Seed() + 10);
  SerialParallel serial;
  const int64_t m = 40, n = 37, k = 29;
  for (DType type : {DType::bf16, DType::f32}) {
    Held a(DType::bf16, 1, m, k, Held::kRows, random), b(DType::bf16, 1, k, n, Held::kRows, random),
        c(type, 1, m, n, Held::kRows, random);
    static_cast<Bf16*>(a.operand.data)[1 * k + 5] = {0x7FC0};   // NaN in row 1
    static_cast<Bf16*>(b.operand.data)[7 * n + 36] = {0x7F80};  // infinity in column 36
    Problem p{.m = m, .n = n, .k = k};
    p.a = a.operand, p.b = b.operand, p.c = c.operand;
    ASSERT_TRUE(Gemm(serial, p).ok());
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        const double v = Read(c.operand, i, j);
        EXPECT_TRUE(i == 1 ? std::isnan(v) : j == 36 ? std::isinf(v) : std::isfinite(v)) << i << " " << j << " " << v;
      }
    }
  }
}

TEST(Gemm, IntegersAndDoublesAreExact) {
  std::mt19937 random(Seed() + 4);
  ThreadParallel parallel(2);
  for (DType t : {DType::i32, DType::i64, DType::i8, DType::f64}) {
    Check({2, 17, 70, 23, Held::kRows, Held::kColumns, Held::kRows, t, t, t, 1, 0}, parallel, random);
    Check({1, 5, 9, 0, Held::kRows, Held::kRows, Held::kColumns, t, t, t, 2, 3}, parallel, random);
  }
}

TEST(Gemm, FoldsABatchOverOneMatrix) {
  std::mt19937 random(Seed() + 5);
  SerialParallel serial;
  const int64_t batch = 3, m = 11, n = 33, k = 20;
  Held a(DType::f32, batch, m, k, Held::kRows, random), b(DType::f32, 1, k, n, Held::kColumns, random),
      c(DType::f32, batch, m, n, Held::kRows, random);
  Problem p{.m = m, .n = n, .k = k, .batch_rank = 1};
  p.batch_shape[0] = batch;
  p.a = a.operand, p.b = b.operand, p.c = c.operand;
  p.b.batch[0] = 0;
  ASSERT_TRUE(Gemm(serial, p).ok());
  for (int64_t x = 0; x < batch; ++x) {
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        double want = 0;
        for (int64_t q = 0; q < k; ++q) want += Read(a.operand, i, q, x) * Read(b.operand, q, j);
        ASSERT_NEAR(Read(c.operand, i, j, x), want, 1e-4);
      }
    }
  }
}

TEST(Half, ScalarConversionsRoundToNearestEven) {
  for (uint32_t h = 0; h < 0x10000; ++h) {
    const F16 f{static_cast<uint16_t>(h)};
    const float v = ToF32(f);
    if (v != v) continue;
    ASSERT_EQ(RoundTo<F16>(v).bits, h);
    const float up = ToF32(F16{static_cast<uint16_t>(h + 1)});
    if ((h & 0x7FFF) < 0x7BFF) {  // halfway to the next one goes to the even one
      ASSERT_EQ(RoundTo<F16>((v + up) / 2).bits, (h & 1) ? h + 1 : h);
    }
  }
  EXPECT_EQ(RoundTo<F16>(65519.996f).bits, 0x7BFF);
  EXPECT_EQ(RoundTo<F16>(65520.0f).bits, 0x7C00);
  EXPECT_EQ(RoundTo<Bf16>(std::numeric_limits<float>::infinity()).bits, 0x7F80);
  EXPECT_EQ(RoundTo<Bf16>(3.0e38f * 1.13f).bits, 0x7F7F);
}

}  // namespace
}  // namespace npu::gemm
