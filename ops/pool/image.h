// Tensors of pooling and resizing operators as images, and the checks they share.
#pragma once

#include "kernels/pool/pool.h"
#include "ops/core/builder.h"
#include "ops/core/rule.h"

namespace npu::ops {

// [n, c, h, w] or [c, h, w].
pool::Image ImageOf(const Tensor& t);

// Rank 3 or 4, nothing but the batch empty, a float type kernels pool in.
Status CheckImage(const Planning& plan, const Tensor& t, TensorToken name);

// The tensor has the batch and channels of `like` and this height and width.
Status CheckSize(const Planning& plan, const Tensor& t, TensorToken name, const Tensor& like, int64_t h, int64_t w);

// The same, of the whole shape of `like`.
Status CheckLike(const Planning& plan, const Tensor& t, TensorToken name, const Tensor& like);

// Pooling arguments: one value for both dimensions or two; an empty stride means the kernel.
struct PoolNumbers {
  std::span<const int64_t> kernel, stride, padding, dilation;
  bool ceil_mode = false;
};
// Fills `window` and the size of the pooled image.
Status PlanPool(const Planning& plan, const Tensor& x, const PoolNumbers& numbers, pool::Window* window, int64_t* h,
                int64_t* w);

// One value for both dimensions or two.
Status PlanOutputSize(const Planning& plan, std::span<const int64_t> size, int64_t* h, int64_t* w);

namespace rule {
// Shapes and types are checked by CheckSize.
inline constexpr RuleKind kImage{"image", check::Free, 0b1, 0b1};
consteval Rule Image(TensorToken t) { return Bind(kImage, 0, t); }
}  // namespace rule

}  // namespace npu::ops
