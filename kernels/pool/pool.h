// Max and average pooling of image batches and their gradients, as torch defines them.
#pragma once

#include "kernels/pool/plane.h"

namespace npu::pool {

struct Window {
  std::array<int64_t, 2> kernel{1, 1}, stride{1, 1}, pad{0, 0}, dilation{1, 1};
};

// Where each maximum came from, one number for each position of y, planes one behind the other: which position of the
// plane (indices, i32 or i64), or which tap of its window (u16). A window's first maximum counts, and a NaN beats
// numbers.
struct Origins {
  void* data = nullptr;  // null: not wanted
  DType dtype = DType::none;
  int64_t plane_bytes = 0;  // from one plane to the next
};

Status MaxPool(Parallel& parallel, const Image& x, const Window& window, const Image& y, const Origins& origins);
Status MaxPoolBackward(Parallel& parallel, const Image& dy, const Window& window, const Origins& origins,
                       const Image& dx);

struct AverageRule {
  bool count_padding = true;
  int64_t divisor = 0;  // 0: the size of the window
};
Status AvgPool(Parallel& parallel, const Image& x, const Window& window, const AverageRule& rule, const Image& y);
Status AvgPoolBackward(Parallel& parallel, const Image& dy, const Window& window, const AverageRule& rule,
                       const Image& dx);

// Window o of y covers [o * in / out, ceil((o + 1) * in / out)) of x. Origins as positions of the plane.
Status AdaptiveAvgPool(Parallel& parallel, const Image& x, const Image& y);
Status AdaptiveAvgPoolBackward(Parallel& parallel, const Image& dy, const Image& dx);
Status AdaptiveMaxPool(Parallel& parallel, const Image& x, const Image& y, const Origins& origins);
Status AdaptiveMaxPoolBackward(Parallel& parallel, const Image& dy, const Origins& origins, const Image& dx);

}  // namespace npu::pool
