#include "ops/conv/geometry.h"

#include <algorithm>

#include "tensor/shape.h"

namespace npu::ops {
namespace {

constexpr double kFlopsPerNs = 50;

size_t U(int64_t i) { return static_cast<size_t>(i); }

// Value of dimension d of `spatial`, from a list with one value for all or one for each.
bool ValueOf(std::span<const int64_t> list, int spatial, int d, int64_t missing, int64_t* value) {
  if (list.empty()) {
    *value = missing;
    return true;
  }
  if (list.size() != 1 && list.size() != U(spatial)) return false;
  *value = list.size() == 1 ? list[0] : list[U(d)];
  return true;
}

}  // namespace

Status PlanConv(const Planning& plan, const Tensor& input, TensorToken input_name, const Tensor& weight,
                TensorToken weight_name, const Tensor& output, TensorToken output_name, const ConvNumbers& numbers,
                ConvCall* call) {
  const auto x_name = plan.ParamName(input_name), w_name = plan.ParamName(weight_name),
             y_name = plan.ParamName(output_name);
  const int spatial = weight.rank - 2;
  if (spatial < 1 || spatial > 3) {
    return plan.Refuse("{} has {} dimensions.", w_name, weight.rank)
        .Remedy("Convolutions have 3 to 5: out, in and one to three of space.");
  }
  if (input.rank != spatial + 2 && input.rank != spatial + 1) {
    return plan
        .Refuse("{} of shape {} does not go with {} of shape {}.", x_name, ShapeText(input.Shape()), w_name,
                ShapeText(weight.Shape()))
        .Remedy("{} needs a channel and {} spatial dimensions, with or without a batch.", x_name, spatial);
  }
  if (output.rank != input.rank) {
    return plan.Refuse("{} has {} dimensions and {} has {}.", y_name, output.rank, x_name, input.rank)
        .Remedy("Give both the same number.");
  }
  for (const auto& [tensor, name] : {std::pair{&input, x_name}, {&weight, w_name}, {&output, y_name}}) {
    if (!conv::Supports(tensor->dtype)) {
      return plan.Refuse("{} is {}.", name, Name(tensor->dtype))
          .Remedy("Convolutions take float32, float16 and bfloat16.");
    }
  }
  const int64_t groups = numbers.groups;
  if (groups < 1) return plan.Refuse("groups is {}.", groups).Remedy("It is at least 1.");
  const int channel = input.rank - spatial - 1;
  const int64_t x_channels = input.shape[U(channel)], y_channels = output.shape[U(channel)];
  const int64_t w_in = numbers.transposed ? weight.shape[0] : weight.shape[1] * groups;
  const int64_t w_out = numbers.transposed ? weight.shape[1] * groups : weight.shape[0];
  if (x_channels != w_in) {
    return plan
        .Refuse("{} has {} channels, but {} of shape {} with groups {} takes {}.", x_name, x_channels, w_name,
                ShapeText(weight.Shape()), groups, w_in)
        .Remedy("Channels of {}, {} and groups must agree.", x_name, w_name);
  }
  if (w_out % groups != 0 || w_in % groups != 0) {
    return plan.Refuse("{} in and {} out channels cannot be parted in {} groups.", w_in, w_out, groups)
        .Remedy("Both must be multiples of groups.");
  }
  conv::Geometry& g = call->g;
  g = {};
  call->transposed = numbers.transposed;
  g.groups = groups;
  g.batch = channel == 1 ? input.shape[0] : 1;
  // A transposed convolution is the gradient of the convolution from its output to its input.
  g.in_channels = numbers.transposed ? w_out : w_in;
  g.out_channels = numbers.transposed ? w_in : w_out;
  Dims want;
  if (channel == 1) want.Push(input.shape[0]);
  want.Push(w_out);
  for (int d = 0; d < spatial; ++d) {
    const size_t to = U(3 - spatial + d);
    int64_t extra = 0;
    if (!ValueOf(numbers.stride, spatial, d, 1, &g.stride[to]) ||
        !ValueOf(numbers.padding, spatial, d, 0, &g.pad[to]) ||
        !ValueOf(numbers.dilation, spatial, d, 1, &g.dilation[to]) ||
        !ValueOf(numbers.output_padding, spatial, d, 0, &extra)) {
      return plan
          .Refuse(
              "stride, padding, dilation and outputPadding have {}, {}, {} and {} values for {} spatial dimensions.",
              numbers.stride.size(), numbers.padding.size(), numbers.dilation.size(), numbers.output_padding.size(),
              spatial)
          .Remedy("Give one value, or one for each dimension.");
    }
    if (g.stride[to] < 1 || g.dilation[to] < 1 || g.pad[to] < 0 || (numbers.transposed && extra < 0)) {
      return plan
          .Refuse("stride {}, padding {}, dilation {} of spatial dimension {}.", g.stride[to], g.pad[to],
                  g.dilation[to], d)
          .Remedy("Stride and dilation are at least 1, padding and outputPadding at least 0.");
    }
    g.kernel[to] = weight.shape[U(d + 2)];
    if (g.kernel[to] < 1) return plan.Refuse("{} has an empty kernel.", w_name).Remedy("Kernel sizes are at least 1.");
    const int64_t size = input.shape[U(channel + 1 + d)];
    const int64_t reach = g.dilation[to] * (g.kernel[to] - 1) + 1;
    const int64_t result = numbers.transposed             ? (size - 1) * g.stride[to] - 2 * g.pad[to] + reach + extra
                           : size + 2 * g.pad[to] < reach ? 0
                                                          : (size + 2 * g.pad[to] - reach) / g.stride[to] + 1;
    // A transposed convolution may give nothing at all, which torch lets pass.
    if (result < (numbers.transposed ? 0 : 1)) {
      return plan
          .Refuse("spatial dimension {} of {} is {}; with kernel {}, dilation {} and padding {} nothing is left.", d,
                  x_name, size, g.kernel[to], g.dilation[to], g.pad[to])
          .Remedy("Use a larger input, more padding or a smaller kernel.");
    }
    want.Push(result);
    g.in[to] = numbers.transposed ? result : size;
    g.out[to] = numbers.transposed ? size : result;
  }
  if (y_channels != w_out || !npu::SameShape(output.Shape(), want.Span())) {
    return plan
        .Refuse("{} has shape {}, but the convolution gives {}.", y_name, ShapeText(output.Shape()),
                ShapeText(want.Span()))
        .Remedy("Give {} the shape {}.", y_name, ShapeText(want.Span()));
  }
  return {};
}

conv::Volume VolumeOf(const Tensor& t, int spatial) {
  conv::Volume v{t.data, t.dtype, {}};
  const int channel = t.rank - spatial - 1;
  if (channel == 1) v.stride[0] = t.strides[0];
  v.stride[1] = t.strides[U(channel)];
  for (int d = 0; d < spatial; ++d) v.stride[U(5 - spatial + d)] = t.strides[U(channel + 1 + d)];
  return v;
}

conv::Volume WeightOf(const Tensor& t, int spatial) { return VolumeOf(t, spatial); }

void ConvCost(Planning& plan, const ConvCall& call, double products) {
  const conv::Geometry& g = call.g;
  const double positions = static_cast<double>(g.batch * g.out[0] * g.out[1] * g.out[2]);
  const double terms = static_cast<double>(g.in_channels / g.groups * g.Taps() * g.out_channels);
  plan.Cost(5000 + products * 2 * positions * terms / kFlopsPerNs);
}

}  // namespace npu::ops
