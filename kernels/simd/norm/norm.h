// Normalisations. Statistics are computed in f32 within chunks and f64 between them; a tensor pointer that is null means the
// parameter is absent. Inputs and outputs may have any strides and float types.
#pragma once

#include <cstdint>

#include "base/task/parallel.h"
#include "tensor/tensor.h"

namespace npu::simd {

// Over the last `width` elements of each row: y = (x − mean)·rstd·w + b. `mean` and `rstd` have one value for each row.
void LayerNorm(const Tensor& x, int64_t width, const Tensor* w, const Tensor* b, double eps, const Tensor& y,
               const Tensor* mean, const Tensor* rstd, Parallel& parallel);
void LayerNormBackward(const Tensor& grad, const Tensor& x, int64_t width, const Tensor& mean, const Tensor& rstd,
                       const Tensor* w, const Tensor* dx, const Tensor* dw, const Tensor* db, Parallel& parallel);
// y = x·rstd·w with rstd = 1/√(mean(x²) + eps).
void RmsNorm(const Tensor& x, int64_t width, const Tensor* w, double eps, const Tensor& y, const Tensor* rstd,
             Parallel& parallel);
void RmsNormBackward(const Tensor& grad, const Tensor& x, int64_t width, const Tensor& rstd, const Tensor* w,
                     const Tensor* dx, const Tensor* dw, Parallel& parallel);

// x is [batch, channels, space] in memory order; `groups` divides channels. mean and rstd are [batch, groups].
struct GroupShape {
  int64_t batch, channels, space, groups;
};
void GroupNorm(const Tensor& x, const GroupShape& shape, const Tensor* w, const Tensor* b, double eps, const Tensor& y,
               const Tensor* mean, const Tensor* rstd, Parallel& parallel);
void GroupNormBackward(const Tensor& grad, const Tensor& x, const GroupShape& shape, const Tensor& mean, const Tensor& rstd,
                       const Tensor* w, const Tensor* dx, const Tensor* dw, const Tensor* db, Parallel& parallel);

}  // namespace npu::simd
