// Average pooling, with windows of one size and adaptive.
#include "gen/abi/ops.h"
#include "ops/pool/image.h"

namespace npu::ops {
namespace {

struct State {
  pool::Window window;
  pool::AverageRule rule;
};

int64_t Height(const Tensor& t) { return t.shape[static_cast<size_t>(t.rank - 2)]; }
int64_t Width(const Tensor& t) { return t.shape[static_cast<size_t>(t.rank - 1)]; }

}  // namespace

using abi::AvgPool2d, abi::AvgPool2dBackward, abi::AdaptiveAvgPool2d, abi::AdaptiveAvgPool2dBackward;

NPU_OP(AvgPool2d) =
    Op<AvgPool2d>()
        .Rules(rule::Image(AvgPool2d::out))
        .Uses(AvgPool2d::self, AvgPool2d::kernelSize, AvgPool2d::strides, AvgPool2d::paddings, AvgPool2d::ceilMode,
              AvgPool2d::countIncludePad, AvgPool2d::divisorOverride, AvgPool2d::cubeMathType)
        .Like(
            "torch.nn.functional.avg_pool2d(self, kernelSize, strides, paddings, ceilMode, countIncludePad, "
            "divisorOverride or None)")
        .Tolerance("accumulated")
        .Prepares([](Planning& p) -> Status {
          const Args& a = p.args;
          const Tensor& x = a[AvgPool2d::self];
          NPU_TRY(CheckImage(p, x, AvgPool2d::self));
          NPU_TRY(CheckImage(p, a[AvgPool2d::out], AvgPool2d::out));
          State s{{}, {a[AvgPool2d::countIncludePad], a[AvgPool2d::divisorOverride]}};
          int64_t h = 0, w = 0;
          NPU_TRY(PlanPool(
              p, x,
              {a[AvgPool2d::kernelSize], a[AvgPool2d::strides], a[AvgPool2d::paddings], {}, a[AvgPool2d::ceilMode]},
              &s.window, &h, &w));
          NPU_TRY(CheckSize(p, a[AvgPool2d::out], AvgPool2d::out, x, h, w));
          p.NewState(s);
          return {};
        })
        .Does([](const Call& c) {
          const State& s = c.State<State>();
          return pool::AvgPool(c.parallel, ImageOf(c.args[AvgPool2d::self]), s.window, s.rule,
                               ImageOf(c.args[AvgPool2d::out]));
        });

NPU_OP(AvgPool2dBackward) =
    Op<AvgPool2dBackward>()
        .Rules(rule::Image(AvgPool2dBackward::gradInput))
        .Uses(AvgPool2dBackward::self, AvgPool2dBackward::gradOutput, AvgPool2dBackward::kernelSize,
              AvgPool2dBackward::stride, AvgPool2dBackward::padding, AvgPool2dBackward::ceilMode,
              AvgPool2dBackward::countIncludePad, AvgPool2dBackward::divisorOverride, AvgPool2dBackward::cubeMathType)
        .Like(
            "torch.ops.aten.avg_pool2d_backward(gradOutput, self, kernelSize, stride, padding, ceilMode, "
            "countIncludePad, divisorOverride or None)")
        .Tolerance("accumulated")
        .Prepares([](Planning& p) -> Status {
          const Args& a = p.args;
          const Tensor& x = a[AvgPool2dBackward::self];
          NPU_TRY(CheckImage(p, x, AvgPool2dBackward::self));
          NPU_TRY(CheckImage(p, a[AvgPool2dBackward::gradOutput], AvgPool2dBackward::gradOutput));
          NPU_TRY(CheckImage(p, a[AvgPool2dBackward::gradInput], AvgPool2dBackward::gradInput));
          NPU_TRY(CheckLike(p, a[AvgPool2dBackward::gradInput], AvgPool2dBackward::gradInput, x));
          State s{{}, {a[AvgPool2dBackward::countIncludePad], a[AvgPool2dBackward::divisorOverride]}};
          int64_t h = 0, w = 0;
          NPU_TRY(PlanPool(p, x,
                           {a[AvgPool2dBackward::kernelSize],
                            a[AvgPool2dBackward::stride],
                            a[AvgPool2dBackward::padding],
                            {},
                            a[AvgPool2dBackward::ceilMode]},
                           &s.window, &h, &w));
          NPU_TRY(CheckSize(p, a[AvgPool2dBackward::gradOutput], AvgPool2dBackward::gradOutput, x, h, w));
          p.NewState(s);
          return {};
        })
        .Does([](const Call& c) {
          const State& s = c.State<State>();
          return pool::AvgPoolBackward(c.parallel, ImageOf(c.args[AvgPool2dBackward::gradOutput]), s.window, s.rule,
                                       ImageOf(c.args[AvgPool2dBackward::gradInput]));
        });

NPU_OP(AdaptiveAvgPool2d) = Op<AdaptiveAvgPool2d>()
                                .Rules(rule::Image(AdaptiveAvgPool2d::out))
                                .Uses(AdaptiveAvgPool2d::self, AdaptiveAvgPool2d::outputSize)
                                .Like("torch.nn.functional.adaptive_avg_pool2d(self, outputSize)")
                                .Tolerance("accumulated")
                                .Prepares([](Planning& p) -> Status {
                                  const Args& a = p.args;
                                  int64_t h = 0, w = 0;
                                  NPU_TRY(CheckImage(p, a[AdaptiveAvgPool2d::self], AdaptiveAvgPool2d::self));
                                  NPU_TRY(CheckImage(p, a[AdaptiveAvgPool2d::out], AdaptiveAvgPool2d::out));
                                  NPU_TRY(PlanOutputSize(p, a[AdaptiveAvgPool2d::outputSize], &h, &w));
                                  return CheckSize(p, a[AdaptiveAvgPool2d::out], AdaptiveAvgPool2d::out,
                                                   a[AdaptiveAvgPool2d::self], h, w);
                                })
                                .Does([](const Call& c) {
                                  return pool::AdaptiveAvgPool(c.parallel, ImageOf(c.args[AdaptiveAvgPool2d::self]),
                                                               ImageOf(c.args[AdaptiveAvgPool2d::out]));
                                });

NPU_OP(AdaptiveAvgPool2dBackward) =
    Op<AdaptiveAvgPool2dBackward>()
        .Rules(rule::Image(AdaptiveAvgPool2dBackward::out))
        .Uses(AdaptiveAvgPool2dBackward::self, AdaptiveAvgPool2dBackward::gradOutput)
        .Like("torch.ops.aten._adaptive_avg_pool2d_backward(gradOutput, self)")
        .Tolerance("accumulated")
        .Prepares([](Planning& p) -> Status {
          const Args& a = p.args;
          const Tensor &dy = a[AdaptiveAvgPool2dBackward::gradOutput], &x = a[AdaptiveAvgPool2dBackward::self];
          NPU_TRY(CheckImage(p, x, AdaptiveAvgPool2dBackward::self));
          NPU_TRY(CheckImage(p, dy, AdaptiveAvgPool2dBackward::gradOutput));
          NPU_TRY(CheckImage(p, a[AdaptiveAvgPool2dBackward::out], AdaptiveAvgPool2dBackward::out));
          NPU_TRY(CheckLike(p, a[AdaptiveAvgPool2dBackward::out], AdaptiveAvgPool2dBackward::out, x));
          return CheckSize(p, dy, AdaptiveAvgPool2dBackward::gradOutput, x, Height(dy), Width(dy));
        })
        .Does([](const Call& c) {
          return pool::AdaptiveAvgPoolBackward(c.parallel, ImageOf(c.args[AdaptiveAvgPool2dBackward::gradOutput]),
                                               ImageOf(c.args[AdaptiveAvgPool2dBackward::out]));
        });

}  // namespace npu::ops
