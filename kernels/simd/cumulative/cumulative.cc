#include "kernels/simd/cumulative/cumulative.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>

#include "kernels/simd/copy/copy.h"
#include "kernels/simd/reduce/reduce.h"
#include "kernels/simd/rows/dense.h"
#include "kernels/simd/rows/for_rows.h"
#include "kernels/simd/rows/scratch.h"

namespace npu::simd {
namespace {

// Integers run in i64 when the result is an integer; all else in f64, which holds every input exactly enough to round once.
template <class Step>
void Run(const Tensor& x, int dim, const Tensor& out, Parallel& parallel, const Step& step) {
  Tensor parts;
  if (out.dtype != DType::b8 && RealView(x, &parts)) {  // torch drops the imaginary parts
    --parts.rank;
    return Run(parts, dim, out, parallel, step);
  }
  if (ConvertsFirst(x.dtype, out.dtype)) {
    Copy(x, out, parallel);
    return Run(out, dim, out, parallel, step);
  }
  const auto run = [&]<class C, class A>(C, A) {
    ForRows<C, 1>({&x}, dim, out, parallel, [&](const C* const* in, C* to, int64_t n) {
      if (n == 0) return;
      A acc = in[0][0];
      to[0] = static_cast<C>(acc);
      for (int64_t i = 1; i < n; ++i) {
        acc = step(acc, static_cast<A>(in[0][i]));
        to[i] = static_cast<C>(acc);
      }
    });
  };
  if (!IsFloat(out.dtype)) run(int64_t{}, int64_t{});
  else if (out.dtype == DType::f64 || !IsFloat(x.dtype) || x.dtype == DType::f64) run(double{}, double{});
  else run(float{}, double{});
}

// Complex rows through pairs of f64.
template <class Step>
void RunComplex(const Tensor& x, int dim, const Tensor& out, const Step& step) {
  const int64_t n = x.Numel();
  if (n == 0) return;
  Scratch<double> pairs(2 * n);
  LoadPairs(x, pairs.data());
  auto* v = reinterpret_cast<std::complex<double>*>(pairs.data());
  const int64_t length = x.rank == 0 ? 1 : x.shape[static_cast<size_t>(dim)];
  int64_t inner = 1;
  for (int d = dim + 1; d < x.rank; ++d) inner *= x.shape[static_cast<size_t>(d)];
  for (int64_t i = 0; i < n; ++i) {
    if (i / inner % length != 0) v[i] = step(v[i - inner], v[i]);
  }
  StorePairs(pairs.data(), out);
}

}  // namespace

void CumSum(const Tensor& x, int dim, const Tensor& out, Parallel& parallel) {
  if (IsComplex(out.dtype)) return RunComplex(x, dim, out, [](auto a, auto b) { return a + b; });
  Run(x, dim, out, parallel, []<class C>(C a, C b) {
    if constexpr (std::is_integral_v<C>) return static_cast<C>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
    else return a + b;
  });
}
void CumProd(const Tensor& x, int dim, const Tensor& out, Parallel& parallel) {
  if (IsComplex(out.dtype)) return RunComplex(x, dim, out, [](auto a, auto b) { return a * b; });
  Run(x, dim, out, parallel, []<class C>(C a, C b) {
    if constexpr (std::is_integral_v<C>) return static_cast<C>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
    else return a * b;
  });
}
void LogCumSumExp(const Tensor& x, int dim, const Tensor& out, Parallel& parallel) {
  Run(x, dim, out, parallel, []<class C>(C a, C b) {
    const double low = static_cast<double>(std::min(a, b)), high = static_cast<double>(std::max(a, b));
    if (a != a || b != b) return static_cast<C>(a + b);
    if (std::isinf(high) && low == high) return static_cast<C>(high);
    return static_cast<C>(high + std::log1p(std::exp(low - high)));
  });
}

void CumExtreme(const Tensor& x, int dim, bool largest, const Tensor& values, const Tensor& indices, Parallel& parallel) {
  const auto run = [&]<class C>(C) {
    const auto follow = [largest](const C* in, int64_t n, C* best, int64_t* where) {
      for (int64_t i = 0, at = 0; i < n; ++i) {
        const C v = in[i], b = in[at];
        if (i == 0 || v != v || (b == b && (largest ? v >= b : v <= b))) at = i;
        if (best != nullptr) best[i] = in[at];
        if (where != nullptr) where[i] = at;
      }
    };
    ForRows<C, 1>({&x}, dim, values, parallel, [&](const C* const* in, C* to, int64_t n) { follow(in[0], n, to, nullptr); });
    ForRows<C, 1>({&x}, dim, indices, parallel, [&](const C* const* in, C* to, int64_t n) {
      Scratch<int64_t> where(n);
      follow(in[0], n, nullptr, where.data());
      // Positions are exact in f64 and i64.
      for (int64_t i = 0; i < n; ++i) to[i] = static_cast<C>(where[i]);
    });
  };
  if (IsFloat(x.dtype)) run(double{});
  else run(int64_t{});
}

}  // namespace npu::simd
