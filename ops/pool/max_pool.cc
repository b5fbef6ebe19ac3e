// Max pooling. The card's own form returns an opaque mask in place of indices; only the backward function reads it.
// Ours holds the number of the window's tap as u16, planes as far apart as the mask's last two dimensions make them.
#include "gen/abi/ops.h"
#include "ops/pool/image.h"
#include "tensor/shape.h"

namespace npu::ops {
namespace {

using abi::AdaptiveMaxPool2d, abi::AdaptiveMaxPool2dBackward;
using abi::MaxPool2dWithMask, abi::MaxPool2dWithMaskBackward, abi::MaxPool2dWithIndices,
    abi::MaxPool2dWithIndicesBackward;

pool::Origins Indices(const Tensor* t, const pool::Image& pooled) {
  if (t == nullptr) return {};
  return {t->data, t->dtype, pooled.PlaneSize() * ItemSize(t->dtype)};
}

pool::Origins Mask(const Tensor* t, const pool::Image& pooled) {
  if (t == nullptr) return {};
  return {t->data, DType::u16, t->Numel() * ItemSize(t->dtype) / std::max<int64_t>(1, pooled.Planes())};
}

Status CheckIndices(const Planning& p, const Tensor* t, TensorToken name, const Tensor& pooled) {
  if (t == nullptr) return {};
  if ((t->dtype != DType::i32 && t->dtype != DType::i64) || !npu::SameShape(t->Shape(), pooled.Shape()) ||
      !t->Contiguous()) {
    return p.Refuse("{} is {} of shape {}.", p.ParamName(name), Name(t->dtype), ShapeText(t->Shape()))
        .Remedy("Indices are contiguous, int32 or int64, of the shape of the pooled tensor, {}.",
                ShapeText(pooled.Shape()));
  }
  return {};
}

Status CheckMask(const Planning& p, const Tensor* t, TensorToken name, const Tensor& pooled, const pool::Window& w) {
  if (t == nullptr) return {};
  const pool::Image image = ImageOf(pooled);
  const int64_t need = image.Planes() * image.PlaneSize() * 2;
  if (!t->Contiguous() || t->Numel() * ItemSize(t->dtype) < need || w.kernel[0] * w.kernel[1] > 65535) {
    return p
        .Refuse("{} is {} of shape {} for a pooled tensor of shape {}.", p.ParamName(name), Name(t->dtype),
                ShapeText(t->Shape()), ShapeText(pooled.Shape()))
        .Remedy("Pass a contiguous int8 mask of [kernel area, (ceil(height * width / 16) + 1) * 32] for each plane.");
  }
  return {};
}

// The parts that forward functions share; they differ in what they remember.
template <class A>
Status PrepareForward(Planning& p,
                      Status (*check)(const Planning&, const Tensor*, const Tensor&, const pool::Window&)) {
  const Args& a = p.args;
  const Tensor& x = a[A::self];
  NPU_TRY(CheckImage(p, x, A::self));
  NPU_TRY(CheckImage(p, a[A::out], A::out));
  pool::Window window;
  int64_t h = 0, w = 0;
  NPU_TRY(
      PlanPool(p, x, {a[A::kernelSize], a[A::stride], a[A::padding], a[A::dilation], a[A::ceilMode]}, &window, &h, &w));
  NPU_TRY(CheckSize(p, a[A::out], A::out, x, h, w));
  NPU_TRY(check(p, a[A::indices], a[A::out], window));
  p.NewState(window);
  return {};
}

template <class A>
Status PrepareBackward(Planning& p,
                       Status (*check)(const Planning&, const Tensor*, const Tensor&, const pool::Window&)) {
  const Args& a = p.args;
  const Tensor &x = a[A::self], &dy = a[A::gradOutput], &dx = *a[A::gradInput];
  NPU_TRY(CheckImage(p, x, A::self));
  NPU_TRY(CheckImage(p, dy, A::gradOutput));
  NPU_TRY(CheckImage(p, dx, A::gradInput));
  pool::Window window;
  int64_t h = 0, w = 0;
  NPU_TRY(
      PlanPool(p, x, {a[A::kernelSize], a[A::stride], a[A::padding], a[A::dilation], a[A::ceilMode]}, &window, &h, &w));
  NPU_TRY(CheckSize(p, dy, A::gradOutput, x, h, w));
  NPU_TRY(CheckSize(p, dx, A::gradInput, x, x.shape[static_cast<size_t>(x.rank - 2)],
                    x.shape[static_cast<size_t>(x.rank - 1)]));
  NPU_TRY(check(p, &a[A::indices], dy, window));
  p.NewState(window);
  return {};
}

}  // namespace

NPU_OP(MaxPool2dWithMask) =
    Op<MaxPool2dWithMask>()
        .Rules(rule::Image(MaxPool2dWithMask::out), rule::Image(MaxPool2dWithMask::indices))
        .Uses(MaxPool2dWithMask::self, MaxPool2dWithMask::kernelSize, MaxPool2dWithMask::stride,
              MaxPool2dWithMask::padding, MaxPool2dWithMask::dilation, MaxPool2dWithMask::ceilMode)
        .Like("torch.nn.functional.max_pool2d(self, kernelSize, stride, padding, dilation, ceilMode)")
        .Tolerance("exact")
        .Prepares([](Planning& p) {
          return PrepareForward<MaxPool2dWithMask>(
              p, [](const Planning& q, const Tensor* t, const Tensor& y, const pool::Window& w) {
                return CheckMask(q, t, MaxPool2dWithMask::indices, y, w);
              });
        })
        .Does([](const Call& c) {
          const pool::Image y = ImageOf(c.args[MaxPool2dWithMask::out]);
          return pool::MaxPool(c.parallel, ImageOf(c.args[MaxPool2dWithMask::self]), c.State<pool::Window>(), y,
                               Mask(c.args[MaxPool2dWithMask::indices], y));
        });

NPU_OP(MaxPool2dWithMaskBackward) =
    Op<MaxPool2dWithMaskBackward>()
        .Rules(rule::Image(MaxPool2dWithMaskBackward::gradInput))
        .Required(MaxPool2dWithMaskBackward::gradInput)
        .Uses(MaxPool2dWithMaskBackward::gradOutput, MaxPool2dWithMaskBackward::self,
              MaxPool2dWithMaskBackward::indices, MaxPool2dWithMaskBackward::kernelSize,
              MaxPool2dWithMaskBackward::stride, MaxPool2dWithMaskBackward::padding,
              MaxPool2dWithMaskBackward::dilation, MaxPool2dWithMaskBackward::ceilMode)
        .Like("max_pool2d_backward(gradOutput, self, kernelSize, stride, padding, dilation, ceilMode)")
        .Tolerance("accumulated")
        .Prepares([](Planning& p) {
          return PrepareBackward<MaxPool2dWithMaskBackward>(
              p, [](const Planning& q, const Tensor* t, const Tensor& y, const pool::Window& w) {
                return CheckMask(q, t, MaxPool2dWithMaskBackward::indices, y, w);
              });
        })
        .Does([](const Call& c) {
          const pool::Image dy = ImageOf(c.args[MaxPool2dWithMaskBackward::gradOutput]);
          return pool::MaxPoolBackward(c.parallel, dy, c.State<pool::Window>(),
                                       Mask(&c.args[MaxPool2dWithMaskBackward::indices], dy),
                                       ImageOf(*c.args[MaxPool2dWithMaskBackward::gradInput]));
        });

NPU_OP(MaxPool2dWithIndices) =
    Op<MaxPool2dWithIndices>()
        .Rules(rule::Image(MaxPool2dWithIndices::out), rule::Image(MaxPool2dWithIndices::indices))
        .Uses(MaxPool2dWithIndices::self, MaxPool2dWithIndices::kernelSize, MaxPool2dWithIndices::stride,
              MaxPool2dWithIndices::padding, MaxPool2dWithIndices::dilation, MaxPool2dWithIndices::ceilMode)
        .Like("torch.nn.functional.max_pool2d_with_indices(self, kernelSize, stride, padding, dilation, ceilMode)")
        .Tolerance("exact")
        .Prepares([](Planning& p) {
          return PrepareForward<MaxPool2dWithIndices>(
              p, [](const Planning& q, const Tensor* t, const Tensor& y, const pool::Window&) {
                return CheckIndices(q, t, MaxPool2dWithIndices::indices, y);
              });
        })
        .Does([](const Call& c) {
          const pool::Image y = ImageOf(c.args[MaxPool2dWithIndices::out]);
          return pool::MaxPool(c.parallel, ImageOf(c.args[MaxPool2dWithIndices::self]), c.State<pool::Window>(), y,
                               Indices(c.args[MaxPool2dWithIndices::indices], y));
        });

NPU_OP(MaxPool2dWithIndicesBackward) =
    Op<MaxPool2dWithIndicesBackward>()
        .Rules(rule::Image(MaxPool2dWithIndicesBackward::gradInput))
        .Required(MaxPool2dWithIndicesBackward::gradInput)
        .Uses(MaxPool2dWithIndicesBackward::gradOutput, MaxPool2dWithIndicesBackward::self,
              MaxPool2dWithIndicesBackward::indices, MaxPool2dWithIndicesBackward::kernelSize,
              MaxPool2dWithIndicesBackward::stride, MaxPool2dWithIndicesBackward::padding,
              MaxPool2dWithIndicesBackward::dilation, MaxPool2dWithIndicesBackward::ceilMode)
        .Like(
            "torch.ops.aten.max_pool2d_with_indices_backward(gradOutput, self, kernelSize, stride, padding, dilation, "
            "ceilMode, indices)")
        .Tolerance("accumulated")
        .Prepares([](Planning& p) {
          return PrepareBackward<MaxPool2dWithIndicesBackward>(
              p, [](const Planning& q, const Tensor* t, const Tensor& y, const pool::Window&) {
                return CheckIndices(q, t, MaxPool2dWithIndicesBackward::indices, y);
              });
        })
        .Does([](const Call& c) {
          const pool::Image dy = ImageOf(c.args[MaxPool2dWithIndicesBackward::gradOutput]);
          return pool::MaxPoolBackward(c.parallel, dy, c.State<pool::Window>(),
                                       Indices(&c.args[MaxPool2dWithIndicesBackward::indices], dy),
                                       ImageOf(*c.args[MaxPool2dWithIndicesBackward::gradInput]));
        });

NPU_OP(AdaptiveMaxPool2d) = Op<AdaptiveMaxPool2d>()
                                .Rules(rule::Image(AdaptiveMaxPool2d::outputOut),
                                       rule::Image(AdaptiveMaxPool2d::indicesOut))
                                .Uses(AdaptiveMaxPool2d::self, AdaptiveMaxPool2d::outputSize)
                                .Like("torch.nn.functional.adaptive_max_pool2d_with_indices(self, outputSize)")
                                .Tolerance("exact")
                                .Prepares([](Planning& p) -> Status {
                                  const Args& a = p.args;
                                  int64_t h = 0, w = 0;
                                  NPU_TRY(CheckImage(p, a[AdaptiveMaxPool2d::self], AdaptiveMaxPool2d::self));
                                  NPU_TRY(CheckImage(p, a[AdaptiveMaxPool2d::outputOut], AdaptiveMaxPool2d::outputOut));
                                  NPU_TRY(PlanOutputSize(p, a[AdaptiveMaxPool2d::outputSize], &h, &w));
                                  NPU_TRY(CheckSize(p, a[AdaptiveMaxPool2d::outputOut], AdaptiveMaxPool2d::outputOut,
                                                    a[AdaptiveMaxPool2d::self], h, w));
                                  return CheckIndices(p, &a[AdaptiveMaxPool2d::indicesOut],
                                                      AdaptiveMaxPool2d::indicesOut, a[AdaptiveMaxPool2d::outputOut]);
                                })
                                .Does([](const Call& c) {
                                  const pool::Image y = ImageOf(c.args[AdaptiveMaxPool2d::outputOut]);
                                  return pool::AdaptiveMaxPool(c.parallel, ImageOf(c.args[AdaptiveMaxPool2d::self]), y,
                                                               Indices(&c.args[AdaptiveMaxPool2d::indicesOut], y));
                                });

NPU_OP(AdaptiveMaxPool2dBackward) =
    Op<AdaptiveMaxPool2dBackward>()
        .Rules(rule::Image(AdaptiveMaxPool2dBackward::gradInput))
        .Uses(AdaptiveMaxPool2dBackward::self, AdaptiveMaxPool2dBackward::gradOutput,
              AdaptiveMaxPool2dBackward::indices)
        .Like("torch.ops.aten.adaptive_max_pool2d_backward(gradOutput, self, indices)")
        .Tolerance("accumulated")
        .Prepares([](Planning& p) -> Status {
          const Args& a = p.args;
          const Tensor &dy = a[AdaptiveMaxPool2dBackward::gradOutput], &x = a[AdaptiveMaxPool2dBackward::self];
          NPU_TRY(CheckImage(p, x, AdaptiveMaxPool2dBackward::self));
          NPU_TRY(CheckImage(p, dy, AdaptiveMaxPool2dBackward::gradOutput));
          NPU_TRY(CheckImage(p, a[AdaptiveMaxPool2dBackward::gradInput], AdaptiveMaxPool2dBackward::gradInput));
          NPU_TRY(CheckLike(p, a[AdaptiveMaxPool2dBackward::gradInput], AdaptiveMaxPool2dBackward::gradInput, x));
          NPU_TRY(CheckSize(p, dy, AdaptiveMaxPool2dBackward::gradOutput, x, dy.shape[static_cast<size_t>(dy.rank - 2)],
                            dy.shape[static_cast<size_t>(dy.rank - 1)]));
          return CheckIndices(p, &a[AdaptiveMaxPool2dBackward::indices], AdaptiveMaxPool2dBackward::indices, dy);
        })
        .Does([](const Call& c) {
          const pool::Image dy = ImageOf(c.args[AdaptiveMaxPool2dBackward::gradOutput]);
          return pool::AdaptiveMaxPoolBackward(c.parallel, dy, Indices(&c.args[AdaptiveMaxPool2dBackward::indices], dy),
                                               ImageOf(c.args[AdaptiveMaxPool2dBackward::gradInput]));
        });

}  // namespace npu::ops
