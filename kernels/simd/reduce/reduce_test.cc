#include "kernels/simd/reduce/reduce.h"

#include <limits>

#include "kernels/simd/testing.h"

namespace npu::simd {
namespace {

// The reduced values of each kept position, in row-major order.
std::vector<std::vector<double>> Groups(const std::vector<int64_t>& shape, uint32_t dims, const std::vector<double>& v) {
  int64_t kept = 1;
  for (size_t d = 0; d < shape.size(); ++d) kept *= dims >> d & 1u ? 1 : shape[d];
  std::vector<std::vector<double>> groups(static_cast<size_t>(kept));
  for (size_t i = 0; i < v.size(); ++i) {
    auto rest = static_cast<int64_t>(i);
    int64_t k = 0, scale = 1;
    for (size_t d = shape.size(); d-- > 0;) {
      const int64_t at = rest % shape[d];
      rest /= shape[d];
      if (dims >> d & 1u) continue;
      k += at * scale;
      scale *= shape[d];
    }
    groups[static_cast<size_t>(k)].push_back(v[i]);
  }
  return groups;
}

std::vector<int64_t> KeptShape(std::vector<int64_t> shape, uint32_t dims) {
  for (size_t d = 0; d < shape.size(); ++d) shape[d] = dims >> d & 1u ? 1 : shape[d];
  return shape;
}

struct Case {
  DType type;
  std::vector<int64_t> shape;
  uint32_t dims;
  std::vector<int> order;
  int64_t gap;
};

std::vector<Case> Cases() {
  std::vector<Case> cases;
  for (const DType t : {DType::f32, DType::f16, DType::bf16, DType::f64}) {
    cases.push_back({t, {7}, 1, {}, 0});
    cases.push_back({t, {3, 5, 17}, 0b100, {}, 0});
    cases.push_back({t, {3, 5, 17}, 0b010, {}, 0});
    cases.push_back({t, {3, 5, 17}, 0b101, {}, 3});
    cases.push_back({t, {33, 70}, 0b10, {1, 0}, 0});
    cases.push_back({t, {70, 1100}, 0b01, {}, 0});
    cases.push_back({t, {300, 700}, 0b11, {}, 0});
    cases.push_back({t, {2, 3, 4, 5}, 0b1010, {3, 1, 0, 2}, 1});
    cases.push_back({t, {70000}, 1, {}, 0});
    cases.push_back({t, {5000, 40}, 0b01, {}, 0});
  }
  return cases;
}

TEST(Reduce, SumsMeansAndExtremesAgreeWithPlainLoops) {
  std::mt19937 rng(Seed());
  for (const Case& c : Cases()) {
    const TestTensor x(c.type, c.shape, c.order, c.gap);
    const auto groups = Groups(c.shape, c.dims, x.Random(rng));
    const TestTensor out(c.type, KeptShape(c.shape, c.dims)), again(c.type, KeptShape(c.shape, c.dims));
    SerialParallel serial;
    ReverseParallel reverse;
    std::vector<double> sum, abs_sum, mean, top, norm;
    for (const auto& g : groups) {
      double s = 0, a = 0, q = 0, m = -std::numeric_limits<double>::infinity();
      for (const double v : g) s += v, a += std::fabs(v), q += v * v, m = std::max(m, v);
      sum.push_back(s);
      abs_sum.push_back(a);
      mean.push_back(s / static_cast<double>(g.size()));
      top.push_back(m);
      norm.push_back(std::sqrt(q));
    }
    const double eps = Epsilon(c.type), size = *std::max_element(abs_sum.begin(), abs_sum.end());
    Sum(*x, c.dims, *out, serial);
    ExpectClose(out.Get(), sum, eps, size * 0x1p-20, "sum");
    Sum(*x, c.dims, *again, reverse);
    EXPECT_EQ(out.Get(), again.Get()) << "the order of blocks must not matter";
    Mean(*x, c.dims, *out, serial);
    ExpectClose(out.Get(), mean, eps, size * 0x1p-20 / static_cast<double>(groups[0].size()), "mean");
    Max(*x, c.dims, *out, serial);
    ExpectClose(out.Get(), top, 0, 0, "max");
    Norm(*x, c.dims, 2, *out, serial);
    ExpectClose(out.Get(), norm, eps * 4 + 0x1p-22, 0, "norm");
    Norm(*x, c.dims, 3, *again, reverse);
    Norm(*x, c.dims, 3, *out, serial);
    EXPECT_EQ(out.Get(), again.Get());
  }
}

TEST(Reduce, VarianceSurvivesALargeMean) {
  std::mt19937 rng(Seed());
  const TestTensor x(DType::f32, {4, 3000});
  std::vector<double> v(12000);
  std::normal_distribution<double> n(1000, 0.5);
  for (double& e : v) e = n(rng);
  x.Set(v);
  v = x.Get();
  const TestTensor var(DType::f32, {4}), mean(DType::f32, {4});
  SerialParallel serial;
  Variance(*x, Dims(1), 1, false, var.get(), mean.get(), serial);
  std::vector<double> want_var, want_mean;
  for (const auto& g : Groups({4, 3000}, Dims(1), v)) {
    const double m = std::accumulate(g.begin(), g.end(), 0.0) / 3000;
    double s = 0;
    for (const double e : g) s += (e - m) * (e - m);
    want_mean.push_back(m);
    want_var.push_back(s / 2999);
  }
  ExpectClose(mean.Get(), want_mean, 0x1p-23, 0, "mean");
  ExpectClose(var.Get(), want_var, 0x1p-20, 0, "var");
}

TEST(Reduce, IntegersAreExactAndWiden) {
  std::mt19937 rng(Seed());
  for (const DType t : {DType::i8, DType::u8, DType::i32, DType::i64, DType::b8}) {
    const TestTensor x(t, {6, 700});
    const auto groups = Groups({6, 700}, Dims(1), x.Random(rng, 0, t == DType::b8 ? 2 : 100));
    const TestTensor out(DType::i64, {6}), flag(DType::b8, {6});
    SerialParallel serial;
    Sum(*x, Dims(1), *out, serial);
    Any(*x, Dims(1), *flag, serial);
    for (size_t k = 0; k < 6; ++k) {
      EXPECT_EQ(out.Get()[k], std::accumulate(groups[k].begin(), groups[k].end(), 0.0));
      EXPECT_EQ(flag.Get()[k], std::any_of(groups[k].begin(), groups[k].end(), [](double v) { return v != 0; }));
    }
  }
}

TEST(Reduce, NanWinsAndEmptyGivesTheIdentity) {
  SerialParallel serial;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const size_t at : {0u, 3u, 36u}) {
    const TestTensor x(DType::f32, {37}), out(DType::f32, {}), where(DType::i64, {});
    std::vector<double> v(37, 1.0);
    v[at] = nan;
    x.Set(v);
    Max(*x, 1, *out, serial);
    EXPECT_TRUE(std::isnan(out.Get()[0]));
    Extreme(*x, 0, true, out.get(), where.get(), serial);
    EXPECT_TRUE(std::isnan(out.Get()[0]));
    EXPECT_EQ(where.Get()[0], static_cast<double>(at));
    NanSum(*x, 1, *out, serial);
    EXPECT_EQ(out.Get()[0], 36);
  }
  const TestTensor none(DType::f32, {2, 0}), out(DType::f32, {2}), flag(DType::b8, {2});
  Sum(*none, Dims(1), *out, serial);
  EXPECT_EQ(out.Get(), (std::vector<double>{0, 0}));
  Prod(*none, Dims(1), *out, serial);
  EXPECT_EQ(out.Get(), (std::vector<double>{1, 1}));
  Mean(*none, Dims(1), *out, serial);
  EXPECT_TRUE(std::isnan(out.Get()[0]));
  All(*none, Dims(1), *flag, serial);
  EXPECT_EQ(flag.Get(), (std::vector<double>{1, 1}));
}

TEST(Reduce, ExtremesFindTheFirstPlace) {
  std::mt19937 rng(Seed());
  for (const DType t : {DType::f32, DType::bf16, DType::i64}) {
    for (const int dim : {0, 1, 2}) {
      const TestTensor x(t, {5, 130, 9});
      const auto v = x.Random(rng, -4, 4);
      std::vector<int64_t> shape{5, 130, 9};
      shape[static_cast<size_t>(dim)] = 1;
      const TestTensor value(t, shape), where(DType::i64, shape), again(DType::i64, shape);
      SerialParallel serial;
      ReverseParallel reverse;
      Extreme(*x, dim, false, value.get(), where.get(), serial);
      Extreme(*x, dim, false, value.get(), again.get(), reverse);
      EXPECT_EQ(where.Get(), again.Get());
      const auto groups = Groups({5, 130, 9}, Dims(dim), v);
      for (size_t k = 0; k < groups.size(); ++k) {
        const auto best = std::min_element(groups[k].begin(), groups[k].end());
        ASSERT_EQ(value.Get()[k], *best);
        ASSERT_EQ(where.Get()[k], static_cast<double>(best - groups[k].begin()));
      }
    }
  }
}

TEST(Reduce, LogSumExpDoesNotOverflow) {
  SerialParallel serial;
  const TestTensor x(DType::f32, {3, 2}), out(DType::f32, {3});
  const double inf = std::numeric_limits<double>::infinity();
  x.Set({1000, 1000, -inf, -inf, inf, 0});
  LogSumExp(*x, Dims(1), *out, serial);
  ExpectClose(out.Get(), {1000 + std::log(2.0), -inf, inf}, 0x1p-22, 0, "logsumexp");
}

}  // namespace
}  // namespace npu::simd
