// Convolution of 1 to 3 spatial dimensions, forward and its gradients, as implicit matrix products.
//
//   conv::Geometry g{...};                                  // 2-d images use depth 1
//   NPU_TRY(conv::Forward(parallel, g, x, weight, bias, y));
//   NPU_TRY(conv::BackwardData(parallel, g, dy, weight, {}, dx));
//
// A transposed convolution is BackwardData with the geometry of the convolution it transposes (its input is `dy`), and
// its gradients are Forward and BackwardWeight with dy and x exchanged. f16 and bf16 are summed in f32 and rounded
// once. The result does not depend on the number of workers.
#pragma once

#include <array>
#include <cstdint>

#include "base/status/status.h"
#include "base/task/parallel.h"
#include "tensor/dtype.h"

namespace npu::conv {

struct Geometry {
  int64_t batch = 1, groups = 1;
  int64_t in_channels = 0, out_channels = 0;         // of all groups
  std::array<int64_t, 3> in{1, 1, 1}, out{1, 1, 1};  // depth, height, width
  std::array<int64_t, 3> kernel{1, 1, 1}, stride{1, 1, 1}, pad{0, 0, 0}, dilation{1, 1, 1};

  int64_t Taps() const { return kernel[0] * kernel[1] * kernel[2]; }
};

// An image batch [n, c, d, h, w] or a weight [out, in / groups, d, h, w]; strides in elements.
struct Volume {
  void* data = nullptr;
  DType dtype = DType::none;
  std::array<int64_t, 5> stride{};
};

// A vector of out_channels (in_channels for BackwardData) added to the result; data null: none.
struct Bias {
  const void* data = nullptr;
  DType dtype = DType::none;
  int64_t stride = 1;
};

bool Supports(DType t);  // f32, f16, bf16

Status Forward(Parallel& parallel, const Geometry& g, const Volume& x, const Volume& weight, const Bias& bias,
               const Volume& y);
Status BackwardData(Parallel& parallel, const Geometry& g, const Volume& dy, const Volume& weight, const Bias& bias,
                    const Volume& dx);
Status BackwardWeight(Parallel& parallel, const Geometry& g, const Volume& dy, const Volume& x, const Volume& dweight);
// Sum of dy over everything but channels; `size` is the shape of dy.
void BackwardBias(Parallel& parallel, const Volume& dy, const std::array<int64_t, 5>& size, const Bias& dbias);

}  // namespace npu::conv
