// Convolution, transposed convolution and their gradients. cubeMathType allows the card a lower precision; here f32
// stays f32 whatever it says.
#include "gen/abi/ops.h"
#include "ops/conv/geometry.h"
#include "tensor/shape.h"

namespace npu::ops {
namespace {

using abi::Convolution, abi::ConvolutionBackward, abi::ConvDepthwise2d;

struct State {
  ConvCall call;
  int spatial;
};

conv::Bias BiasOf(const Tensor* t) {
  if (t == nullptr || t->Numel() == 0) return {};
  // [c], or [1, c, 1, 1] as some callers pass it: the one dimension that has a size.
  int64_t stride = 1;
  for (int d = 0; d < t->rank; ++d) {
    if (t->shape[static_cast<size_t>(d)] != 1) stride = t->strides[static_cast<size_t>(d)];
  }
  return {t->data, t->dtype, stride};
}

Status CheckBias(const Planning& p, const Tensor* bias, TensorToken name, int64_t channels) {
  if (bias == nullptr) return {};
  if (bias->Numel() != channels) {
    return p.Refuse("{} has shape {} for {} output channels.", p.ParamName(name), ShapeText(bias->Shape()), channels)
        .Remedy("Give it one value for each output channel.");
  }
  if (!conv::Supports(bias->dtype)) {
    return p.Refuse("{} is {}.", p.ParamName(name), Name(bias->dtype))
        .Remedy("Convolutions take float32, float16 and bfloat16.");
  }
  return {};
}

Status Run(Parallel& parallel, const State& s, const Tensor& x, const Tensor& w, const Tensor* bias, const Tensor& y) {
  const conv::Volume vx = VolumeOf(x, s.spatial), vw = WeightOf(w, s.spatial), vy = VolumeOf(y, s.spatial);
  if (s.call.transposed) return conv::BackwardData(parallel, s.call.g, vx, vw, BiasOf(bias), vy);
  return conv::Forward(parallel, s.call.g, vx, vw, BiasOf(bias), vy);
}

ConvNumbers NumbersOf(const Args& a) {
  return {a[ConvolutionBackward::stride],        a[ConvolutionBackward::padding],    a[ConvolutionBackward::dilation],
          a[ConvolutionBackward::outputPadding], a[ConvolutionBackward::transposed], a[ConvolutionBackward::groups]};
}

// A gradient that is asked for must be there and have the shape of what it is the gradient of.
Status CheckGradient(const Planning& p, const Tensor* gradient, TensorToken name, const Tensor* like, bool wanted) {
  if (!wanted) return {};
  if (gradient == nullptr) {
    return p.Refuse("outputMask asks for {}, which is null.", p.ParamName(name))
        .Remedy("Pass a tensor or clear its flag in outputMask.");
  }
  if (like != nullptr && !npu::SameShape(gradient->Shape(), like->Shape())) {
    return p
        .Refuse("{} has shape {} instead of {}.", p.ParamName(name), ShapeText(gradient->Shape()),
                ShapeText(like->Shape()))
        .Remedy("A gradient has the shape of its tensor.");
  }
  if (!conv::Supports(gradient->dtype)) {
    return p.Refuse("{} is {}.", p.ParamName(name), Name(gradient->dtype))
        .Remedy("Convolutions take float32, float16 and bfloat16.");
  }
  return {};
}

bool Wanted(const Args& a, size_t i) {
  const auto mask = a[ConvolutionBackward::outputMask];
  return i < mask.size() && mask[i];
}

}  // namespace

NPU_OP(Convolution) = Op<Convolution>()
                          .Rules(rule::Convolved(Convolution::output))
                          .Uses(Convolution::input, Convolution::weight, Convolution::bias, Convolution::stride,
                                Convolution::padding, Convolution::dilation, Convolution::transposed,
                                Convolution::outputPadding, Convolution::groups, Convolution::cubeMathType)
                          .Like(
                              "torch.ops.aten.convolution(input, weight, bias, stride, padding, dilation, transposed, "
                              "outputPadding, groups)")
                          .Tolerance("accumulated")
                          .Prepares([](Planning& p) -> Status {
                            const Args& a = p.args;
                            const ConvNumbers n{a[Convolution::stride],     a[Convolution::padding],
                                                a[Convolution::dilation],   a[Convolution::outputPadding],
                                                a[Convolution::transposed], a[Convolution::groups]};
                            State s{{}, a[Convolution::weight].rank - 2};
                            NPU_TRY(PlanConv(p, a[Convolution::input], Convolution::input, a[Convolution::weight],
                                             Convolution::weight, a[Convolution::output], Convolution::output, n,
                                             &s.call));
                            const int64_t channels = s.call.transposed ? s.call.g.in_channels : s.call.g.out_channels;
                            NPU_TRY(CheckBias(p, a[Convolution::bias], Convolution::bias, channels));
                            ConvCost(p, s.call, 1);
                            p.NewState(s);
                            return {};
                          })
                          .Does([](const Call& c) -> Status {
                            const Args& a = c.args;
                            return Run(c.parallel, c.State<State>(), a[Convolution::input], a[Convolution::weight],
                                       a[Convolution::bias], a[Convolution::output]);
                          });

NPU_OP(ConvDepthwise2d) =
    Op<ConvDepthwise2d>()
        .Rules(rule::Convolved(ConvDepthwise2d::out))
        .Uses(ConvDepthwise2d::self, ConvDepthwise2d::weight, ConvDepthwise2d::kernelSize, ConvDepthwise2d::bias,
              ConvDepthwise2d::stride, ConvDepthwise2d::padding, ConvDepthwise2d::dilation,
              ConvDepthwise2d::cubeMathType)
        .Like("torch.ops.aten._conv_depthwise2d(self, weight, kernelSize, bias, stride, padding, dilation)")
        .Tolerance("accumulated")
        .Prepares([](Planning& p) -> Status {
          const Args& a = p.args;
          const Tensor &x = a[ConvDepthwise2d::self], &w = a[ConvDepthwise2d::weight];
          if (w.rank != 4 || w.shape[1] != 1 || x.rank < 3) {
            return p
                .Refuse("{} of shape {} and {} of shape {}.", p.ParamName(ConvDepthwise2d::self), ShapeText(x.Shape()),
                        p.ParamName(ConvDepthwise2d::weight), ShapeText(w.Shape()))
                .Remedy(
                    "A depthwise weight is [channels * multiplier, 1, height, width] for images [batch, channels, "
                    "height, width].");
          }
          const ConvNumbers n{a[ConvDepthwise2d::stride],
                              a[ConvDepthwise2d::padding],
                              a[ConvDepthwise2d::dilation],
                              {},
                              false,
                              x.shape[static_cast<size_t>(x.rank - 3)]};
          State s{{}, 2};
          NPU_TRY(PlanConv(p, x, ConvDepthwise2d::self, w, ConvDepthwise2d::weight, a[ConvDepthwise2d::out],
                           ConvDepthwise2d::out, n, &s.call));
          NPU_TRY(CheckBias(p, a[ConvDepthwise2d::bias], ConvDepthwise2d::bias, s.call.g.out_channels));
          ConvCost(p, s.call, 1);
          p.NewState(s);
          return {};
        })
        .Does([](const Call& c) -> Status {
          const Args& a = c.args;
          return Run(c.parallel, c.State<State>(), a[ConvDepthwise2d::self], a[ConvDepthwise2d::weight],
                     a[ConvDepthwise2d::bias], a[ConvDepthwise2d::out]);
        });

// Outputs whose flag in outputMask is clear may be null or scratch; they are left alone.
NPU_OP(ConvolutionBackward) =
    Op<ConvolutionBackward>()
        .Rules(rule::Convolved(ConvolutionBackward::gradInput), rule::Convolved(ConvolutionBackward::gradWeight),
               rule::Convolved(ConvolutionBackward::gradBias))
        .Uses(ConvolutionBackward::gradOutput, ConvolutionBackward::input, ConvolutionBackward::weight,
              ConvolutionBackward::biasSizes, ConvolutionBackward::stride, ConvolutionBackward::padding,
              ConvolutionBackward::dilation, ConvolutionBackward::transposed, ConvolutionBackward::outputPadding,
              ConvolutionBackward::groups, ConvolutionBackward::outputMask, ConvolutionBackward::cubeMathType)
        .Like(
            "torch.ops.aten.convolution_backward(gradOutput, input, weight, biasSizes, stride, padding, dilation, "
            "transposed, "
            "outputPadding, groups, outputMask)")
        .Tolerance("accumulated")
        .Prepares([](Planning& p) -> Status {
          const Args& a = p.args;
          const Tensor &x = a[ConvolutionBackward::input], &w = a[ConvolutionBackward::weight];
          State s{{}, w.rank - 2};
          NPU_TRY(PlanConv(p, x, ConvolutionBackward::input, w, ConvolutionBackward::weight,
                           a[ConvolutionBackward::gradOutput], ConvolutionBackward::gradOutput, NumbersOf(a), &s.call));
          NPU_TRY(
              CheckGradient(p, a[ConvolutionBackward::gradInput], ConvolutionBackward::gradInput, &x, Wanted(a, 0)));
          NPU_TRY(
              CheckGradient(p, a[ConvolutionBackward::gradWeight], ConvolutionBackward::gradWeight, &w, Wanted(a, 1)));
          NPU_TRY(
              CheckGradient(p, a[ConvolutionBackward::gradBias], ConvolutionBackward::gradBias, nullptr, Wanted(a, 2)));
          if (Wanted(a, 2)) {
            NPU_TRY(CheckBias(p, a[ConvolutionBackward::gradBias], ConvolutionBackward::gradBias,
                              s.call.transposed ? s.call.g.in_channels : s.call.g.out_channels));
          }
          ConvCost(p, s.call, 2);
          p.NewState(s);
          return {};
        })
        .Does([](const Call& c) -> Status {
          const Args& a = c.args;
          const State& s = c.State<State>();
          const Tensor &dy = a[ConvolutionBackward::gradOutput], &x = a[ConvolutionBackward::input],
                       &w = a[ConvolutionBackward::weight];
          const conv::Volume vdy = VolumeOf(dy, s.spatial), vx = VolumeOf(x, s.spatial);
          if (Wanted(a, 0)) {
            const conv::Volume vw = WeightOf(w, s.spatial),
                               vdx = VolumeOf(*a[ConvolutionBackward::gradInput], s.spatial);
            NPU_TRY(s.call.transposed ? conv::Forward(c.parallel, s.call.g, vdy, vw, {}, vdx)
                                      : conv::BackwardData(c.parallel, s.call.g, vdy, vw, {}, vdx));
          }
          if (Wanted(a, 1)) {
            const conv::Volume vdw = WeightOf(*a[ConvolutionBackward::gradWeight], s.spatial);
            NPU_TRY(s.call.transposed ? conv::BackwardWeight(c.parallel, s.call.g, vx, vdy, vdw)
                                      : conv::BackwardWeight(c.parallel, s.call.g, vdy, vx, vdw));
          }
          if (Wanted(a, 2)) {
            std::array<int64_t, 5> size{s.call.g.batch,
                                        s.call.transposed ? s.call.g.in_channels : s.call.g.out_channels};
            const auto& positions = s.call.transposed ? s.call.g.in : s.call.g.out;
            std::copy(positions.begin(), positions.end(), size.begin() + 2);
            conv::BackwardBias(c.parallel, vdy, size, BiasOf(a[ConvolutionBackward::gradBias]));
          }
          return {};
        });

}  // namespace npu::ops
