// Small vectors (weights, statistics) as dense f64 or compute-type arrays, in row-major order of the tensor.
#pragma once

#include <vector>

#include "kernels/simd/rows/convert.h"
#include "kernels/simd/rows/walk.h"
#include "tensor/tensor.h"

namespace npu::simd {

template <class C>
std::vector<C> LoadVector(const Tensor& t) {
  std::vector<C> v(static_cast<size_t>(t.Numel()));
  Walk<1> walk;
  for (int d = 0; d < t.rank; ++d) walk.Add(t.shape[static_cast<size_t>(d)], {t.strides[static_cast<size_t>(d)]});
  walk.Merge();
  const auto inner = walk.TakeInner();
  walk.Seek(0);
  for (int64_t i = 0; i < t.Numel(); i += inner.size, walk.Next()) {
    Load(At(t.data, t.dtype, walk.offset[0]), t.dtype, inner.stride[0], inner.size, v.data() + i);
  }
  return v;
}
// Empty when the tensor is absent.
template <class C>
std::vector<C> LoadVector(const Tensor* t) { return t != nullptr ? LoadVector<C>(*t) : std::vector<C>(); }
template <class C>
const C* DataOrNull(const std::vector<C>& v) { return v.empty() ? nullptr : v.data(); }

template <class C>
void StoreVector(const C* v, const Tensor& t) {
  Walk<1> walk;
  for (int d = 0; d < t.rank; ++d) walk.Add(t.shape[static_cast<size_t>(d)], {t.strides[static_cast<size_t>(d)]});
  walk.Merge();
  const auto inner = walk.TakeInner();
  walk.Seek(0);
  for (int64_t i = 0; i < t.Numel(); i += inner.size, walk.Next()) {
    Write(v + i, inner.size, At(t.data, t.dtype, walk.offset[0]), t.dtype, inner.stride[0]);
  }
}

}  // namespace npu::simd
