// Convolution arguments as the kernel's geometry, for 1 to 3 spatial dimensions, with or without a batch.
#pragma once

#include <optional>

#include "kernels/conv/conv.h"
#include "ops/core/builder.h"
#include "ops/core/rule.h"

namespace npu::ops {

// The numbers of a call: one value for every spatial dimension, or one for all.
struct ConvNumbers {
  std::span<const int64_t> stride, padding, dilation, output_padding;
  bool transposed = false;
  int64_t groups = 1;
};

// A trivially copyable description of one convolution; of its transposed form when `transposed` (then `in` is the
// output).
struct ConvCall {
  conv::Geometry g;
  bool transposed;
};

// Checks shapes and types of input, weight and output and fills `call`. `input` and `output` as the forward direction
// has them, whichever of them the operator computes.
Status PlanConv(const Planning& plan, const Tensor& input, TensorToken input_name, const Tensor& weight,
                TensorToken weight_name, const Tensor& output, TensorToken output_name, const ConvNumbers& numbers,
                ConvCall* call);

// An image [n, c, ...] or [c, ...] with its spatial dimensions moved to the end of five.
conv::Volume VolumeOf(const Tensor& t, int spatial);
conv::Volume WeightOf(const Tensor& t, int spatial);

void ConvCost(Planning& plan, const ConvCall& call, double products);

namespace rule {
// Shapes and types are checked by PlanConv.
inline constexpr RuleKind kConvShape{"convolution", check::Free, 0b1, 0b1};
consteval Rule Convolved(TensorToken t) { return Bind(kConvShape, 0, t); }
}  // namespace rule

}  // namespace npu::ops
