// Softmax and its logarithm along one dimension, with gradients. Any strides and float types; f32 inside for half types.
#pragma once

#include "base/task/parallel.h"
#include "tensor/tensor.h"

namespace npu::simd {

void Softmax(const Tensor& x, int dim, const Tensor& out, Parallel& parallel);
void LogSoftmax(const Tensor& x, int dim, const Tensor& out, Parallel& parallel);
// `y` is what the forward function gave.
void SoftmaxBackward(const Tensor& grad, const Tensor& y, int dim, const Tensor& out, Parallel& parallel);
void LogSoftmaxBackward(const Tensor& grad, const Tensor& y, int dim, const Tensor& out, Parallel& parallel);

}  // namespace npu::simd
