#include "kernels/simd/norm/norm.h"

#include "kernels/simd/norm/batch_norm.h"
#include "kernels/simd/testing.h"

namespace npu::simd {
namespace {

TEST(LayerNorm, GradientsDoNotDependOnTheOrderOfBlocks) {
  std::mt19937 rng(Seed());
  for (const DType t : {DType::f32, DType::f16}) {
    const TestTensor x(t, {500, 257}), g(t, {500, 257}), w(t, {257}), b(t, {257}), y(t, {500, 257}), mean(DType::f32, {500}),
        rstd(DType::f32, {500});
    x.Random(rng), g.Random(rng), w.Random(rng), b.Random(rng);
    SerialParallel serial;
    ReverseParallel reverse;
    LayerNorm(*x, 257, w.get(), b.get(), 1e-5, *y, mean.get(), rstd.get(), serial);
    std::vector<std::vector<double>> results;
    for (Parallel* p : {static_cast<Parallel*>(&serial), static_cast<Parallel*>(&reverse)}) {
      const TestTensor dx(t, {500, 257}), dw(t, {257}), db(t, {257});
      LayerNormBackward(*g, *x, 257, *mean, *rstd, w.get(), dx.get(), dw.get(), db.get(), *p);
      results.push_back(dx.Get());
      results.push_back(dw.Get());
      results.push_back(db.Get());
    }
    for (size_t i = 0; i < 3; ++i) EXPECT_EQ(results[i], results[i + 3]);
    // Rows of y have the moments that w and b give them.
    const auto yv = y.Get(), wv = w.Get(), bv = b.Get();
    double s = 0, q = 0;
    for (size_t i = 0; i < 257; ++i) {
      const double h = (yv[i] - bv[i]) / wv[i];
      if (std::fabs(wv[i]) > 0.1) s += h, q += h * h;
    }
    EXPECT_NEAR(s / 257, 0, 0.3);
    EXPECT_NEAR(q / 257, 1, 0.3);
  }
}

// The gradient of a row of one element is g·w − mean(g·w): the same product twice. It is 0 where products are rounded before
// they are subtracted, and 1/sqrt(eps) times a rounding where a compiler joins them.
TEST(LayerNorm, GradientOfOneElementIsNothing) {
  std::mt19937 rng(Seed());
  for (const DType t : {DType::f32, DType::f64, DType::f16}) {
    const DType stat = t == DType::f64 ? t : DType::f32;
    const TestTensor x(t, {999, 1}), g(t, {999, 1}), w(t, {1}), y(t, {999, 1}), mean(stat, {999}), rstd(stat, {999}), dx(t, {999, 1});
    x.Random(rng), g.Random(rng), w.Random(rng), dx.Random(rng);
    SerialParallel serial;
    LayerNorm(*x, 1, w.get(), nullptr, 1e-5, *y, mean.get(), rstd.get(), serial);
    LayerNormBackward(*g, *x, 1, *mean, *rstd, w.get(), dx.get(), nullptr, nullptr, serial);
    for (const double v : dx.Get()) ASSERT_EQ(v, 0);
  }
}

TEST(BatchNorm, MomentsOfBothLayoutsAgree) {
  std::mt19937 rng(Seed());
  const TestTensor plain(DType::f32, {6, 19, 7, 5}), last(DType::f32, {6, 19, 7, 5}, {0, 2, 3, 1});
  const auto v = plain.Random(rng, 99, 101);
  last.Set(v);
  SerialParallel serial;
  Channels m1, v1, m2, v2;
  ChannelMoments(*plain, &m1, &v1, serial);
  ChannelMoments(*last, &m2, &v2, serial);
  for (size_t c = 0; c < 19; ++c) {
    double mean = 0, var = 0;
    for (size_t i = 0; i < v.size(); ++i) mean += i / 35 % 19 == c ? v[i] / 210 : 0;
    for (size_t i = 0; i < v.size(); ++i) var += i / 35 % 19 == c ? (v[i] - mean) * (v[i] - mean) / 210 : 0;
    EXPECT_NEAR(m1[c], mean, 1e-4);
    EXPECT_NEAR(m2[c], mean, 1e-4);
    EXPECT_NEAR(v1[c], var, 1e-4);
    EXPECT_NEAR(v2[c], var, 1e-4);
  }
}

}  // namespace
}  // namespace npu::simd
