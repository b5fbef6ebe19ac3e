// Nearest and bilinear resizing. A scale of 0 means that the caller gave none: the sizes decide.
#include "gen/abi/ops.h"
#include "kernels/pool/resize.h"
#include "ops/pool/image.h"
#include "tensor/shape.h"

namespace npu::ops {
namespace {

Status CheckForward(const Planning& p, const Tensor& x, TensorToken x_name, std::span<const int64_t> size,
                    const Tensor& y, TensorToken y_name) {
  int64_t h = 0, w = 0;
  NPU_TRY(CheckImage(p, x, x_name));
  NPU_TRY(CheckImage(p, y, y_name));
  NPU_TRY(PlanOutputSize(p, size, &h, &w));
  return CheckSize(p, y, y_name, x, h, w);
}

Status CheckBackward(const Planning& p, const Tensor& dy, TensorToken dy_name, std::span<const int64_t> size,
                     std::span<const int64_t> input_size, const Tensor& dx, TensorToken dx_name) {
  NPU_TRY(CheckForward(p, dx, dx_name, size, dy, dy_name));
  if (!npu::SameShape(dx.Shape(), input_size)) {
    return p
        .Refuse("{} has shape {}, but inputSize is {}.", p.ParamName(dx_name), ShapeText(dx.Shape()),
                ShapeText(input_size))
        .Remedy("The gradient has the size of the input.");
  }
  return {};
}

}  // namespace

// Forward operators differ in whether they have scales, corners, and which sampling they use.
using abi::UpsampleBilinear2dBackwardV2;
using abi::UpsampleNearest2d, abi::UpsampleNearest2dV2, abi::UpsampleNearestExact2d, abi::UpsampleBilinear2d;
using abi::UpsampleNearest2dBackward, abi::UpsampleNearestExact2dBackward, abi::UpsampleBilinear2dBackward;

NPU_OP(UpsampleNearest2d) = Op<UpsampleNearest2d>()
                                .Rules(rule::Image(UpsampleNearest2d::out))
                                .Uses(UpsampleNearest2d::self, UpsampleNearest2d::outputSize)
                                .Like("torch.nn.functional.interpolate(self, size=outputSize, mode='nearest')")
                                .Tolerance("exact")
                                .Prepares([](Planning& p) {
                                  using A = UpsampleNearest2d;
                                  return CheckForward(p, p.args[A::self], A::self, p.args[A::outputSize],
                                                      p.args[A::out], A::out);
                                })
                                .Does([](const Call& c) {
                                  using A = UpsampleNearest2d;
                                  return pool::Nearest(c.parallel, ImageOf(c.args[A::self]), {}, false,
                                                       ImageOf(c.args[A::out]));
                                });

NPU_OP(UpsampleNearest2dV2) =
    Op<UpsampleNearest2dV2>()
        .Rules(rule::Image(UpsampleNearest2dV2::out))
        .Uses(UpsampleNearest2dV2::self, UpsampleNearest2dV2::outputSize, UpsampleNearest2dV2::scalesH,
              UpsampleNearest2dV2::scalesW)
        .Like("torch.ops.aten.upsample_nearest2d(self, outputSize, scalesH or None, scalesW or None)")
        .Tolerance("exact")
        .Prepares([](Planning& p) {
          using A = UpsampleNearest2dV2;
          return CheckForward(p, p.args[A::self], A::self, p.args[A::outputSize], p.args[A::out], A::out);
        })
        .Does([](const Call& c) {
          using A = UpsampleNearest2dV2;
          return pool::Nearest(c.parallel, ImageOf(c.args[A::self]), {c.args[A::scalesH], c.args[A::scalesW]}, false,
                               ImageOf(c.args[A::out]));
        });

NPU_OP(UpsampleNearestExact2d) =
    Op<UpsampleNearestExact2d>()
        .Rules(rule::Image(UpsampleNearestExact2d::out))
        .Uses(UpsampleNearestExact2d::self, UpsampleNearestExact2d::outputSize, UpsampleNearestExact2d::scalesH,
              UpsampleNearestExact2d::scalesW)
        .Like("torch.ops.aten._upsample_nearest_exact2d(self, outputSize, scalesH or None, scalesW or None)")
        .Tolerance("exact")
        .Prepares([](Planning& p) {
          using A = UpsampleNearestExact2d;
          return CheckForward(p, p.args[A::self], A::self, p.args[A::outputSize], p.args[A::out], A::out);
        })
        .Does([](const Call& c) {
          using A = UpsampleNearestExact2d;
          return pool::Nearest(c.parallel, ImageOf(c.args[A::self]), {c.args[A::scalesH], c.args[A::scalesW]}, true,
                               ImageOf(c.args[A::out]));
        });

NPU_OP(UpsampleBilinear2d) =
    Op<UpsampleBilinear2d>()
        .Rules(rule::Image(UpsampleBilinear2d::out))
        .Uses(UpsampleBilinear2d::self, UpsampleBilinear2d::outputSize, UpsampleBilinear2d::alignCorners,
              UpsampleBilinear2d::scalesH, UpsampleBilinear2d::scalesW)
        .Like("torch.ops.aten.upsample_bilinear2d(self, outputSize, alignCorners, scalesH or None, scalesW or None)")
        .Tolerance("accumulated")
        .Prepares([](Planning& p) {
          using A = UpsampleBilinear2d;
          return CheckForward(p, p.args[A::self], A::self, p.args[A::outputSize], p.args[A::out], A::out);
        })
        .Does([](const Call& c) {
          using A = UpsampleBilinear2d;
          return pool::Bilinear(c.parallel, ImageOf(c.args[A::self]), {c.args[A::scalesH], c.args[A::scalesW]},
                                c.args[A::alignCorners], ImageOf(c.args[A::out]));
        });

NPU_OP(UpsampleNearest2dBackward) = Op<UpsampleNearest2dBackward>()
                                        .Rules(rule::Image(UpsampleNearest2dBackward::gradInput))
                                        .Uses(UpsampleNearest2dBackward::gradOut, UpsampleNearest2dBackward::outputSize,
                                              UpsampleNearest2dBackward::inputSize, UpsampleNearest2dBackward::scalesH,
                                              UpsampleNearest2dBackward::scalesW)
                                        .Like(
                                            "torch.ops.aten.upsample_nearest2d_backward(gradOut, outputSize, "
                                            "inputSize, scalesH or None, scalesW or None)")
                                        .Tolerance("accumulated")
                                        .Prepares([](Planning& p) {
                                          using A = UpsampleNearest2dBackward;
                                          return CheckBackward(p, p.args[A::gradOut], A::gradOut, p.args[A::outputSize],
                                                               p.args[A::inputSize], p.args[A::gradInput],
                                                               A::gradInput);
                                        })
                                        .Does([](const Call& c) {
                                          using A = UpsampleNearest2dBackward;
                                          return pool::NearestBackward(c.parallel, ImageOf(c.args[A::gradOut]),
                                                                       {c.args[A::scalesH], c.args[A::scalesW]}, false,
                                                                       ImageOf(c.args[A::gradInput]));
                                        });

NPU_OP(UpsampleNearestExact2dBackward) =
    Op<UpsampleNearestExact2dBackward>()
        .Rules(rule::Image(UpsampleNearestExact2dBackward::out))
        .Uses(UpsampleNearestExact2dBackward::gradOutput, UpsampleNearestExact2dBackward::outputSize,
              UpsampleNearestExact2dBackward::inputSize, UpsampleNearestExact2dBackward::scalesH,
              UpsampleNearestExact2dBackward::scalesW)
        .Like(
            "torch.ops.aten._upsample_nearest_exact2d_backward(gradOutput, outputSize, inputSize, scalesH or None, "
            "scalesW or None)")
        .Tolerance("accumulated")
        .Prepares([](Planning& p) {
          using A = UpsampleNearestExact2dBackward;
          return CheckBackward(p, p.args[A::gradOutput], A::gradOutput, p.args[A::outputSize], p.args[A::inputSize],
                               p.args[A::out], A::out);
        })
        .Does([](const Call& c) {
          using A = UpsampleNearestExact2dBackward;
          return pool::NearestBackward(c.parallel, ImageOf(c.args[A::gradOutput]),
                                       {c.args[A::scalesH], c.args[A::scalesW]}, true, ImageOf(c.args[A::out]));
        });

NPU_OP(UpsampleBilinear2dBackward) =
    Op<UpsampleBilinear2dBackward>()
        .Rules(rule::Image(UpsampleBilinear2dBackward::out))
        .Uses(UpsampleBilinear2dBackward::gradOut, UpsampleBilinear2dBackward::outputSize,
              UpsampleBilinear2dBackward::inputSize, UpsampleBilinear2dBackward::alignCorners,
              UpsampleBilinear2dBackward::scalesH, UpsampleBilinear2dBackward::scalesW)
        .Like(
            "torch.ops.aten.upsample_bilinear2d_backward(gradOut, outputSize, inputSize, alignCorners, scalesH or "
            "None, scalesW or None)")
        .Tolerance("accumulated")
        .Prepares([](Planning& p) {
          using A = UpsampleBilinear2dBackward;
          return CheckBackward(p, p.args[A::gradOut], A::gradOut, p.args[A::outputSize], p.args[A::inputSize],
                               p.args[A::out], A::out);
        })
        .Does([](const Call& c) {
          using A = UpsampleBilinear2dBackward;
          return pool::BilinearBackward(c.parallel, ImageOf(c.args[A::gradOut]),
                                        {c.args[A::scalesH], c.args[A::scalesW]}, c.args[A::alignCorners],
                                        ImageOf(c.args[A::out]));
        });

NPU_OP(UpsampleBilinear2dBackwardV2) =
    Op<UpsampleBilinear2dBackwardV2>()
        .Rules(rule::Image(UpsampleBilinear2dBackwardV2::out))
        .Uses(UpsampleBilinear2dBackwardV2::gradOut, UpsampleBilinear2dBackwardV2::outputSize,
              UpsampleBilinear2dBackwardV2::inputSize, UpsampleBilinear2dBackwardV2::alignCorners,
              UpsampleBilinear2dBackwardV2::scalesH, UpsampleBilinear2dBackwardV2::scalesW)
        .Like(
            "torch.ops.aten.upsample_bilinear2d_backward(gradOut, outputSize, inputSize, alignCorners, scalesH or "
            "None, scalesW or None)")
        .Tolerance("accumulated")
        .Prepares([](Planning& p) {
          using A = UpsampleBilinear2dBackwardV2;
          return CheckBackward(p, p.args[A::gradOut], A::gradOut, p.args[A::outputSize], p.args[A::inputSize],
                               p.args[A::out], A::out);
        })
        .Does([](const Call& c) {
          using A = UpsampleBilinear2dBackwardV2;
          return pool::BilinearBackward(c.parallel, ImageOf(c.args[A::gradOut]),
                                        {c.args[A::scalesH], c.args[A::scalesW]}, c.args[A::alignCorners],
                                        ImageOf(c.args[A::out]));
        });

}  // namespace npu::ops
