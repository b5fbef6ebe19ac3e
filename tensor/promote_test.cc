#include "tensor/promote.h"

#include <gtest/gtest.h>

namespace npu {
namespace {

DType Of(std::initializer_list<std::pair<DType, int>> tensors, std::initializer_list<Scalar> numbers = {}) {
  Promotion p;
  for (const auto& [t, rank] : tensors) p.AddTensor(t, rank);
  for (const Scalar& s : numbers) p.AddScalar(s);
  return p.Result();
}

TEST(Promote, TensorsOfOneRank) {
  EXPECT_EQ(Of({{DType::f16, 1}, {DType::bf16, 1}}), DType::f32);
  EXPECT_EQ(Of({{DType::i8, 1}, {DType::u8, 1}}), DType::i16);
  EXPECT_EQ(Of({{DType::i64, 1}, {DType::f16, 1}}), DType::f16);
  EXPECT_EQ(Of({{DType::b8, 1}, {DType::u8, 1}}), DType::u8);
  EXPECT_EQ(Of({{DType::c64, 1}, {DType::f64, 1}}), DType::c128);
  EXPECT_EQ(Of({{DType::u64, 1}, {DType::i32, 1}}), DType::none);
}

TEST(Promote, ZeroDimensionalTensorsOnlyRaiseTheKind) {
  EXPECT_EQ(Of({{DType::f16, 2}, {DType::f64, 0}}), DType::f16);
  EXPECT_EQ(Of({{DType::i32, 2}, {DType::f64, 0}}), DType::f64);
  EXPECT_EQ(Of({{DType::i8, 0}, {DType::i64, 0}}), DType::i64);
}

TEST(Promote, NumbersOnlyRaiseTheKindAndFloatsBecomeFloat32) {
  EXPECT_EQ(Of({{DType::bf16, 1}}, {Scalar::Of(2.5)}), DType::bf16);
  EXPECT_EQ(Of({{DType::i32, 1}}, {Scalar::Of(2.5)}), DType::f32);
  EXPECT_EQ(Of({{DType::b8, 1}}, {Scalar::Of(int64_t{2})}), DType::i64);
  EXPECT_EQ(Of({{DType::i8, 1}}, {Scalar::Of(int64_t{300})}), DType::i8);
}

TEST(Promote, CanCast) {
  EXPECT_TRUE(CanCast(DType::i64, DType::f16));
  EXPECT_FALSE(CanCast(DType::f32, DType::i64));
  EXPECT_FALSE(CanCast(DType::i32, DType::b8));
  EXPECT_FALSE(CanCast(DType::c64, DType::f64));
  EXPECT_TRUE(CanCast(DType::f64, DType::f16));
}

}  // namespace
}  // namespace npu
