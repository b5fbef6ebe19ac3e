#include "kernels/simd/rows/convert.h"

#include <bit>
#include <vector>

#include <hwy/targets.h>

#include "kernels/simd/rows/half.h"
#include "kernels/simd/testing.h"

namespace npu::simd {
namespace {

// The value of half bits by definition.
double HalfValue(uint16_t h, int exponent_bits) {
  const int mantissa_bits = 15 - exponent_bits;
  const int exponent = h >> mantissa_bits & ((1 << exponent_bits) - 1), mantissa = h & ((1 << mantissa_bits) - 1);
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const double sign = h >> 15 ? -1 : 1;
  if (exponent == (1 << exponent_bits) - 1) return mantissa ? std::nan("") : sign * HUGE_VAL;
  if (exponent == 0) return sign * std::ldexp(mantissa, 1 - bias - mantissa_bits);
  return sign * std::ldexp(mantissa + (1 << mantissa_bits), exponent - bias - mantissa_bits);
}

class Conversions : public ::testing::TestWithParam<int64_t> {
 protected:
  void SetUp() override { hwy::SetSupportedTargetsForTest(GetParam()); hwy::GetChosenTarget().Update(hwy::SupportedTargets()); }
  void TearDown() override { hwy::SetSupportedTargetsForTest(0); hwy::GetChosenTarget().Update(hwy::SupportedTargets()); }
};

TEST_P(Conversions, EveryHalfWidensExactlyAndNarrowsBack) {
  std::vector<uint16_t> bits(65536), back(65536);
  std::vector<float> wide(65536);
  for (size_t i = 0; i < bits.size(); ++i) bits[i] = static_cast<uint16_t>(i);
  for (const DType t : {DType::f16, DType::bf16}) {
    Load(bits.data(), t, 1, 65536, wide.data());
    Write(wide.data(), 65536, back.data(), t, 1);
    for (size_t i = 0; i < bits.size(); ++i) {
      const double want = HalfValue(bits[i], t == DType::f16 ? 5 : 8);
      if (std::isnan(want)) {
        ASSERT_TRUE(std::isnan(wide[i])) << i;
        ASSERT_TRUE(std::isnan(HalfValue(back[i], t == DType::f16 ? 5 : 8))) << i;
      } else {
        ASSERT_EQ(static_cast<double>(wide[i]), want) << i;
        ASSERT_EQ(back[i], bits[i]) << i;
      }
    }
  }
}

TEST_P(Conversions, NarrowingRoundsToNearestEven) {
  std::mt19937 rng(Seed());
  std::vector<float> v;
  for (int i = 0; i < 4099; ++i) {
    v.push_back(std::bit_cast<float>(static_cast<uint32_t>(rng())));
    v.push_back(std::ldexp(static_cast<float>(rng() % 4096) + 0.5f, static_cast<int>(rng() % 48) - 36));
  }
  for (const float f : {65504.f, 65519.9f, 65520.f, 65536.f, 0x1p-24f, 0x1p-25f, 0x1.8p-25f, 3.4e38f, -0.f}) v.push_back(f);
  std::vector<uint16_t> got(v.size());
  for (const DType t : {DType::f16, DType::bf16}) {
    Write(v.data(), static_cast<int64_t>(v.size()), got.data(), t, 1);
    for (size_t i = 0; i < v.size(); ++i) {
      const uint16_t want = t == DType::f16 ? F16FromF32(v[i]) : Bf16FromF32(v[i]);
      if (std::isnan(v[i])) {
        ASSERT_TRUE(std::isnan(HalfValue(got[i], t == DType::f16 ? 5 : 8)));
        continue;
      }
      ASSERT_EQ(got[i], want) << v[i];
      // Nearest: neither neighbour is closer; even on a tie.
      const int e = t == DType::f16 ? 5 : 8;
      const double value = HalfValue(got[i], e);
      if (std::isinf(value)) continue;
      for (const int step : {-1, 1}) {
        const double other = HalfValue(static_cast<uint16_t>(got[i] + step), e);
        if (std::isnan(other) || std::isinf(other) || (got[i] & 0x7fff) == 0) continue;
        const double mine = std::fabs(value - v[i]), theirs = std::fabs(other - v[i]);
        ASSERT_TRUE(mine < theirs || (mine == theirs && got[i] % 2 == 0)) << v[i];
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(EveryTarget, Conversions, ::testing::ValuesIn([] {
                           std::vector<int64_t> targets;
                           for (int64_t bits = hwy::SupportedTargets() & HWY_TARGETS; bits != 0; bits &= bits - 1) targets.push_back(bits & -bits);
                           return targets;
                         }()),
                         [](const auto& tested) { return std::string(hwy::TargetName(tested.param)); });

}  // namespace
}  // namespace npu::simd
