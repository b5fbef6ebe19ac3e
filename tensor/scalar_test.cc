#include "tensor/scalar.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace npu {
namespace {

// All 65536 halves survive the way to float and back; NaN stays NaN.
TEST(Scalar, HalvesRoundTrip) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto h = static_cast<uint16_t>(bits);
    const float f = HalfToFloat(h);
    if (std::isnan(f)) EXPECT_TRUE(std::isnan(HalfToFloat(FloatToHalf(f))));
    else ASSERT_EQ(FloatToHalf(f), h) << bits;
    const float b = Bf16ToFloat(h);
    if (std::isnan(b)) EXPECT_TRUE(std::isnan(Bf16ToFloat(FloatToBf16(b))));
    else ASSERT_EQ(FloatToBf16(b), h) << bits;
  }
}

// Halfway between two neighbours goes to the even one.
TEST(Scalar, HalvesRoundToNearestEven) {
  for (uint32_t bits = 0; bits < 0x7bff; ++bits) {
    const auto low = static_cast<uint16_t>(bits);
    const float middle = (HalfToFloat(low) + HalfToFloat(static_cast<uint16_t>(low + 1))) / 2;
    ASSERT_EQ(FloatToHalf(middle), low % 2 == 0 ? low : low + 1) << bits;
    ASSERT_EQ(FloatToHalf(std::nextafter(middle, 1e9f)), low + 1) << bits;
    ASSERT_EQ(FloatToHalf(std::nextafter(middle, -1e9f)), low) << bits;
  }
  EXPECT_EQ(FloatToHalf(65520.0f), 0x7c00);
  EXPECT_EQ(FloatToHalf(65519.0f), 0x7bff);
}

TEST(Scalar, IntegersSaturate) {
  EXPECT_EQ(Scalar::Of(1e30).i, std::numeric_limits<int64_t>::max());
  EXPECT_EQ(Scalar::Of(std::nan("")).i, 0);
  EXPECT_EQ(Scalar::Of(-2.7).i, -2);
}

}  // namespace
}  // namespace npu
