// Optimizer steps on dense rows, chosen once for the instruction set.
#pragma once

#include <cstdint>

namespace npu::simd {

// g = grad·sign_scale + l2·w;  m = β1·m + β1c·g;  v = β2·v + β2c·g²;
// w = w·shrink − rate·m / (√(max_v or v)·root + eps)
template <class T>
struct AdamRow {
  T beta1, beta2, beta1c, beta2c, rate, root, eps, shrink, l2, sign_scale;
};
// g = grad·sign_scale + l2·w;  buf = keep·buf + take·g;  step = nesterov ? g + momentum·buf : buf;  w −= lr·step
template <class T>
struct SgdRow {
  T sign_scale, l2, keep, take, momentum, lr;
  bool nesterov;
};

template <class T>
struct OptimTable {
  void (*adam)(const AdamRow<T>& p, T* w, const T* grad, T* m, T* v, T* max_v, int64_t n);  // max_v may be null
  void (*sgd)(const SgdRow<T>& p, T* w, const T* grad, T* buf, int64_t n);                  // buf may be null
};

template <class T>
const OptimTable<T>& OptimRows();
template <>
const OptimTable<float>& OptimRows<float>();
template <>
const OptimTable<double>& OptimRows<double>();

}  // namespace npu::simd
