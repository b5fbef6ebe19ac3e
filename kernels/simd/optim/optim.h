// Optimizer steps on whole tensors. Half types compute in f32 and round once.
#pragma once

#include <cstdint>

#include "base/task/parallel.h"
#include "tensor/tensor.h"

namespace npu::simd {

struct AdamStep {
  double lr, beta1, beta2, weight_decay, eps;
  double step;             // t of the bias corrections, from 1
  bool decoupled;          // AdamW: decay shrinks the weights instead of entering the gradient
  bool amsgrad, maximize;
  double grad_scale = 1;   // gradients are divided by it
};
// max_v may be null without amsgrad. `grad` is only read.
void Adam(const AdamStep& s, const Tensor& w, const Tensor& grad, const Tensor& m, const Tensor& v, const Tensor* max_v,
          Parallel& parallel);

struct SgdStep {
  double lr, momentum, dampening, weight_decay;
  bool nesterov, maximize, first_step;
  double grad_scale = 1;
};
// `momentum_buffer` may be null when momentum is 0.
void Sgd(const SgdStep& s, const Tensor& w, const Tensor& grad, const Tensor* momentum_buffer, Parallel& parallel);

}  // namespace npu::simd
