// Elementwise operators that are rarely met: angles, quantisation in floats, noise. Plain loops.
#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <numbers>

#include "gen/abi/ops.h"
#include "kernels/simd/random/random.h"
#include "ops/common/dims.h"
#include "ops/common/values.h"

namespace npu::ops {

using namespace rule;  // NOLINT(google-build-using-namespace)

namespace {

size_t U(int64_t i) { return static_cast<size_t>(i); }

// value -> scale * (clamp(round(value / scale) + zero) - zero), and whether the clamp left it alone.
template <class T>
bool FakeQuant(T x, float scale, int64_t zero, int64_t low, int64_t high, T* y) {
  const float inverse = 1.0F / scale;
  const auto q = static_cast<int64_t>(static_cast<float>(zero) + std::nearbyint(static_cast<float>(x) * inverse));
  *y = static_cast<T>(static_cast<float>(std::clamp(q, low, high) - zero) * scale);
  return q >= low && q <= high;
}

}  // namespace

using abi::AngleV2, abi::Polar, abi::MaskedScale;
NPU_OP(AngleV2) = Op<AngleV2>()
                      .Rules(DtypeIn(AngleV2::x, kReals | kComplexes), SameShape(AngleV2::x, AngleV2::out),
                             DtypeIn(AngleV2::out, kFloats))
                      .Tolerance("ulp")
                      .Like("torch.angle(x)")
                      .Does([](const Call& c) -> Status {
                        const Tensor& x = c.args[AngleV2::x];
                        return WithFloatOrComplex(
                            IsComplex(x.dtype) || IsFloat(x.dtype) ? x.dtype : DType::f32, [&]<class T>() -> Status {
                              const Values<T> in(x, c.parallel);
                              if constexpr (std::is_floating_point_v<T>) {
                                Results<T> out(c.args[AngleV2::out], c.parallel);
                                for (int64_t i = 0; i < in.size(); ++i)
                                  out[i] = in[i] < 0 ? std::numbers::pi_v<T> : std::isnan(in[i]) ? in[i] : T{0};
                              } else {
                                Results<typename T::value_type> out(c.args[AngleV2::out], c.parallel);
                                for (int64_t i = 0; i < in.size(); ++i) out[i] = std::atan2(in[i].imag(), in[i].real());
                              }
                              return {};
                            });
                      });
NPU_OP(Polar) = Op<Polar>()
                    .Rules(DtypeIn(Polar::input, TypeSet{DType::f32, DType::f64}),
                           SameDtype(Polar::input, Polar::angle), DtypeIn(Polar::out, kComplexes),
                           Broadcast(Polar::input, Polar::angle, Polar::out))
                    .Tolerance("ulp")
                    .Like("torch.polar(input, angle)")
                    .Does([](const Call& c) -> Status {
                      const auto shape = c.args[Polar::out].Shape();
                      return WithFloat(c.args[Polar::out].dtype == DType::c128 ? DType::f64 : DType::f32,
                                       [&]<class T>() -> Status {
                                         const Values<T> size(Expanded(c.args[Polar::input], shape), c.parallel),
                                             angle(Expanded(c.args[Polar::angle], shape), c.parallel);
                                         Results<std::complex<T>> out(c.args[Polar::out], c.parallel);
                                         for (int64_t i = 0; i < size.size(); ++i)
                                           out[i] = {size[i] * std::cos(angle[i]), size[i] * std::sin(angle[i])};
                                         return {};
                                       });
                    });
NPU_OP(MaskedScale) = Op<MaskedScale>()
                          .Rules(DtypeIn(MaskedScale::self, kFloats), SameShape(MaskedScale::self, MaskedScale::mask),
                                 SameShape(MaskedScale::self, MaskedScale::out),
                                 SameDtype(MaskedScale::self, MaskedScale::out), DtypeIn(MaskedScale::mask, kReals))
                          .Uses(MaskedScale::scale)
                          .Tolerance("rounded")
                          .Like("self * mask * scale")
                          .Does([](const Call& c) -> Status {
                            return WithFloat(c.args[MaskedScale::self].dtype, [&]<class T>() -> Status {
                              const Values<T> x(c.args[MaskedScale::self], c.parallel),
                                  mask(c.args[MaskedScale::mask], c.parallel);
                              Results<T> out(c.args[MaskedScale::out], c.parallel);
                              const T scale = static_cast<T>(c.args[MaskedScale::scale]);
                              for (int64_t i = 0; i < x.size(); ++i) out[i] = x[i] * mask[i] * scale;
                              return {};
                            });
                          });

using abi::FakeQuantPerTensorAffineCachemask, abi::FakeQuantPerChannelAffineCachemask;
NPU_OP(FakeQuantPerTensorAffineCachemask) =
    Op<FakeQuantPerTensorAffineCachemask>()
        .Rules(DtypeIn(FakeQuantPerTensorAffineCachemask::self, kFloats),
               SameShape(FakeQuantPerTensorAffineCachemask::self, FakeQuantPerTensorAffineCachemask::out),
               SameDtype(FakeQuantPerTensorAffineCachemask::self, FakeQuantPerTensorAffineCachemask::out),
               SameShape(FakeQuantPerTensorAffineCachemask::self, FakeQuantPerTensorAffineCachemask::mask),
               DtypeIn(FakeQuantPerTensorAffineCachemask::mask, kBool),
               DtypeIn(FakeQuantPerTensorAffineCachemask::scale, kReals),
               DtypeIn(FakeQuantPerTensorAffineCachemask::zeroPoint, kReals),
               NotEmpty(FakeQuantPerTensorAffineCachemask::scale),
               NotEmpty(FakeQuantPerTensorAffineCachemask::zeroPoint))
        .Uses(FakeQuantPerTensorAffineCachemask::fakeQuantEnabled, FakeQuantPerTensorAffineCachemask::quantMin,
              FakeQuantPerTensorAffineCachemask::quantMax)
        .Tolerance("rounded")
        .Like("torch.ops.aten.fake_quantize_per_tensor_affine_cachemask(self, scale, zeroPoint, quantMin, quantMax)")
        .Does([](const Call& c) -> Status {
          using A = FakeQuantPerTensorAffineCachemask;
          return WithFloat(c.args[A::self].dtype, [&]<class T>() -> Status {
            const Values<T> x(c.args[A::self], c.parallel);
            const Values<float> scale(c.args[A::scale], c.parallel);
            const Values<int64_t> zero(c.args[A::zeroPoint], c.parallel);
            Results<T> out(c.args[A::out], c.parallel);
            Results<uint8_t> mask(c.args[A::mask], c.parallel);
            const bool enabled = c.args[A::fakeQuantEnabled] != 0;
            for (int64_t i = 0; i < x.size(); ++i) {
              if (enabled)
                mask[i] = FakeQuant(x[i], scale[0], zero[0], c.args[A::quantMin], c.args[A::quantMax], &out[i]) ? 1 : 0;
              else
                out[i] = x[i], mask[i] = 1;
            }
            return {};
          });
        });
NPU_OP(FakeQuantPerChannelAffineCachemask) =
    Op<FakeQuantPerChannelAffineCachemask>()
        .Rules(DtypeIn(FakeQuantPerChannelAffineCachemask::self, kFloats),
               SameShape(FakeQuantPerChannelAffineCachemask::self, FakeQuantPerChannelAffineCachemask::out),
               SameDtype(FakeQuantPerChannelAffineCachemask::self, FakeQuantPerChannelAffineCachemask::out),
               SameShape(FakeQuantPerChannelAffineCachemask::self, FakeQuantPerChannelAffineCachemask::mask),
               DtypeIn(FakeQuantPerChannelAffineCachemask::mask, kBool),
               DtypeIn(FakeQuantPerChannelAffineCachemask::scale, kReals),
               DtypeIn(FakeQuantPerChannelAffineCachemask::zeroPoint, kReals),
               DimInRange(FakeQuantPerChannelAffineCachemask::axis, FakeQuantPerChannelAffineCachemask::self))
        .Uses(FakeQuantPerChannelAffineCachemask::quantMin, FakeQuantPerChannelAffineCachemask::quantMax)
        .Tolerance("rounded")
        .Like(
            "torch.ops.aten.fake_quantize_per_channel_affine_cachemask(self, scale, zeroPoint, axis, quantMin, "
            "quantMax)")
        .Prepares([](Planning& p) -> Status {
          using A = FakeQuantPerChannelAffineCachemask;
          const Tensor& x = p.args[A::self];
          const int64_t channels = x.rank == 0 ? 1 : x.shape[U(WrapDim(p.args[A::axis], x.rank))];
          if (p.args[A::scale].Numel() == channels && p.args[A::zeroPoint].Numel() == channels) return {};
          return p
              .Refuse("scale has {} and zeroPoint {} elements.", p.args[A::scale].Numel(), p.args[A::zeroPoint].Numel())
              .Remedy("There is one for each of {} channels.", channels);
        })
        .Does([](const Call& c) -> Status {
          using A = FakeQuantPerChannelAffineCachemask;
          const Tensor& self = c.args[A::self];
          const int axis = WrapDim(c.args[A::axis], self.rank);
          int64_t inner = 1;
          for (int d = axis + 1; d < self.rank; ++d) inner *= self.shape[U(d)];
          return WithFloat(self.dtype, [&]<class T>() -> Status {
            const Values<T> x(self, c.parallel);
            const Values<float> scale(c.args[A::scale], c.parallel);
            const Values<int64_t> zero(c.args[A::zeroPoint], c.parallel);
            Results<T> out(c.args[A::out], c.parallel);
            Results<uint8_t> mask(c.args[A::mask], c.parallel);
            for (int64_t i = 0; i < x.size(); ++i) {
              const int64_t k = i / inner % scale.size();
              mask[i] = FakeQuant(x[i], scale[k], zero[k], c.args[A::quantMin], c.args[A::quantMax], &out[i]) ? 1 : 0;
            }
            return {};
          });
        });

using abi::ScaledMaskedSoftmax, abi::ScaledMaskedSoftmaxBackward;
// y = softmax(x · scale, with −10000 where mask is true) along the last dimension; fixedTriuMask: the mask is the upper
// triangle.
NPU_OP(ScaledMaskedSoftmax) = Op<ScaledMaskedSoftmax>()
                                  .Rules(FloatTensors(ScaledMaskedSoftmax::x, ScaledMaskedSoftmax::y),
                                         SameShape(ScaledMaskedSoftmax::x, ScaledMaskedSoftmax::y),
                                         DtypeIn(ScaledMaskedSoftmax::mask, kReals),
                                         ExpandsTo(ScaledMaskedSoftmax::mask, ScaledMaskedSoftmax::x))
                                  .Uses(ScaledMaskedSoftmax::scale, ScaledMaskedSoftmax::fixedTriuMask)
                                  .Tolerance("accumulated")
                                  .Like("torch.softmax((x * scale).masked_fill(mask.bool(), -10000.0), -1)")
                                  .Prepares([](Planning& p) -> Status {
                                    if (p.args[ScaledMaskedSoftmax::x].rank >= 1) return {};
                                    return p.Refuse("x has no dimension.").Remedy("Pass rows.");
                                  })
                                  .Does([](const Call& c) -> Status {
                                    using A = ScaledMaskedSoftmax;
                                    const Tensor& x = c.args[A::x];
                                    const int64_t width = SizeAt(x, 0), height = SizeAt(x, 1);
                                    const bool triangle = c.args[A::fixedTriuMask];
                                    return WithFloat(x.dtype, [&]<class T>() -> Status {
                                      const Values<T> in(x, c.parallel);
                                      const Values<uint8_t> mask(Expanded(c.args[A::mask], x.Shape()), c.parallel);
                                      Results<T> out(c.args[A::y], c.parallel);
                                      const T scale = static_cast<T>(c.args[A::scale]);
                                      c.parallel.For(width == 0 ? 0 : in.size() / width, Grain(width),
                                                     [&](int64_t begin, int64_t end) {
                                                       for (int64_t r = begin; r < end; ++r) {
                                                         T* to = out.data() + r * width;
                                                         T top = -std::numeric_limits<T>::infinity(), sum = 0;
                                                         for (int64_t k = 0; k < width; ++k) {
                                                           const bool hidden =
                                                               triangle ? k > r % height : mask[r * width + k] != 0;
                                                           to[k] = hidden ? T{-10000} : in[r * width + k] * scale;
                                                           top = std::max(top, to[k]);
                                                         }
                                                         for (int64_t k = 0; k < width; ++k)
                                                           sum += to[k] = std::exp(to[k] - top);
                                                         for (int64_t k = 0; k < width; ++k) to[k] /= sum;
                                                       }
                                                     });
                                      return {};
                                    });
                                  });
NPU_OP(ScaledMaskedSoftmaxBackward) =
    Op<ScaledMaskedSoftmaxBackward>()
        .Rules(FloatTensors(ScaledMaskedSoftmaxBackward::gradOutput, ScaledMaskedSoftmaxBackward::y,
                            ScaledMaskedSoftmaxBackward::out),
               SameShape(ScaledMaskedSoftmaxBackward::y, ScaledMaskedSoftmaxBackward::gradOutput),
               SameShape(ScaledMaskedSoftmaxBackward::y, ScaledMaskedSoftmaxBackward::out),
               DtypeIn(ScaledMaskedSoftmaxBackward::mask, kReals),
               ExpandsTo(ScaledMaskedSoftmaxBackward::mask, ScaledMaskedSoftmaxBackward::y))
        .Uses(ScaledMaskedSoftmaxBackward::scale, ScaledMaskedSoftmaxBackward::fixTriuMask)
        .Tolerance("accumulated")
        .Like("((gradOutput * y - y * (gradOutput * y).sum(-1, True)) * scale).masked_fill(mask.bool(), 0)")
        .Does([](const Call& c) -> Status {
          using B = ScaledMaskedSoftmaxBackward;
          const Tensor& y = c.args[B::y];
          const int64_t width = SizeAt(y, 0), height = SizeAt(y, 1);
          return WithFloat(y.dtype, [&]<class T>() -> Status {
            const Values<T> p(y, c.parallel), dy(c.args[B::gradOutput], c.parallel);
            const Values<uint8_t> mask(Expanded(c.args[B::mask], y.Shape()), c.parallel);
            Results<T> out(c.args[B::out], c.parallel);
            const T scale = static_cast<T>(c.args[B::scale]);
            c.parallel.For(width == 0 ? 0 : p.size() / width, Grain(width), [&](int64_t begin, int64_t end) {
              for (int64_t r = begin; r < end; ++r) {
                T dot = 0;
                for (int64_t k = r * width; k < (r + 1) * width; ++k) dot += p[k] * dy[k];
                for (int64_t k = 0; k < width; ++k) {
                  const int64_t at = r * width + k;
                  const bool hidden = c.args[B::fixTriuMask] ? k > r % height : mask[at] != 0;
                  out[at] = hidden ? T{0} : (dy[at] - dot) * p[at] * scale;
                }
              }
            });
            return {};
          });
        });

using abi::TransformBiasRescaleQkv;
NPU_OP(TransformBiasRescaleQkv) =
    Op<TransformBiasRescaleQkv>()
        .Rules(DtypeIn(TransformBiasRescaleQkv::qkv, kFloats), RankIs(TransformBiasRescaleQkv::qkv, 3),
               SameDtype(TransformBiasRescaleQkv::qkv, TransformBiasRescaleQkv::qOut),
               SameDtype(TransformBiasRescaleQkv::qkv, TransformBiasRescaleQkv::kOut),
               SameDtype(TransformBiasRescaleQkv::qkv, TransformBiasRescaleQkv::vOut),
               RankIs(TransformBiasRescaleQkv::qkvBias, 1),
               AnyShapes(TransformBiasRescaleQkv::qOut, TransformBiasRescaleQkv::kOut, TransformBiasRescaleQkv::vOut))
        .Uses(TransformBiasRescaleQkv::numHeads)
        .Tolerance("accumulated")
        .Like("torch.ops.aten._transform_bias_rescale_qkv(qkv, qkvBias, numHeads)")
        .Prepares([](Planning& p) -> Status {
          using A = TransformBiasRescaleQkv;
          const Tensor& x = p.args[A::qkv];
          const int64_t heads = p.args[A::numHeads];
          if (heads < 1 || x.shape[2] % (3 * heads) != 0 || p.args[A::qkvBias].Numel() != x.shape[2]) {
            return p
                .Refuse("qkv has shape {}, qkvBias {} elements and numHeads is {}.", ShapeText(x.Shape()),
                        p.args[A::qkvBias].Numel(), heads)
                .Remedy("The last size of qkv is three times the heads times their width, and that of qkvBias.");
          }
          const Dims want{4, {x.shape[0], heads, x.shape[1], x.shape[2] / (3 * heads)}};
          NPU_TRY(WantShape(p, A::qOut, want, "it is [batch, heads, rows, width]"));
          NPU_TRY(WantShape(p, A::kOut, want, "it is [batch, heads, rows, width]"));
          return WantShape(p, A::vOut, want, "it is [batch, heads, rows, width]");
        })
        .Does([](const Call& c) -> Status {
          using A = TransformBiasRescaleQkv;
          const Tensor& x = c.args[A::qkv];
          const int64_t heads = c.args[A::numHeads], rows = x.shape[1], width = x.shape[2] / (3 * heads);
          return WithFloat(x.dtype, [&]<class T>() -> Status {
            const Values<T> in(x, c.parallel), bias(c.args[A::qkvBias], c.parallel);
            Results<T> q(c.args[A::qOut], c.parallel), k(c.args[A::kOut], c.parallel), v(c.args[A::vOut], c.parallel);
            Results<T>* outs[3] = {&q, &k, &v};
            const T scale = 1 / std::sqrt(static_cast<T>(width));
            for (int64_t b = 0; b < x.shape[0]; ++b)
              for (int64_t r = 0; r < rows; ++r)
                for (int64_t part = 0; part < 3; ++part)
                  for (int64_t h = 0; h < heads; ++h)
                    for (int64_t i = 0; i < width; ++i) {
                      const int64_t column = (part * heads + h) * width + i;
                      (*outs[part])[((b * heads + h) * rows + r) * width + i] =
                          (in[(b * rows + r) * x.shape[2] + column] + bias[column]) * (part == 0 ? scale : T{1});
                    }
            return {};
          });
        });

using abi::RReluWithNoise, abi::InplaceRReluWithNoise;
namespace {

// A slope for each element that is not positive, drawn from [lower, upper) and left in `noise` when training; else
// their mean.
Status RunRRelu(const Call& c, const Tensor& self, const Tensor& noise, double lower, double upper, bool training,
                int64_t seed, int64_t offset, const Tensor& out) {
  if (training) {
    simd::FillUniform({static_cast<uint64_t>(seed), static_cast<uint64_t>(offset)}, lower, upper, noise, c.parallel);
  }
  return WithFloat(self.dtype, [&]<class T>() -> Status {
    const Values<T> x(self, c.parallel);
    Results<T> y(out, c.parallel);
    std::optional<Results<T>> slopes;
    if (training) slopes.emplace(noise, c.parallel, true);
    const T mean = static_cast<T>((lower + upper) / 2);
    for (int64_t i = 0; i < x.size(); ++i) {
      const bool positive = x[i] > 0;
      if (slopes && positive) (*slopes)[i] = 1;
      y[i] = positive ? x[i] : x[i] * (slopes ? (*slopes)[i] : mean);
    }
    return {};
  });
}

Status CheckSlopes(const Planning& p, double lower, double upper) {
  if (lower <= upper) return {};
  return p.Refuse("lower is {} and upper {}.", lower, upper).Remedy("lower must not be larger.");
}

}  // namespace
NPU_OP(RReluWithNoise) = Op<RReluWithNoise>()
                             .Rules(DtypeIn(RReluWithNoise::self, kFloats),
                                    SameShape(RReluWithNoise::self, RReluWithNoise::out),
                                    SameDtype(RReluWithNoise::self, RReluWithNoise::out),
                                    SameShape(RReluWithNoise::self, RReluWithNoise::noise),
                                    SameDtype(RReluWithNoise::self, RReluWithNoise::noise))
                             .Uses(RReluWithNoise::lower, RReluWithNoise::upper, RReluWithNoise::training,
                                   RReluWithNoise::seed, RReluWithNoise::offset)
                             .Like("statistics")
                             .Prepares([](Planning& p) {
                               return CheckSlopes(p, p.args[RReluWithNoise::lower].re,
                                                  p.args[RReluWithNoise::upper].re);
                             })
                             .Does([](const Call& c) {
                               using A = RReluWithNoise;
                               return RunRRelu(c, c.args[A::self], c.args[A::noise], c.args[A::lower].re,
                                               c.args[A::upper].re, c.args[A::training], c.args[A::seed],
                                               c.args[A::offset], c.args[A::out]);
                             });
NPU_OP(InplaceRReluWithNoise) = Op<InplaceRReluWithNoise>()
                                    .Rules(DtypeIn(InplaceRReluWithNoise::self, kFloats),
                                           SameShape(InplaceRReluWithNoise::self, InplaceRReluWithNoise::noise),
                                           SameDtype(InplaceRReluWithNoise::self, InplaceRReluWithNoise::noise))
                                    .Uses(InplaceRReluWithNoise::lower, InplaceRReluWithNoise::upper,
                                          InplaceRReluWithNoise::training, InplaceRReluWithNoise::seed,
                                          InplaceRReluWithNoise::offset)
                                    .Like("statistics")
                                    .Prepares([](Planning& p) {
                                      return CheckSlopes(p, p.args[InplaceRReluWithNoise::lower].re,
                                                         p.args[InplaceRReluWithNoise::upper].re);
                                    })
                                    .Does([](const Call& c) {
                                      using A = InplaceRReluWithNoise;
                                      return RunRRelu(c, c.args[A::self], c.args[A::noise], c.args[A::lower].re,
                                                      c.args[A::upper].re, c.args[A::training], c.args[A::seed],
                                                      c.args[A::offset], c.args[A::self]);
                                    });

}  // namespace npu::ops
