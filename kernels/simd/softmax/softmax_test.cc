#include "kernels/simd/softmax/softmax.h"

#include "kernels/simd/testing.h"

namespace npu::simd {
namespace {

// Rows along the middle dimension of [a, n, b].
void EachRow(int64_t a, int64_t n, int64_t b, const std::function<void(const std::function<size_t(int64_t)>&)>& f) {
  for (int64_t i = 0; i < a; ++i) {
    for (int64_t k = 0; k < b; ++k) f([=](int64_t j) { return static_cast<size_t>((i * n + j) * b + k); });
  }
}

TEST(Softmax, ForwardAndBackwardAgreeWithPlainLoops) {
  std::mt19937 rng(Seed());
  struct Shape { int64_t a, n, b; std::vector<int> order; };
  for (const DType t : {DType::f32, DType::f16, DType::bf16, DType::f64}) {
    for (const Shape& s : {Shape{3, 1, 1, {}}, Shape{5, 17, 1, {}}, Shape{2, 33, 19, {}}, Shape{3, 5000, 1, {}},
                           Shape{4, 65, 3, {1, 0, 2}}, Shape{2, 3, 40, {2, 0, 1}}}) {
      const std::vector<int64_t> shape{s.a, s.n, s.b};
      const TestTensor x(t, shape, s.order), g(t, shape), y(t, shape), dx(t, shape), again(t, shape);
      const auto xv = x.Random(rng, -8, 8), gv = g.Random(rng);
      SerialParallel serial;
      ReverseParallel reverse;
      for (const bool log : {false, true}) {
        std::vector<double> want(xv.size()), want_dx(xv.size());
        const double eps = Epsilon(t) + 0x1p-22;
        if (log) LogSoftmax(*x, 1, *y, serial), LogSoftmax(*x, 1, *again, reverse);
        else Softmax(*x, 1, *y, serial), Softmax(*x, 1, *again, reverse);
        EXPECT_EQ(y.Get(), again.Get());
        const auto yv = y.Get();
        EachRow(s.a, s.n, s.b, [&](const auto& at) {
          double top = -1e300, sum = 0, dot = 0, total = 0;
          for (int64_t j = 0; j < s.n; ++j) top = std::max(top, xv[at(j)]);
          for (int64_t j = 0; j < s.n; ++j) sum += std::exp(xv[at(j)] - top);
          for (int64_t j = 0; j < s.n; ++j) {
            want[at(j)] = log ? xv[at(j)] - top - std::log(sum) : std::exp(xv[at(j)] - top) / sum;
            dot += gv[at(j)] * yv[at(j)];
            total += gv[at(j)];
          }
          for (int64_t j = 0; j < s.n; ++j) {
            want_dx[at(j)] = log ? gv[at(j)] - std::exp(yv[at(j)]) * total : (gv[at(j)] - dot) * yv[at(j)];
          }
        });
        ExpectClose(yv, want, 4 * eps, log ? 16 * eps : 1e-7, log ? "log_softmax" : "softmax");
        if (log) LogSoftmaxBackward(*g, *y, 1, *dx, serial);
        else SoftmaxBackward(*g, *y, 1, *dx, serial);
        ExpectClose(dx.Get(), want_dx, 8 * eps, 1e-5, "gradient");
      }
    }
  }
}

TEST(Softmax, MaskedRowsAndNan) {
  SerialParallel serial;
  const double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  const TestTensor x(DType::f32, {3, 3}), y(DType::f32, {3, 3});
  x.Set({0, -inf, 0, -inf, -inf, -inf, 1, nan, 2});
  Softmax(*x, 1, *y, serial);
  ExpectClose(y.Get(), {0.5, 0, 0.5, nan, nan, nan, nan, nan, nan}, 0, 0, "softmax");
}

}  // namespace
}  // namespace npu::simd
