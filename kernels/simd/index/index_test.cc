#include "kernels/simd/index/index.h"

#include "kernels/simd/testing.h"

namespace npu::simd {
namespace {

TEST(Index, RepeatedTargetsAddInOrderAndRoundOnce) {
  std::mt19937 rng(Seed());
  for (const DType t : {DType::f32, DType::bf16}) {
    const TestTensor table(t, {50, 33}), again(t, {50, 33}), source(t, {700, 33}, {1, 0}), index(DType::i64, {700});
    const auto before = table.Random(rng);
    again.Set(before);
    const auto added = source.Random(rng);
    const auto where = index.Random(rng, 0, 50);
    SerialParallel serial;
    ReverseParallel reverse;
    ASSERT_FALSE(IndexAdd(*table, 0, *index, *source, 1, serial));
    ASSERT_FALSE(IndexAdd(*again, 0, *index, *source, 1, reverse));
    EXPECT_EQ(table.Get(), again.Get());
    std::vector<double> want = before;
    for (size_t j = 0; j < where.size(); ++j) {
      for (size_t e = 0; e < 33; ++e) want[static_cast<size_t>(where[j]) * 33 + e] += added[j * 33 + e];
    }
    ExpectClose(table.Get(), want, Epsilon(t), 1e-4, "index_add");
  }
}

TEST(Index, BadIndicesAreReportedAndTouchNothingOutside) {
  SerialParallel serial;
  const TestTensor self(DType::f32, {4, 3}), out(DType::f32, {2, 3}), index(DType::i32, {2});
  self.Set(std::vector<double>(12, 1));
  for (const double bad : {4.0, -1.0, 1e9}) {
    index.Set({0, bad});
    const IndexResult got = IndexSelect(*self, 0, *index, *out, serial);
    ASSERT_TRUE(got);
    EXPECT_EQ(got->value, static_cast<int64_t>(bad));
    EXPECT_EQ(got->position, 1);
    EXPECT_EQ(got->size, 4);
  }
}

TEST(Index, NonzeroListsCoordinatesInOrder) {
  std::mt19937 rng(Seed());
  const TestTensor x(DType::i8, {7, 300, 11});
  const auto v = x.Random(rng, -1, 2);
  std::vector<int64_t> got(v.size() * 3), want;
  for (size_t i = 0; i < v.size(); ++i) {
    if (v[i] == 0) continue;
    for (const size_t c : {i / 3300, i / 11 % 300, i % 11}) want.push_back(static_cast<int64_t>(c));
  }
  ReverseParallel reverse;
  const int64_t count = Nonzero(*x, got.data(), false, reverse);
  got.resize(static_cast<size_t>(count) * 3);
  EXPECT_EQ(got, want);
}

}  // namespace
}  // namespace npu::simd
