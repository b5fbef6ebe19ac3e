// Small vectors (weights, statistics) as dense arrays of a compute type.
#pragma once

#include <vector>

#include "kernels/simd/rows/dense.h"

namespace npu::simd {

template <class C>
std::vector<C> LoadVector(const Tensor& t) {
  std::vector<C> v(static_cast<size_t>(t.Numel()));
  LoadDense(t, v.data());
  return v;
}
// Empty when the tensor is absent.
template <class C>
std::vector<C> LoadVector(const Tensor* t) { return t != nullptr ? LoadVector<C>(*t) : std::vector<C>(); }
template <class C>
const C* DataOrNull(const std::vector<C>& v) { return v.empty() ? nullptr : v.data(); }

template <class C>
void StoreVector(const C* v, const Tensor& t) { StoreDense(v, t); }

}  // namespace npu::simd
