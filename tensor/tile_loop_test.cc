#include "tensor/tile_loop.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tensor/shape.h"

namespace npu {
namespace {

Tensor Make(std::initializer_list<int64_t> shape, std::initializer_list<int64_t> strides = {}) {
  Tensor t = MakeContiguous(nullptr, DType::f32, std::vector<int64_t>(shape));
  std::copy(strides.begin(), strides.end(), t.strides.begin());
  return t;
}

TEST(TileLoop, DenseTensorsAreOneRun) {
  const Tensor a = Make({4, 5, 6}), b = Make({4, 5, 6});
  const TileLoop loop({&a, &b});
  EXPECT_EQ(loop.rank(), 1);
  EXPECT_EQ(loop.inner(), 120);
  EXPECT_TRUE(loop.Flat(0, 4));
}

TEST(TileLoop, NumbersStandStillBesideARun) {
  const Tensor a = Make({4, 1, 6}), number = Make({}), one = Make({1, 1}), expanded = Make({4, 1, 6}, {0, 0, 0});
  const TileLoop loop({&a, &number, &a});
  EXPECT_EQ(loop.rank(), 1);
  EXPECT_EQ(loop.inner_stride(0), 4);
  EXPECT_EQ(loop.inner_stride(1), 0);
  EXPECT_EQ(TileLoop({&one, &number}).rank(), 0);
  EXPECT_EQ(TileLoop({&a, &expanded}).inner_stride(1), 0);
}

TEST(TileLoop, DimensionsPermutedAlikeAreOneRun) {
  const Tensor a = Make({4, 5, 6}, {1, 4, 20}), b = Make({4, 5, 6}, {1, 4, 20});
  EXPECT_EQ(TileLoop({&a, &b}).rank(), 1);
}

TEST(TileLoop, BroadcastRowsKeepTwoDimensions) {
  const Tensor out = Make({8, 5}), row = Make({5});
  const TileLoop loop({&out, &row});
  EXPECT_EQ(loop.rank(), 2);
  EXPECT_EQ(loop.inner(), 5);
  EXPECT_EQ(loop.Offset(3, 0), 3 * 5 * 4);
  EXPECT_EQ(loop.Offset(3, 1), 0);
}

TEST(TileLoop, EmptyAndZeroDimensional) {
  const Tensor empty = Make({3, 0}), point = Make({});
  EXPECT_EQ(TileLoop({&empty}).outer(), 0);
  EXPECT_EQ(TileLoop({&point}).inner(), 1);
  EXPECT_EQ(TileLoop({&point}).numel(), 1);
}

TEST(Shape, OverlapIsSameOrPartial) {
  float data[16] = {};
  Tensor a = MakeContiguous(data, DType::f32, std::vector<int64_t>{8});
  Tensor b = MakeContiguous(data + 1, DType::f32, std::vector<int64_t>{8});
  Tensor c = MakeContiguous(data + 8, DType::f32, std::vector<int64_t>{8});
  EXPECT_EQ(OverlapOf(a, a), Overlap::kSame);
  EXPECT_EQ(OverlapOf(a, b), Overlap::kPartial);
  EXPECT_EQ(OverlapOf(a, c), Overlap::kNone);
}

TEST(Shape, BroadcastNamesTheDimension) {
  Dims d = DimsOf(Make({2, 3}));
  int bad = -1;
  EXPECT_FALSE(BroadcastInto(&d, std::vector<int64_t>{4, 2, 5}, &bad));
  EXPECT_EQ(bad, 2);
  EXPECT_TRUE(BroadcastInto(&d, std::vector<int64_t>{4, 1, 3}, &bad));
  EXPECT_EQ(ShapeText(d.Span()), "[4, 2, 3]");
}

}  // namespace
}  // namespace npu
