// Losses that compare two tensors element by element, and negative log likelihood.
#pragma once

#include <cstdint>

#include "base/task/parallel.h"
#include "kernels/simd/index/index.h"
#include "tensor/tensor.h"

namespace npu::simd {

enum class Loss : uint8_t { kMse, kL1, kSmoothL1, kBce, kBceLogits, kKlDiv, kKlDivLog };
enum class Reduction : uint8_t { kNone = 0, kMean = 1, kSum = 2 };

// Arguments of one shape (stride 0 where broadcast). weight and pos_weight may be null. beta is for kSmoothL1.
struct LossArgs {
  const Tensor* x;
  const Tensor* y;
  const Tensor* weight = nullptr;
  const Tensor* pos_weight = nullptr;
  double beta = 1;
};
void LossForward(Loss loss, const LossArgs& args, Reduction reduction, const Tensor& out, Parallel& parallel);
// d loss / dx times grad, which has the shape of the arguments (stride 0 when it is one number).
void LossBackward(Loss loss, const LossArgs& args, const Tensor& grad, Reduction reduction, const Tensor& out,
                  Parallel& parallel);
// d loss / dy for the divergences.
void KlTargetBackward(bool log_target, const Tensor& x, const Tensor& y, const Tensor& grad, Reduction reduction,
                      const Tensor& out, Parallel& parallel);

// x is [C], [N, C] or [N, C, …]; target lacks the C. total receives Σ weight of the targets that count.
IndexResult NllForward(const Tensor& x, const Tensor& target, const Tensor* weight, Reduction reduction, int64_t ignore,
                       const Tensor& out, const Tensor& total, Parallel& parallel);
IndexResult NllBackward(const Tensor& grad, const Tensor& target, const Tensor* weight, Reduction reduction, int64_t ignore,
                        const Tensor& total, const Tensor& out, Parallel& parallel);

}  // namespace npu::simd
