// Whole tensors in and out of dense arrays of a compute type, in row-major order.
#pragma once

#include "base/task/parallel.h"
#include "kernels/simd/rows/convert.h"
#include "kernels/simd/rows/walk.h"
#include "tensor/tensor.h"

namespace npu::simd {

// A complex tensor as a real one with a last dimension of 2; false for other types.
inline bool RealView(const Tensor& x, Tensor* real) {
  if (x.dtype != DType::c64 && x.dtype != DType::c128) return false;
  *real = x;
  real->dtype = x.dtype == DType::c64 ? DType::f32 : DType::f64;
  for (int d = 0; d < x.rank; ++d) real->strides[static_cast<size_t>(d)] *= 2;
  real->shape[static_cast<size_t>(x.rank)] = 2;
  real->strides[static_cast<size_t>(x.rank)] = 1;
  ++real->rank;
  return true;
}

template <class C>
void LoadDense(const Tensor& t, C* dst) {
  if (t.Numel() == 0) return;
  Walk<1> walk;
  for (int d = 0; d < t.rank; ++d) walk.Add(t.shape[static_cast<size_t>(d)], {t.strides[static_cast<size_t>(d)]});
  walk.Merge();
  const auto inner = walk.TakeInner();
  walk.Seek(0);
  const int64_t rows = walk.Count();
  for (int64_t r = 0; r < rows; ++r, walk.Next()) {
    Load(At(t.data, t.dtype, walk.offset[0]), t.dtype, inner.stride[0], inner.size, dst + r * inner.size);
  }
}

template <class C>
void StoreDense(const C* src, const Tensor& t) {
  if (t.Numel() == 0) return;
  Walk<1> walk;
  for (int d = 0; d < t.rank; ++d) walk.Add(t.shape[static_cast<size_t>(d)], {t.strides[static_cast<size_t>(d)]});
  walk.Merge();
  const auto inner = walk.TakeInner();
  walk.Seek(0);
  const int64_t rows = walk.Count();
  for (int64_t r = 0; r < rows; ++r, walk.Next()) {
    Write(src + r * inner.size, inner.size, At(t.data, t.dtype, walk.offset[0]), t.dtype, inner.stride[0]);
  }
}

// Complex values in row-major order as pairs of C (float or double); real ones get an imaginary part of 0.
template <class C>
void LoadPairs(const Tensor& t, C* dst) {
  Tensor parts;
  if (RealView(t, &parts)) return LoadDense(parts, dst);
  const int64_t n = t.Numel();
  LoadDense(t, dst);
  for (int64_t i = n - 1; i >= 0; --i) {
    dst[2 * i] = dst[i];
    dst[2 * i + 1] = 0;
  }
}
template <class C>
void StorePairs(const C* src, const Tensor& t) {
  Tensor parts;
  if (RealView(t, &parts)) StoreDense(src, parts);
}

}  // namespace npu::simd
