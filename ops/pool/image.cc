#include "ops/pool/image.h"

#include "tensor/shape.h"

namespace npu::ops {
namespace {

bool PairOf(std::span<const int64_t> list, int64_t missing, std::array<int64_t, 2>* pair) {
  if (list.size() > 2) return false;
  *pair =
      list.empty() ? std::array<int64_t, 2>{missing, missing} : std::array<int64_t, 2>{list[0], list[list.size() - 1]};
  return true;
}

}  // namespace

pool::Image ImageOf(const Tensor& t) {
  const auto first = static_cast<size_t>(t.rank - 3);
  pool::Image m{t.data, t.dtype, first == 1 ? t.shape[0] : 1, t.shape[first], t.shape[first + 1], t.shape[first + 2],
                {}};
  if (first == 1) m.stride[0] = t.strides[0];
  for (size_t d = 0; d < 3; ++d) m.stride[d + 1] = t.strides[first + d];
  return m;
}

Status CheckImage(const Planning& plan, const Tensor& t, TensorToken name) {
  if (t.rank != 3 && t.rank != 4) {
    return plan.Refuse("{} has {} dimensions.", plan.ParamName(name), t.rank)
        .Remedy("Pass [channels, height, width], with or without a batch before it.");
  }
  for (int d = t.rank - 3; d < t.rank; ++d) {
    if (t.shape[static_cast<size_t>(d)] < 1) {
      return plan.Refuse("{} has shape {}.", plan.ParamName(name), ShapeText(t.Shape()))
          .Remedy("Only the batch may be empty.");
    }
  }
  if (!pool::Supports(t.dtype)) {
    return plan.Refuse("{} is {}.", plan.ParamName(name), Name(t.dtype)).Remedy("Use float32, float16 or bfloat16.");
  }
  return {};
}

Status CheckSize(const Planning& plan, const Tensor& t, TensorToken name, const Tensor& like, int64_t h, int64_t w) {
  Dims want = DimsOf(like);
  want.size[static_cast<size_t>(want.rank - 2)] = h;
  want.size[static_cast<size_t>(want.rank - 1)] = w;
  if (!npu::SameShape(t.Shape(), want.Span())) {
    return plan
        .Refuse("{} has shape {} instead of {}.", plan.ParamName(name), ShapeText(t.Shape()), ShapeText(want.Span()))
        .Remedy("Give {} the shape {}.", plan.ParamName(name), ShapeText(want.Span()));
  }
  return {};
}

Status CheckLike(const Planning& plan, const Tensor& t, TensorToken name, const Tensor& like) {
  return CheckSize(plan, t, name, like, like.shape[static_cast<size_t>(like.rank - 2)],
                   like.shape[static_cast<size_t>(like.rank - 1)]);
}

Status PlanPool(const Planning& plan, const Tensor& x, const PoolNumbers& numbers, pool::Window* window, int64_t* h,
                int64_t* w) {
  if (!PairOf(numbers.kernel, 0, &window->kernel) || !PairOf(numbers.stride, 0, &window->stride) ||
      !PairOf(numbers.padding, 0, &window->pad) || !PairOf(numbers.dilation, 1, &window->dilation)) {
    return plan
        .Refuse("kernel size, stride, padding and dilation have {}, {}, {} and {} values.", numbers.kernel.size(),
                numbers.stride.size(), numbers.padding.size(), numbers.dilation.size())
        .Remedy("Give one value or two.");
  }
  if (numbers.stride.empty()) window->stride = window->kernel;
  int64_t* const sizes[2] = {h, w};
  for (size_t d = 0; d < 2; ++d) {
    const int64_t k = window->kernel[d], s = window->stride[d], p = window->pad[d], dilation = window->dilation[d];
    const int64_t in = x.shape[static_cast<size_t>(x.rank - 2) + d];
    if (k < 1 || s < 1 || dilation < 1 || p < 0 || 2 * p > k) {
      return plan.Refuse("kernel {}, stride {}, padding {}, dilation {} in dimension {}.", k, s, p, dilation, d)
          .Remedy("Kernel, stride and dilation are at least 1, padding is at most half the kernel.");
    }
    const int64_t rest = in + 2 * p - dilation * (k - 1) - 1;
    const int64_t room = rest + (numbers.ceil_mode ? s - 1 : 0);  // rounding up, a window may be larger than the image
    int64_t out = room < 0 ? 0 : room / s + 1;
    if (numbers.ceil_mode && out > 0 && (out - 1) * s >= in + p) --out;  // a window that begins in the far padding
    if (out < 1) {
      return plan
          .Refuse("an input of {} is smaller than a kernel of {} with padding {} and dilation {}.", in, k, p, dilation)
          .Remedy("Use a larger input or a smaller kernel.");
    }
    *sizes[d] = out;
  }
  return {};
}

Status PlanOutputSize(const Planning& plan, std::span<const int64_t> size, int64_t* h, int64_t* w) {
  std::array<int64_t, 2> pair{};
  if (size.empty() || !PairOf(size, 0, &pair) || pair[0] < 1 || pair[1] < 1) {
    return plan.Refuse("outputSize has {} values, {} × {}.", size.size(), pair[0], pair[1])
        .Remedy("Give a height and a width of at least 1.");
  }
  *h = pair[0];
  *w = pair[1];
  return {};
}

}  // namespace npu::ops
