// Losses on dense rows, chosen once for the instruction set. w and pw may be null.
#pragma once

#include <cstdint>

namespace npu::simd {

template <class T>
struct LossTable {
  using Row = void (*)(const T* x, const T* y, const T* w, const T* pw, T beta, T* out, int64_t n);
  Row loss[7];  // by enum Loss
  Row grad[7];
  Row target_grad[2];  // kKlDiv, kKlDivLog
};

template <class T>
const LossTable<T>& LossRows();
template <>
const LossTable<float>& LossRows<float>();
template <>
const LossTable<double>& LossRows<double>();

}  // namespace npu::simd
