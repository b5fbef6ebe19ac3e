// GLU and PReLU: elementwise over parts or with a weight for each channel.
#include <memory>

#include "gen/abi/ops.h"
#include "kernels/simd/reduce/reduce.h"
#include "ops/elementwise/family.h"
#include "tensor/shape.h"

namespace npu::ops {
namespace {

Status PointwiseRun(const simd::PointwiseKernel& kernel, DType compute, std::array<const Tensor*, 3> in,
                    const Tensor& out, Parallel& parallel) {
  simd::Pointwise p{&kernel, compute};
  p.in = in;
  p.out = &out;
  simd::RunPointwise(p, parallel);
  return {};
}

// One of the two halves along a dimension.
Tensor HalfOf(const Tensor& t, int dim, int which) {
  Tensor half = t;
  const auto d = static_cast<size_t>(dim);
  half.shape[d] /= 2;
  half.data = static_cast<char*>(t.data) + which * half.shape[d] * t.strides[d] * ItemSize(t.dtype);
  return half;
}

// `whole` splits evenly along dim, and `half` has the shape of one part.
Status CheckHalves(const Planning& p, const Tensor& whole, const Tensor& half, int64_t dim,
                   std::string_view half_name) {
  const int d = WrapDim(dim, whole.rank);
  if (d < 0 || whole.rank == 0 || whole.shape[static_cast<size_t>(d)] % 2 != 0) {
    return p.Refuse("self has shape {} and cannot be halved in dim {}.", ShapeText(whole.Shape()), dim)
        .Remedy("Choose a dimension of even size.");
  }
  const Tensor want = HalfOf(whole, d, 0);
  if (SameShape(half.Shape(), want.Shape())) return {};
  return p
      .Refuse("{} has shape {}, but half of self is {}.", half_name, ShapeText(half.Shape()), ShapeText(want.Shape()))
      .Remedy("Give {} that shape.", half_name);
}

// The dimension of the only size that is not 1, or the last.
int LongDim(const Tensor& t) {
  for (int d = 0; d < t.rank; ++d)
    if (t.shape[static_cast<size_t>(d)] != 1) return d;
  return t.rank - 1;
}

// The weight along the channels of x, which is dimension 1 (or the only one).
Tensor AlongChannels(const Tensor& weight, const Tensor& x) {
  Tensor w = weight;
  w.rank = x.rank;
  w.shape.fill(1);
  w.strides.fill(0);
  if (weight.Numel() == 1) return w;
  const size_t channel = x.rank > 1 ? 1 : 0;
  w.shape[channel] = weight.Numel();
  w.strides[channel] = weight.rank > 0 ? weight.strides[static_cast<size_t>(LongDim(weight))] : 0;
  return w;
}

Status CheckWeight(const Planning& p, const Tensor& x, const Tensor& weight) {
  const int64_t channels = x.rank > 1 ? x.shape[1] : x.rank == 1 ? x.shape[0] : 1;
  if (weight.Numel() == 1) return {};
  const int long_dim = LongDim(weight);  // [C], or one size C among ones: torch expands weights to the rank of self
  if (weight.Numel() == channels && (weight.rank == 1 || channels == weight.shape[static_cast<size_t>(long_dim)]))
    return {};
  return p
      .Refuse("weight has shape {}, but self has shape {} with {} channels.", ShapeText(weight.Shape()),
              ShapeText(x.Shape()), channels)
      .Remedy("Give one weight, or one for each channel.");
}

}  // namespace

using abi::Glu, abi::GluBackward, abi::Prelu, abi::PreluBackward;
NPU_OP(Glu) = Op<Glu>()
                  .Rules(rule::DtypeIn(Glu::self, kFloats), rule::SameDtype(Glu::self, Glu::out),
                         rule::AnyShape(Glu::out))
                  .Uses(Glu::dim)
                  .Samples(Glu::self, "[torch.randn(6, 5), torch.randn(2, 3, 4), torch.randn(3, 2)]")
                  .Samples(Glu::dim, "[0, -1, 1]")
                  .Like("F.glu(self, dim)")
                  .Tolerance("ulp")
                  .Prepares([](Planning& p) -> Status {
                    return CheckHalves(p, p.args[Glu::self], p.args[Glu::out], p.args[Glu::dim], "out");
                  })
                  .Does([](const Call& c) -> Status {
                    const Tensor& x = c.args[Glu::self];
                    const int dim = WrapDim(c.args[Glu::dim], x.rank);
                    const Tensor a = HalfOf(x, dim, 0), b = HalfOf(x, dim, 1);
                    return PointwiseRun(simd::kGlu, x.dtype, {&a, &b, nullptr}, c.args[Glu::out], c.parallel);
                  });
NPU_OP(GluBackward) = Op<GluBackward>()
                          .Rules(rule::DtypeIn(GluBackward::self, kFloats),
                                 rule::SameDtype(GluBackward::self, GluBackward::gradOut),
                                 rule::SameShape(GluBackward::self, GluBackward::out),
                                 rule::SameDtype(GluBackward::self, GluBackward::out))
                          .Uses(GluBackward::dim)
                          .Samples(GluBackward::self, "[torch.linspace(-2, 2, 24).view(6, 4)]")
                          .Samples(GluBackward::gradOut, "[torch.linspace(1, 3, 12).view(6, 2)]")
                          .Samples(GluBackward::dim, "[-1, 1]")
                          .Like("torch.ops.aten.glu_backward(gradOut, self, dim)")
                          .Tolerance("ulp")
                          .Prepares([](Planning& p) -> Status {
                            return CheckHalves(p, p.args[GluBackward::self], p.args[GluBackward::gradOut],
                                               p.args[GluBackward::dim], "gradOut");
                          })
                          .Does([](const Call& c) -> Status {
                            const Tensor& x = c.args[GluBackward::self];
                            const Tensor& grad = c.args[GluBackward::gradOut];
                            const int dim = WrapDim(c.args[GluBackward::dim], x.rank);
                            const Tensor a = HalfOf(x, dim, 0), b = HalfOf(x, dim, 1);
                            const Tensor da = HalfOf(c.args[GluBackward::out], dim, 0),
                                         db = HalfOf(c.args[GluBackward::out], dim, 1);
                            NPU_TRY(PointwiseRun(simd::kGlu, x.dtype, {&grad, &b, nullptr}, da, c.parallel));
                            return PointwiseRun(simd::kGluGrad, x.dtype, {&grad, &a, &b}, db, c.parallel);
                          });

NPU_OP(Prelu) =
    Op<Prelu>()
        .Rules(rule::DtypeIn(Prelu::self, kFloats), rule::SameShape(Prelu::self, Prelu::out),
               rule::SameDtype(Prelu::self, Prelu::out))
        .Uses(Prelu::weight)
        .Samples(Prelu::weight, "[torch.tensor([0.25])]")
        .Like("F.prelu(self, weight.to(self.dtype))")
        .Prepares([](Planning& p) -> Status { return CheckWeight(p, p.args[Prelu::self], p.args[Prelu::weight]); })
        .Does([](const Call& c) -> Status {
          const Tensor& x = c.args[Prelu::self];
          const Tensor weight = AlongChannels(c.args[Prelu::weight], x);
          return PointwiseRun(simd::kPrelu, x.dtype, {&x, &weight, nullptr}, c.args[Prelu::out], c.parallel);
        });
NPU_OP(PreluBackward) =
    Op<PreluBackward>()
        .Rules(rule::DtypeIn(PreluBackward::self, kFloats),
               rule::SameShape(PreluBackward::self, PreluBackward::gradOutput),
               rule::SameShape(PreluBackward::self, PreluBackward::gradInput),
               rule::SameDtype(PreluBackward::self, PreluBackward::gradInput),
               rule::SameShape(PreluBackward::weight, PreluBackward::gradWeight),
               rule::SameDtype(PreluBackward::weight, PreluBackward::gradWeight))
        .Samples(PreluBackward::self, "[torch.linspace(-2, 2, 24).view(2, 3, 4)]")
        .Samples(PreluBackward::gradOutput, "[torch.linspace(1, 3, 24).view(2, 3, 4)]")
        .Samples(PreluBackward::weight, "[torch.tensor([0.25, 0.5, 1.0]), torch.tensor([0.25])]")
        .Like("prelu_backward(gradOutput, self, weight)")
        .Tolerance("accumulated")
        .Prepares([](Planning& p) -> Status {
          return CheckWeight(p, p.args[PreluBackward::self], p.args[PreluBackward::weight]);
        })
        .Does([](const Call& c) -> Status {
          const Tensor& x = c.args[PreluBackward::self];
          const Tensor& grad = c.args[PreluBackward::gradOutput];
          const Tensor weight = AlongChannels(c.args[PreluBackward::weight], x);
          NPU_TRY(PointwiseRun(simd::kPreluGrad, x.dtype, {&grad, &x, &weight}, c.args[PreluBackward::gradInput],
                               c.parallel));
          const auto terms = std::make_unique<float[]>(static_cast<size_t>(x.Numel()) + 1);
          const Tensor each = MakeContiguous(terms.get(), DType::f32, x.Shape());
          NPU_TRY(PointwiseRun(simd::kPreluWeightGrad, DType::f32, {&grad, &x, nullptr}, each, c.parallel));
          uint32_t summed = 0;  // all dimensions but the channels'
          const int channel = c.args[PreluBackward::weight].Numel() == 1 ? -1 : x.rank > 1 ? 1 : 0;
          for (int d = 0; d < x.rank; ++d)
            if (d != channel) summed |= 1u << d;
          Tensor total = c.args[PreluBackward::gradWeight];
          if (channel >= 0) {
            total.strides[0] = total.strides[static_cast<size_t>(LongDim(total))];
            total.shape[0] = total.Numel();
          }
          total.rank = channel < 0 ? 0 : 1;
          const auto sums = std::make_unique<float[]>(static_cast<size_t>(total.Numel()) + 1);
          const Tensor sum = MakeContiguous(sums.get(), DType::f32, total.Shape());
          simd::Sum(each, summed, sum, c.parallel);  // into f32: a sum into a half would round its terms first
          simd::CopyTensor(sum, total, c.parallel);
          return {};
        });

}  // namespace npu::ops
