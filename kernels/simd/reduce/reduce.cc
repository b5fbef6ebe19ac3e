#include "kernels/simd/reduce/reduce.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstddef>
#include <limits>

#include "kernels/simd/copy/copy.h"
#include "kernels/simd/rows/dense.h"
#include "kernels/simd/rows/scratch.h"
#include "kernels/simd/rows/walk.h"

namespace npu::simd {
namespace {

// Which type the elements are turned into before they are combined.
enum class Compute { f32, f64, i64 };
Compute ComputeFor(DType in, DType out) {
  if (IsInt(out) || out == DType::b8) return Compute::i64;
  if (out == DType::f64 || in == DType::f64 || !IsFloat(in)) return Compute::f64;
  return Compute::f32;
}
Compute ComputeOf(DType in) { return in == DType::f64 ? Compute::f64 : IsFloat(in) ? Compute::f32 : Compute::i64; }

template <class C, class F>
void FoldFinish(const Tensor& x, uint32_t dims, Fold fold, const Tensor& out, Parallel& parallel, const F& finish) {
  using A = typename AccumulatorOf<C>::Type;
  const int64_t n = KeptCount(x, dims);
  Scratch<A> acc(n);
  FoldTo<C>(x, dims, fold, nullptr, acc.data(), parallel);
  for (int64_t i = 0; i < n; ++i) acc[i] = static_cast<A>(finish(acc[i]));
  StoreDense(acc.data(), out);
}

template <class F>
void Dispatch(Compute compute, const Tensor& x, uint32_t dims, Fold fold, const Tensor& out, Parallel& parallel,
              const F& finish) {
  switch (compute) {
    case Compute::f32: return FoldFinish<float>(x, dims, fold, out, parallel, finish);
    case Compute::f64: return FoldFinish<double>(x, dims, fold, out, parallel, finish);
    case Compute::i64: return FoldFinish<int64_t>(x, dims, fold, out, parallel, finish);
  }
}

constexpr auto kAsIs = [](auto v) { return v; };

// A tensor in another type.
class Cast {
 public:
  Cast(const Tensor& x, DType type, Parallel& parallel) : memory_(x.Numel() * ItemSize(type)), tensor_(x) {
    tensor_.dtype = type;
    tensor_ = DenseLike(tensor_, memory_.data());
    Copy(x, tensor_, parallel);
  }
  const Tensor& operator*() const { return tensor_; }

 private:
  Scratch<std::byte> memory_;
  Tensor tensor_;
};

// |x|^p for orders that have no fold of their own.
void GeneralNorm(const Tensor& x, uint32_t dims, double p, const Tensor& out, Parallel& parallel) {
  // A copy in f64 with the power taken, then a sum. Rare orders may cost a pass more.
  const int64_t n = x.Numel();
  Scratch<double> powers(n);
  Walk<1> walk;
  for (int d = 0; d < x.rank; ++d) walk.Add(x.shape[static_cast<size_t>(d)], {x.strides[static_cast<size_t>(d)]});
  walk.Merge();
  const auto inner = walk.TakeInner();
  const int64_t rows = n == 0 ? 0 : walk.Count();
  double* to = powers.data();
  parallel.For(rows, RowsPerBlock(inner.size), [&](int64_t begin, int64_t end) {
    Walk<1> w = walk;
    w.Seek(begin);
    for (int64_t r = begin; r < end; ++r, w.Next()) {
      double* row = to + r * inner.size;
      Load(At(x.data, x.dtype, w.offset[0]), x.dtype, inner.stride[0], inner.size, row);
      for (int64_t i = 0; i < inner.size; ++i) row[i] = std::pow(std::fabs(row[i]), p);
    }
  });
  Tensor dense = x;
  dense.data = to;
  dense.dtype = DType::f64;
  int64_t stride = 1;
  for (int d = x.rank - 1; d >= 0; --d) {
    dense.strides[static_cast<size_t>(d)] = stride;
    stride *= x.shape[static_cast<size_t>(d)];
  }
  FoldFinish<double>(dense, dims, kSum, out, parallel, [p](double v) { return std::pow(v, 1 / p); });
}

}  // namespace

bool ConvertsFirst(DType from, DType to) {
  if (from == to) return false;
  return to == DType::b8 || IsHalf(to);
}

void Sum(const Tensor& x, uint32_t dims, const Tensor& out, Parallel& parallel) {
  Tensor rx, ro;
  if (RealView(out, &ro)) {
    if (RealView(x, &rx)) return Sum(rx, dims, ro, parallel);
    // A real sum in the real parts of a complex result.
    const uint64_t zero = 0;
    Fill(&zero, ro, parallel);
    --ro.rank;
    return Sum(x, dims, ro, parallel);
  }
  if (out.dtype != DType::b8 && RealView(x, &rx)) {
    // Converting to a real type drops the imaginary parts, as in torch.
    --rx.rank;
    return Sum(rx, dims, out, parallel);
  }
  if (ConvertsFirst(x.dtype, out.dtype)) return Sum(*Cast(x, out.dtype, parallel), dims, out, parallel);
  Dispatch(ComputeFor(x.dtype, out.dtype), x, dims, kSum, out, parallel, kAsIs);
}
void NanSum(const Tensor& x, uint32_t dims, const Tensor& out, Parallel& parallel) {
  if (ConvertsFirst(x.dtype, out.dtype)) return NanSum(*Cast(x, out.dtype, parallel), dims, out, parallel);
  Dispatch(ComputeFor(x.dtype, out.dtype), x, dims, kNanSum, out, parallel, kAsIs);
}
void Mean(const Tensor& x, uint32_t dims, const Tensor& out, Parallel& parallel) {
  Tensor rx, ro;
  if (RealView(out, &ro)) {
    if (RealView(x, &rx)) return Mean(rx, dims, ro, parallel);
    const uint64_t zero = 0;
    Fill(&zero, ro, parallel);
    --ro.rank;
    return Mean(x, dims, ro, parallel);
  }
  if (RealView(x, &rx)) {
    --rx.rank;
    return Mean(rx, dims, out, parallel);
  }
  if (ConvertsFirst(x.dtype, out.dtype)) return Mean(*Cast(x, out.dtype, parallel), dims, out, parallel);
  const double n = static_cast<double>(ReducedCount(x, dims));
  Dispatch(ComputeFor(x.dtype, out.dtype), x, dims, kSum, out, parallel, [n](auto v) { return static_cast<double>(v) / n; });
}
// The elements of each kept position, in row-major order, multiplied in double precision.
void ComplexProd(const Tensor& x, uint32_t dims, const Tensor& out, Parallel& parallel) {
  Walk<1> kept, reduced;
  const Cast wide(x, DType::c128, parallel);
  const Tensor& w = *wide;
  for (int d = 0; d < x.rank; ++d) {
    const auto i = static_cast<size_t>(d);
    (dims >> d & 1u ? reduced : kept).Add(w.shape[i], {w.strides[i]});
  }
  const int64_t n = KeptCount(x, dims), length = ReducedCount(x, dims);
  Scratch<std::complex<double>> products(n);
  const auto* from = w.As<const std::complex<double>>();
  parallel.For(n, RowsPerBlock(length), [&](int64_t begin, int64_t end) {
    Walk<1> k = kept, r = reduced;
    if (length > 0) k.Seek(begin);
    for (int64_t i = begin; i < end; ++i) {
      std::complex<double> v = 1;
      if (length > 0) r.Seek(0);
      for (int64_t j = 0; j < length; ++j, r.Next()) v *= from[k.offset[0] + r.offset[0]];
      products[i] = v;
      if (length > 0) k.Next();
    }
  });
  StorePairs(reinterpret_cast<const double*>(products.data()), out);
}

void Prod(const Tensor& x, uint32_t dims, const Tensor& out, Parallel& parallel) {
  if (IsComplex(out.dtype)) return ComplexProd(x, dims, out, parallel);
  Tensor parts;
  if (out.dtype != DType::b8 && RealView(x, &parts)) {
    // Converting to a real type drops the imaginary parts, as in torch.
    --parts.rank;
    return Prod(parts, dims, out, parallel);
  }
  if (ConvertsFirst(x.dtype, out.dtype)) return Prod(*Cast(x, out.dtype, parallel), dims, out, parallel);
  Dispatch(ComputeFor(x.dtype, out.dtype), x, dims, kProd, out, parallel, kAsIs);
}
void Max(const Tensor& x, uint32_t dims, const Tensor& out, Parallel& parallel) {
  Dispatch(ComputeOf(x.dtype), x, dims, kMax, out, parallel, kAsIs);
}
void Min(const Tensor& x, uint32_t dims, const Tensor& out, Parallel& parallel) {
  Dispatch(ComputeOf(x.dtype), x, dims, kMin, out, parallel, kAsIs);
}
void Any(const Tensor& x, uint32_t dims, const Tensor& out, Parallel& parallel) {
  Dispatch(ComputeOf(x.dtype), x, dims, kNonZero, out, parallel, [](auto v) { return v != 0 ? 1 : 0; });
}
void All(const Tensor& x, uint32_t dims, const Tensor& out, Parallel& parallel) {
  const auto n = ReducedCount(x, dims);
  Dispatch(ComputeOf(x.dtype), x, dims, kNonZero, out, parallel,
           [n](auto v) { return static_cast<int64_t>(v) == n ? 1 : 0; });
}
void CountNonZero(const Tensor& x, uint32_t dims, const Tensor& out, Parallel& parallel) {
  Dispatch(ComputeOf(x.dtype), x, dims, kNonZero, out, parallel, kAsIs);
}

void Norm(const Tensor& x, uint32_t dims, double p, const Tensor& out, Parallel& parallel) {
  if (IsComplex(x.dtype)) {  // of the absolute values
    const int64_t n = x.Numel();
    Scratch<double> pairs(2 * n);
    LoadPairs(x, pairs.data());
    for (int64_t i = 0; i < n; ++i) pairs[i] = std::hypot(pairs[2 * i], pairs[2 * i + 1]);
    Tensor sizes = x;
    sizes.dtype = DType::f64;
    return Norm(DenseLike(sizes, pairs.data()), dims, p, out, parallel);
  }
  const Compute c = ComputeFor(x.dtype, out.dtype);
  if (p == 0) return Dispatch(c, x, dims, kNonZero, out, parallel, kAsIs);
  if (p == 1) return Dispatch(c, x, dims, kSumAbs, out, parallel, kAsIs);
  if (p == std::numeric_limits<double>::infinity()) {
    if (ReducedCount(x, dims) == 0) return Dispatch(c, x, dims, kSum, out, parallel, kAsIs);
    return Dispatch(c, x, dims, kMaxAbs, out, parallel, kAsIs);
  }
  if (p == -std::numeric_limits<double>::infinity()) return Dispatch(c, x, dims, kMinAbs, out, parallel, kAsIs);
  if (p != 2) return GeneralNorm(x, dims, p, out, parallel);
  Dispatch(c, x, dims, kSumSquare, out, parallel, [](auto v) { return std::sqrt(static_cast<double>(v)); });
}

void LogSumExp(const Tensor& x, uint32_t dims, const Tensor& out, Parallel& parallel) {
  const int64_t n = KeptCount(x, dims);
  Scratch<double> top(n);
  Scratch<double> sum(n);
  const bool wide = ComputeFor(x.dtype, out.dtype) == Compute::f64;
  if (wide) FoldTo<double>(x, dims, kMax, nullptr, top.data(), parallel);
  else FoldTo<float>(x, dims, kMax, nullptr, top.data(), parallel);
  // An infinite maximum would make inf − inf; 0 keeps it: exp(inf) is inf and exp(−inf) is 0.
  for (int64_t i = 0; i < n; ++i) top[i] = std::isinf(top[i]) ? 0 : top[i];
  if (wide) FoldTo<double>(x, dims, kSumExp, top.data(), sum.data(), parallel);
  else FoldTo<float>(x, dims, kSumExp, top.data(), sum.data(), parallel);
  for (int64_t i = 0; i < n; ++i) sum[i] = std::log(sum[i]) + top[i];
  StoreDense(sum.data(), out);
}

void Variance(const Tensor& x, uint32_t dims, double correction, bool root, const Tensor* var, const Tensor* mean,
              Parallel& parallel) {
  const int64_t n = KeptCount(x, dims);
  const double count = static_cast<double>(ReducedCount(x, dims));
  Scratch<double> center(n);
  Scratch<double> square(n);
  const bool wide = ComputeOf(x.dtype) != Compute::f32;
  if (wide) FoldTo<double>(x, dims, kSum, nullptr, center.data(), parallel);
  else FoldTo<float>(x, dims, kSum, nullptr, center.data(), parallel);
  for (int64_t i = 0; i < n; ++i) center[i] /= count;
  if (mean != nullptr) StoreDense(center.data(), *mean);
  if (var == nullptr) return;
  if (wide) {
    FoldTo<double>(x, dims, kSumCentered, center.data(), square.data(), parallel);
  } else {
    // The pass subtracts the mean as f32. What that rounds away is put right here: Σ(x−m)² = Σ(x−m')² − n(m−m')².
    FoldTo<float>(x, dims, kSumCentered, center.data(), square.data(), parallel);
    for (int64_t i = 0; i < n; ++i) {
      const double off = center[i] - static_cast<double>(static_cast<float>(center[i]));
      square[i] = std::max(square[i] - count * off * off, std::isnan(square[i]) ? square[i] : 0.0);
    }
  }
  const double divisor = std::max(count - correction, 0.0);
  for (int64_t i = 0; i < n; ++i) {
    square[i] /= divisor;
    if (root) square[i] = std::sqrt(square[i]);
  }
  StoreDense(square.data(), *var);
}

}  // namespace npu::simd
