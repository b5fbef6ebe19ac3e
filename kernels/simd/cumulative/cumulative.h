// Running results along one dimension. Sums of f16, bf16 and f32 run in f64 and are rounded once each.
#pragma once

#include "base/task/parallel.h"
#include "tensor/tensor.h"

namespace npu::simd {

void CumSum(const Tensor& x, int dim, const Tensor& out, Parallel& parallel);
void CumProd(const Tensor& x, int dim, const Tensor& out, Parallel& parallel);
void LogCumSumExp(const Tensor& x, int dim, const Tensor& out, Parallel& parallel);
// Largest or smallest so far and where it is, the last of equal ones; NaN stays.
void CumExtreme(const Tensor& x, int dim, bool largest, const Tensor& values, const Tensor& indices, Parallel& parallel);

}  // namespace npu::simd
