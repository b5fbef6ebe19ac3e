// Whole tensors in and out of dense arrays of a compute type, in row-major order.
#pragma once

#include "base/task/parallel.h"
#include "kernels/simd/rows/convert.h"
#include "kernels/simd/rows/walk.h"
#include "tensor/tensor.h"

namespace npu::simd {

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

}  // namespace npu::simd
