// Norms with an addition before or a conversion behind them.
#include <array>
#include <vector>

#include "gen/abi/ops.h"
#include "kernels/simd/norm/norm.h"
#include "ops/common/dims.h"
#include "ops/common/values.h"
#include "ops/quant/quantize.h"

namespace npu::ops {

using namespace rule;  // NOLINT(google-build-using-namespace)

namespace {

size_t U(int64_t i) { return static_cast<size_t>(i); }

Status WantNormed(const Planning& p, const Tensor& x, const Tensor& gamma, TensorToken statistic) {
  if (gamma.rank < 1 || gamma.rank > x.rank || !npu::SameShape(gamma.Shape(), x.Shape().last(U(gamma.rank)))) {
    return p.Refuse("gamma has shape {} for rows of {}.", ShapeText(gamma.Shape()), ShapeText(x.Shape()))
        .Remedy("It has the last dimensions of the sum.");
  }
  const Tensor* t = p.args.Maybe(statistic);
  const int64_t width = gamma.Numel();
  if (t == nullptr || width == 0 || t->Numel() == x.Numel() / width) return {};
  return p.Refuse("{} has shape {} for {} rows.", p.ParamName(statistic), ShapeText(t->Shape()), x.Numel() / width)
      .Remedy("There is one for each row.");
}

// The sum of up to three tensors in float32 scratch, each expanded to x.
struct Sum {
  simd::Scratch<float> memory;
  Tensor tensor;
  Sum(const Call& c, const Tensor& x, std::initializer_list<const Tensor*> others, double alpha = 1)
      : memory(x.Numel()), tensor(MakeContiguous(memory.data(), DType::f32, x.Shape())) {
    simd::Copy(x, tensor, c.parallel);
    float* sum = memory.data();
    if (alpha != 1) {
      for (int64_t i = 0; i < x.Numel(); ++i) sum[i] *= static_cast<float>(alpha);
    }
    for (const Tensor* other : others) {
      if (other == nullptr) continue;
      const Values<float> more(Expanded(*other, x.Shape()), c.parallel);
      c.parallel.For(more.size(), 16384, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) sum[i] += more[i];
      });
    }
  }
};

}  // namespace

using abi::AddRmsNormCast, abi::GemmaRmsNorm, abi::AddLayerNorm, abi::AddLayerNormGrad, abi::DeepNorm,
    abi::DeepNormGrad, abi::AddRmsNormQuant, abi::AddRmsNormDynamicQuantV2, abi::RmsNormQuant, abi::GroupNormSilu,
    abi::GroupNormSwish;

// The norm of x1 + x2 as float32 and in the type of x1.
NPU_OP(AddRmsNormCast) = Op<AddRmsNormCast>()
                             .Rules(FloatTensors(AddRmsNormCast::x1, AddRmsNormCast::x2, AddRmsNormCast::gamma,
                                                 AddRmsNormCast::y1Out, AddRmsNormCast::y2Out, AddRmsNormCast::rstdOut),
                                    FloatTensors(AddRmsNormCast::xOut),
                                    SameShape(AddRmsNormCast::x1, AddRmsNormCast::x2),
                                    SameShape(AddRmsNormCast::x1, AddRmsNormCast::y1Out),
                                    SameShape(AddRmsNormCast::x1, AddRmsNormCast::y2Out),
                                    SameShape(AddRmsNormCast::x1, AddRmsNormCast::xOut),
                                    AnyShape(AddRmsNormCast::rstdOut))
                             .Uses(AddRmsNormCast::epsilon)
                             .Tolerance("accumulated")
                             .Like("add_rms_norm_cast(x1, x2, gamma, epsilon)")
                             .Prepares([](Planning& p) {
                               using A = AddRmsNormCast;
                               return WantNormed(p, p.args[A::x1], p.args[A::gamma], A::rstdOut);
                             })
                             .Does([](const Call& c) -> Status {
                               using A = AddRmsNormCast;
                               const Sum sum(c, c.args[A::x1], {&c.args[A::x2]});
                               const Tensor& y = c.args[A::y1Out];
                               simd::RmsNorm(sum.tensor, c.args[A::gamma].Numel(), &c.args[A::gamma],
                                             c.args[A::epsilon], y, &c.args[A::rstdOut], c.parallel);
                               simd::Copy(y, c.args[A::y2Out], c.parallel);
                               simd::Copy(sum.tensor, c.args[A::xOut], c.parallel);
                               return {};
                             });

// gamma counts from 1.
NPU_OP(GemmaRmsNorm) = Op<GemmaRmsNorm>()
                           .Rules(FloatTensors(GemmaRmsNorm::x, GemmaRmsNorm::gamma, GemmaRmsNorm::yOut,
                                               GemmaRmsNorm::rstdOut),
                                  SameShape(GemmaRmsNorm::x, GemmaRmsNorm::yOut), AnyShape(GemmaRmsNorm::rstdOut))
                           .Uses(GemmaRmsNorm::epsilon)
                           .Tolerance("accumulated")
                           .Like("gemma_rms_norm(x, gamma, epsilon)")
                           .Prepares([](Planning& p) {
                             using A = GemmaRmsNorm;
                             return WantNormed(p, p.args[A::x], p.args[A::gamma], A::rstdOut);
                           })
                           .Does([](const Call& c) -> Status {
                             using A = GemmaRmsNorm;
                             const Values<float> gamma(c.args[A::gamma], c.parallel);
                             std::vector<float> factor(gamma.data(), gamma.data() + gamma.size());
                             for (float& f : factor) f += 1;
                             const Tensor w = MakeContiguous(factor.data(), DType::f32, c.args[A::gamma].Shape());
                             simd::RmsNorm(c.args[A::x], gamma.size(), &w, c.args[A::epsilon], c.args[A::yOut],
                                           &c.args[A::rstdOut], c.parallel);
                             return {};
                           });

NPU_OP(AddLayerNorm) = Op<AddLayerNorm>()
                           .Required(AddLayerNorm::yOut)
                           .Rules(FloatTensors(AddLayerNorm::x1, AddLayerNorm::x2, AddLayerNorm::gamma,
                                               AddLayerNorm::beta, AddLayerNorm::biasOptional, AddLayerNorm::yOut),
                                  FloatTensors(AddLayerNorm::meanOut, AddLayerNorm::rstdOut, AddLayerNorm::xOut),
                                  SameShape(AddLayerNorm::x1, AddLayerNorm::x2),
                                  SameShape(AddLayerNorm::x1, AddLayerNorm::yOut),
                                  SameShape(AddLayerNorm::gamma, AddLayerNorm::beta),
                                  ExpandsTo(AddLayerNorm::biasOptional, AddLayerNorm::x1),
                                  AnyShapes(AddLayerNorm::meanOut, AddLayerNorm::rstdOut, AddLayerNorm::xOut))
                           .Uses(AddLayerNorm::epsilon, AddLayerNorm::additionalOutput)
                           .Tolerance("accumulated")
                           .Like("add_layer_norm(x1, x2, gamma, beta, biasOptional, epsilon)")
                           .Prepares([](Planning& p) -> Status {
                             using A = AddLayerNorm;
                             NPU_TRY(WantNormed(p, p.args[A::x1], p.args[A::gamma], A::meanOut));
                             NPU_TRY(WantNormed(p, p.args[A::x1], p.args[A::gamma], A::rstdOut));
                             if (!p.args[A::additionalOutput] || p.args[A::xOut] == nullptr) return {};
                             return WantShape(p, A::xOut, DimsOf(p.args[A::x1]), "it is the sum");
                           })
                           .Does([](const Call& c) -> Status {
                             using A = AddLayerNorm;
                             const Sum sum(c, c.args[A::x1], {&c.args[A::x2], c.args[A::biasOptional]});
                             simd::LayerNorm(sum.tensor, c.args[A::gamma].Numel(), &c.args[A::gamma], &c.args[A::beta],
                                             c.args[A::epsilon], *c.args[A::yOut], &c.args[A::meanOut],
                                             &c.args[A::rstdOut], c.parallel);
                             if (c.args[A::additionalOutput] && c.args[A::xOut] != nullptr)
                               simd::Copy(sum.tensor, *c.args[A::xOut], c.parallel);
                             return {};
                           });
NPU_OP(AddLayerNormGrad) = Op<AddLayerNormGrad>()
                               .Rules(FloatTensors(AddLayerNormGrad::dy, AddLayerNormGrad::x1, AddLayerNormGrad::x2,
                                                   AddLayerNormGrad::rstd, AddLayerNormGrad::mean,
                                                   AddLayerNormGrad::gamma),
                                      FloatTensors(AddLayerNormGrad::dsumOptional, AddLayerNormGrad::dxOut,
                                                   AddLayerNormGrad::dgammaOut, AddLayerNormGrad::dbetaOut),
                                      SameShape(AddLayerNormGrad::x1, AddLayerNormGrad::x2),
                                      SameShape(AddLayerNormGrad::x1, AddLayerNormGrad::dy),
                                      SameShape(AddLayerNormGrad::x1, AddLayerNormGrad::dsumOptional),
                                      SameShape(AddLayerNormGrad::x1, AddLayerNormGrad::dxOut),
                                      SameShape(AddLayerNormGrad::gamma, AddLayerNormGrad::dgammaOut),
                                      SameShape(AddLayerNormGrad::gamma, AddLayerNormGrad::dbetaOut))
                               .Tolerance("accumulated")
                               .Like("add_layer_norm_backward(dy, x1, x2, rstd, mean, gamma, dsumOptional)")
                               .Prepares([](Planning& p) -> Status {
                                 using A = AddLayerNormGrad;
                                 NPU_TRY(WantNormed(p, p.args[A::x1], p.args[A::gamma], A::mean));
                                 return WantNormed(p, p.args[A::x1], p.args[A::gamma], A::rstd);
                               })
                               .Does([](const Call& c) -> Status {
                                 using A = AddLayerNormGrad;
                                 const Sum sum(c, c.args[A::x1], {&c.args[A::x2]});
                                 simd::Scratch<float> memory(sum.tensor.Numel());
                                 const Tensor dx = MakeContiguous(memory.data(), DType::f32, sum.tensor.Shape());
                                 simd::LayerNormBackward(c.args[A::dy], sum.tensor, c.args[A::gamma].Numel(),
                                                         c.args[A::mean], c.args[A::rstd], &c.args[A::gamma], &dx,
                                                         &c.args[A::dgammaOut], &c.args[A::dbetaOut], c.parallel);
                                 const Sum all(c, dx, {c.args[A::dsumOptional]});
                                 simd::Copy(all.tensor, c.args[A::dxOut], c.parallel);
                                 return {};
                               });

// The norm of alpha · x + gx.
NPU_OP(DeepNorm) = Op<DeepNorm>()
                       .Rules(FloatTensors(DeepNorm::x, DeepNorm::gx, DeepNorm::beta, DeepNorm::gamma,
                                           DeepNorm::meanOut, DeepNorm::rstdOut),
                              FloatTensors(DeepNorm::yOut), SameShape(DeepNorm::x, DeepNorm::gx),
                              SameShape(DeepNorm::x, DeepNorm::yOut), SameShape(DeepNorm::gamma, DeepNorm::beta),
                              AnyShapes(DeepNorm::meanOut, DeepNorm::rstdOut))
                       .Uses(DeepNorm::alpha, DeepNorm::epsilon)
                       .Tolerance("accumulated")
                       .Like("deep_norm(x, gx, beta, gamma, alpha, epsilon)")
                       .Prepares([](Planning& p) -> Status {
                         using A = DeepNorm;
                         NPU_TRY(WantNormed(p, p.args[A::x], p.args[A::gamma], A::meanOut));
                         return WantNormed(p, p.args[A::x], p.args[A::gamma], A::rstdOut);
                       })
                       .Does([](const Call& c) -> Status {
                         using A = DeepNorm;
                         const Sum sum(c, c.args[A::x], {&c.args[A::gx]}, c.args[A::alpha]);
                         simd::LayerNorm(sum.tensor, c.args[A::gamma].Numel(), &c.args[A::gamma], &c.args[A::beta],
                                         c.args[A::epsilon], c.args[A::yOut], &c.args[A::meanOut], &c.args[A::rstdOut],
                                         c.parallel);
                         return {};
                       });
NPU_OP(DeepNormGrad) =
    Op<DeepNormGrad>()
        .Rules(FloatTensors(DeepNormGrad::dy, DeepNormGrad::x, DeepNormGrad::gx, DeepNormGrad::gamma,
                            DeepNormGrad::mean, DeepNormGrad::rstd),
               FloatTensors(DeepNormGrad::dxOut, DeepNormGrad::dgxOut, DeepNormGrad::dbetaOut, DeepNormGrad::dgammaOut),
               SameShape(DeepNormGrad::x, DeepNormGrad::gx), SameShape(DeepNormGrad::x, DeepNormGrad::dy),
               SameShape(DeepNormGrad::x, DeepNormGrad::dxOut), SameShape(DeepNormGrad::x, DeepNormGrad::dgxOut),
               SameShape(DeepNormGrad::gamma, DeepNormGrad::dbetaOut),
               SameShape(DeepNormGrad::gamma, DeepNormGrad::dgammaOut))
        .Uses(DeepNormGrad::alpha)
        .Tolerance("accumulated")
        .Like("deep_norm_backward(dy, x, gx, gamma, mean, rstd, alpha)")
        .Prepares([](Planning& p) -> Status {
          using A = DeepNormGrad;
          NPU_TRY(WantNormed(p, p.args[A::x], p.args[A::gamma], A::mean));
          return WantNormed(p, p.args[A::x], p.args[A::gamma], A::rstd);
        })
        .Does([](const Call& c) -> Status {
          using A = DeepNormGrad;
          const Sum sum(c, c.args[A::x], {&c.args[A::gx]}, c.args[A::alpha]);
          simd::Scratch<float> memory(sum.tensor.Numel());
          const Tensor d = MakeContiguous(memory.data(), DType::f32, sum.tensor.Shape());
          simd::LayerNormBackward(c.args[A::dy], sum.tensor, c.args[A::gamma].Numel(), c.args[A::mean], c.args[A::rstd],
                                  &c.args[A::gamma], &d, &c.args[A::dgammaOut], &c.args[A::dbetaOut], c.parallel);
          simd::Copy(d, c.args[A::dgxOut], c.parallel);
          const Sum scaled(c, d, {}, c.args[A::alpha]);
          simd::Copy(scaled.tensor, c.args[A::dxOut], c.parallel);
          return {};
        });

namespace {

// y = round(norm / scale + zero), or times the scale.
void QuantiseColumns(const Call& c, const float* norm, int64_t rows, int64_t width, const Tensor& scales,
                     const Tensor* zeros, bool divides, const Tensor& y) {
  const quant::PerColumn scale(scales, c.parallel);
  std::optional<quant::PerColumn> zero;
  if (zeros != nullptr) zero.emplace(*zeros, c.parallel);
  quant::Bytes out(y, c.parallel);
  c.parallel.For(rows, Grain(width), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin * width; i < end * width; ++i) {
      const float s = scale[i % width], v = divides ? norm[i] / s : norm[i] * s;
      out[i] = quant::ToByte(v + (zero ? (*zero)[i % width] : 0.0f));
    }
  });
}

}  // namespace

NPU_OP(AddRmsNormQuant) =
    Op<AddRmsNormQuant>()
        .Rules(FloatTensors(AddRmsNormQuant::x1, AddRmsNormQuant::x2, AddRmsNormQuant::gamma, AddRmsNormQuant::scales1,
                            AddRmsNormQuant::scales2Optional, AddRmsNormQuant::xOut),
               SameShape(AddRmsNormQuant::x1, AddRmsNormQuant::x2),
               SameShape(AddRmsNormQuant::x1, AddRmsNormQuant::xOut),
               AnyShapes(AddRmsNormQuant::y1Out, AddRmsNormQuant::y2Out), AnyDtype(AddRmsNormQuant::y1Out),
               AnyDtype(AddRmsNormQuant::y2Out))
        .Uses(AddRmsNormQuant::zeroPoints1Optional, AddRmsNormQuant::zeroPoints2Optional, AddRmsNormQuant::axis,
              AddRmsNormQuant::epsilon, AddRmsNormQuant::divMode)
        .Optional(AddRmsNormQuant::y2Out)
        .Tolerance("accumulated")
        .Like("add_rms_norm_quant(x1, x2, gamma, scales1)")
        .Prepares([](Planning& p) -> Status {
          using A = AddRmsNormQuant;
          const Tensor &x = p.args[A::x1], &gamma = p.args[A::gamma];
          NPU_TRY(WantNormed(p, x, gamma, TensorToken{}));
          NPU_TRY(quant::WantBytes(p, A::y1Out));
          NPU_TRY(WantShape(p, A::y1Out, DimsOf(x), "it is the norm"));
          if (p.args[A::scales2Optional] != nullptr) {
            if (p.args.Maybe(A::y2Out) == nullptr)
              return Error(Code::kNullPointer, "{}: y2Out is null.", p.op.name)
                  .Remedy("The second result needs a place.");
            NPU_TRY(quant::WantBytes(p, A::y2Out));
            NPU_TRY(WantShape(p, A::y2Out, DimsOf(x), "it is the norm"));
          }
          if (p.args[A::axis] != -1)
            return NotYet(p.op.name, "scales along another axis than the last are not applied");
          for (const TensorToken t : {TensorToken(A::scales1), TensorToken(A::scales2Optional),
                                      TensorToken(A::zeroPoints1Optional), TensorToken(A::zeroPoints2Optional)})
            NPU_TRY(quant::WantColumns(p, t, gamma.Numel()));
          return {};
        })
        .Does([](const Call& c) -> Status {
          using A = AddRmsNormQuant;
          const Sum sum(c, c.args[A::x1], {&c.args[A::x2]});
          simd::Scratch<float> memory(sum.tensor.Numel());
          const Tensor norm = MakeContiguous(memory.data(), DType::f32, sum.tensor.Shape());
          const int64_t width = c.args[A::gamma].Numel();
          simd::RmsNorm(sum.tensor, width, &c.args[A::gamma], c.args[A::epsilon], norm, nullptr, c.parallel);
          simd::Copy(sum.tensor, c.args[A::xOut], c.parallel);
          const int64_t rows = width == 0 ? 0 : norm.Numel() / width;
          QuantiseColumns(c, memory.data(), rows, width, c.args[A::scales1], c.args[A::zeroPoints1Optional],
                          c.args[A::divMode], c.args[A::y1Out]);
          if (c.args[A::scales2Optional] != nullptr)
            QuantiseColumns(c, memory.data(), rows, width, *c.args[A::scales2Optional], c.args[A::zeroPoints2Optional],
                            c.args[A::divMode], *c.args.Maybe(A::y2Out));
          return {};
        });

NPU_OP(RmsNormQuant) = Op<RmsNormQuant>()
                           .Optional(RmsNormQuant::beta, RmsNormQuant::offset)
                           .Rules(FloatTensors(RmsNormQuant::x, RmsNormQuant::gamma, RmsNormQuant::beta,
                                               RmsNormQuant::scale),
                                  SameShape(RmsNormQuant::x, RmsNormQuant::y), AnyDtype(RmsNormQuant::y))
                           .Uses(RmsNormQuant::offset, RmsNormQuant::epsilon)
                           .Tolerance("accumulated")
                           .Like("rms_norm_quant(x, gamma, beta, scale, offset, epsilon)")
                           .Prepares([](Planning& p) -> Status {
                             using A = RmsNormQuant;
                             NPU_TRY(quant::WantBytes(p, A::y));
                             const int64_t width = p.args[A::gamma].Numel();
                             if (SizeAt(p.args[A::x], 0) != width)
                               return p
                                   .Refuse("gamma has shape {} for x of shape {}.", ShapeText(p.args[A::gamma].Shape()),
                                           ShapeText(p.args[A::x].Shape()))
                                   .Remedy("It has the last size of x.");
                             NPU_TRY(quant::WantColumns(p, A::beta, width));
                             NPU_TRY(quant::WantColumns(p, A::scale, width));
                             return quant::WantColumns(p, A::offset, width);
                           })
                           .Does([](const Call& c) -> Status {
                             using A = RmsNormQuant;
                             const Tensor& x = c.args[A::x];
                             simd::Scratch<float> memory(x.Numel());
                             const int64_t width = c.args[A::gamma].Numel();
                             simd::RmsNorm(x, width, &c.args[A::gamma], c.args[A::epsilon],
                                           MakeContiguous(memory.data(), DType::f32, x.Shape()), nullptr, c.parallel);
                             if (const Tensor* beta = c.args.Maybe(A::beta); beta != nullptr) {
                               const quant::PerColumn shift(*beta, c.parallel);
                               for (int64_t i = 0; i < x.Numel(); ++i) memory[i] += shift[i % width];
                             }
                             QuantiseColumns(c, memory.data(), width == 0 ? 0 : x.Numel() / width, width,
                                             c.args[A::scale], c.args.Maybe(A::offset), false, c.args[A::y]);
                             return {};
                           });

// The norm in int8 with a scale for each row, once for each smooth scale.
NPU_OP(AddRmsNormDynamicQuantV2) =
    Op<AddRmsNormDynamicQuantV2>()
        .Optional(AddRmsNormDynamicQuantV2::y2Out, AddRmsNormDynamicQuantV2::outputMask)
        .Required(AddRmsNormDynamicQuantV2::xOut, AddRmsNormDynamicQuantV2::scale1Out)
        .Rules(FloatTensors(AddRmsNormDynamicQuantV2::x1, AddRmsNormDynamicQuantV2::x2, AddRmsNormDynamicQuantV2::gamma,
                            AddRmsNormDynamicQuantV2::smoothScale1Optional,
                            AddRmsNormDynamicQuantV2::smoothScale2Optional, AddRmsNormDynamicQuantV2::betaOptional),
               FloatTensors(AddRmsNormDynamicQuantV2::xOut, AddRmsNormDynamicQuantV2::scale1Out,
                            AddRmsNormDynamicQuantV2::scale2Out),
               SameShape(AddRmsNormDynamicQuantV2::x1, AddRmsNormDynamicQuantV2::x2),
               SameShape(AddRmsNormDynamicQuantV2::x1, AddRmsNormDynamicQuantV2::xOut),
               AnyShapes(AddRmsNormDynamicQuantV2::y1Out, AddRmsNormDynamicQuantV2::y2Out,
                         AddRmsNormDynamicQuantV2::scale1Out, AddRmsNormDynamicQuantV2::scale2Out),
               AnyDtype(AddRmsNormDynamicQuantV2::y1Out), AnyDtype(AddRmsNormDynamicQuantV2::y2Out))
        .Uses(AddRmsNormDynamicQuantV2::epsilon, AddRmsNormDynamicQuantV2::outputMask)
        .Tolerance("accumulated")
        .Like("add_rms_norm_dynamic_quant(x1, x2, gamma)")
        .Prepares([](Planning& p) -> Status {
          using A = AddRmsNormDynamicQuantV2;
          const Tensor &x = p.args[A::x1], &gamma = p.args[A::gamma];
          if (!p.args.Null(A::outputMask) && !p.args[A::outputMask].empty())
            return NotYet(p.op.name, "outputMask is not applied");
          if (gamma.rank != 1)
            return p.Refuse("gamma has shape {}.", ShapeText(gamma.Shape())).Remedy("It is a vector.");
          NPU_TRY(WantNormed(p, x, gamma, A::scale1Out));
          NPU_TRY(quant::WantBytes(p, A::y1Out));
          NPU_TRY(WantShape(p, A::y1Out, DimsOf(x), "it is the norm"));
          if (p.args[A::smoothScale2Optional] != nullptr) {
            if (p.args[A::smoothScale1Optional] == nullptr)
              return p.Refuse("smoothScale2Optional is given without smoothScale1Optional.")
                  .Remedy("Give the first, too.");
            if (p.args.Maybe(A::y2Out) == nullptr || p.args[A::scale2Out] == nullptr)
              return Error(Code::kNullPointer, "{}: y2Out or scale2Out is null.", p.op.name)
                  .Remedy("The second result needs a place.");
            NPU_TRY(quant::WantBytes(p, A::y2Out));
            NPU_TRY(WantShape(p, A::y2Out, DimsOf(x), "it is the norm"));
            NPU_TRY(WantNormed(p, x, gamma, A::scale2Out));
          }
          for (const TensorToken t : {TensorToken(A::smoothScale1Optional), TensorToken(A::smoothScale2Optional),
                                      TensorToken(A::betaOptional)})
            NPU_TRY(quant::WantColumns(p, t, gamma.Numel()));
          return {};
        })
        .Does([](const Call& c) -> Status {
          using A = AddRmsNormDynamicQuantV2;
          const Sum sum(c, c.args[A::x1], {&c.args[A::x2]});
          simd::Scratch<float> memory(sum.tensor.Numel());
          const int64_t width = c.args[A::gamma].Numel(), rows = width == 0 ? 0 : sum.tensor.Numel() / width;
          simd::RmsNorm(sum.tensor, width, &c.args[A::gamma], c.args[A::epsilon],
                        MakeContiguous(memory.data(), DType::f32, sum.tensor.Shape()), nullptr, c.parallel);
          simd::Copy(sum.tensor, *c.args[A::xOut], c.parallel);
          if (const Tensor* beta = c.args[A::betaOptional]; beta != nullptr) {
            const quant::PerColumn shift(*beta, c.parallel);
            for (int64_t i = 0; i < rows * width; ++i) memory[i] += shift[i % width];
          }
          const auto quantise = [&](const Tensor* smooth, const Tensor& y, const Tensor& scale) {
            std::optional<quant::PerColumn> factor;
            if (smooth != nullptr) factor.emplace(*smooth, c.parallel);
            quant::Bytes out(y, c.parallel);
            Results<float> scales(scale, c.parallel);
            c.parallel.For(rows, Grain(width), [&](int64_t begin, int64_t end) {
              simd::Scratch<float> row(width);
              for (int64_t r = begin; r < end; ++r) {
                for (int64_t i = 0; i < width; ++i) row[i] = memory[r * width + i] * (factor ? (*factor)[i] : 1.0f);
                scales[r] = quant::RowToBytes(row.data(), width, out.data() + r * width);
              }
            });
          };
          quantise(c.args[A::smoothScale1Optional], c.args[A::y1Out], *c.args[A::scale1Out]);
          if (c.args[A::smoothScale2Optional] != nullptr)
            quantise(c.args[A::smoothScale2Optional], *c.args.Maybe(A::y2Out), *c.args[A::scale2Out]);
          return {};
        });

namespace {

Status WantGroups(const Planning& p, const Tensor& x, int64_t groups, const Tensor* gamma, const Tensor* beta,
                  TensorToken mean, TensorToken rstd) {
  if (x.rank < 2 || groups < 1 || x.shape[1] % groups != 0)
    return p.Refuse("x has shape {} and there are {} groups.", ShapeText(x.Shape()), groups)
        .Remedy("Groups divide the channels (dim 1).");
  for (const Tensor* t : {gamma, beta})
    if (t != nullptr && t->Numel() != x.shape[1])
      return p.Refuse("gamma or beta has shape {} for {} channels.", ShapeText(t->Shape()), x.shape[1])
          .Remedy("There is one for each channel.");
  for (const TensorToken t : {mean, rstd})
    if (p.args.Maybe(t)->Numel() != x.shape[0] * groups)
      return p.Refuse("{} has shape {}.", p.ParamName(t), ShapeText(p.args.Maybe(t)->Shape()))
          .Remedy("There is one for each sample and group.");
  return {};
}

// y = n · sigmoid(scale · n) of the norm n.
Status NormAndSwish(const Call& c, const Tensor& x, int64_t groups, const Tensor* gamma, const Tensor* beta, double eps,
                    double scale, bool swish, const Tensor& y, const Tensor& mean, const Tensor& rstd) {
  int64_t space = 1;
  for (int d = 2; d < x.rank; ++d) space *= x.shape[U(d)];
  simd::Scratch<float> memory(x.Numel());
  const Tensor norm = MakeContiguous(memory.data(), DType::f32, x.Shape());
  const auto flat = [&](const Tensor& t) {
    Tensor f = t;
    if (t.Contiguous()) f = MakeContiguous(t.data, t.dtype, std::array<int64_t, 2>{x.shape[0], groups});
    return f;
  };
  const Tensor m = flat(mean), r = flat(rstd);
  simd::GroupNorm(x, {x.shape[0], x.shape[1], space, groups}, gamma, beta, eps, norm, &m, &r, c.parallel);
  if (swish) {
    c.parallel.For(x.Numel(), 4096, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        memory[i] = memory[i] / (1 + std::exp(-static_cast<float>(scale) * memory[i]));
    });
  }
  simd::Copy(norm, y, c.parallel);
  return {};
}

}  // namespace

NPU_OP(GroupNormSilu) =
    Op<GroupNormSilu>()
        .Rules(FloatTensors(GroupNormSilu::self, GroupNormSilu::gamma, GroupNormSilu::beta, GroupNormSilu::out,
                            GroupNormSilu::meanOut, GroupNormSilu::rstdOut),
               SameShape(GroupNormSilu::self, GroupNormSilu::out),
               AnyShapes(GroupNormSilu::meanOut, GroupNormSilu::rstdOut))
        .Uses(GroupNormSilu::group, GroupNormSilu::eps)
        .Tolerance("accumulated")
        .Like("torch.nn.functional.silu(torch.nn.functional.group_norm(self, group, gamma, beta, eps))")
        .Prepares([](Planning& p) {
          using A = GroupNormSilu;
          return WantGroups(p, p.args[A::self], p.args[A::group], p.args[A::gamma], p.args[A::beta], A::meanOut,
                            A::rstdOut);
        })
        .Does([](const Call& c) {
          using A = GroupNormSilu;
          return NormAndSwish(c, c.args[A::self], c.args[A::group], c.args[A::gamma], c.args[A::beta], c.args[A::eps],
                              1, true, c.args[A::out], c.args[A::meanOut], c.args[A::rstdOut]);
        });
NPU_OP(GroupNormSwish) = Op<GroupNormSwish>()
                             .Rules(FloatTensors(GroupNormSwish::x, GroupNormSwish::gamma, GroupNormSwish::beta,
                                                 GroupNormSwish::yOut, GroupNormSwish::meanOut,
                                                 GroupNormSwish::rstdOut),
                                    SameShape(GroupNormSwish::x, GroupNormSwish::yOut),
                                    AnyShapes(GroupNormSwish::meanOut, GroupNormSwish::rstdOut))
                             .Uses(GroupNormSwish::numGroups, GroupNormSwish::dataFormatOptional, GroupNormSwish::eps,
                                   GroupNormSwish::activateSwish, GroupNormSwish::swishScale)
                             .Optional(GroupNormSwish::dataFormatOptional)
                             .Tolerance("accumulated")
                             .Like("group_norm_swish(x, gamma, beta, numGroups, eps, swishScale)")
                             .Prepares([](Planning& p) -> Status {
                               using A = GroupNormSwish;
                               if (!p.args.Null(A::dataFormatOptional) && p.args[A::dataFormatOptional] != "NCHW" &&
                                   !p.args[A::dataFormatOptional].empty())
                                 return NotYet(p.op.name, fmt::format("data format {} is not computed; NCHW is",
                                                                      p.args[A::dataFormatOptional]));
                               return WantGroups(p, p.args[A::x], p.args[A::numGroups], &p.args[A::gamma],
                                                 &p.args[A::beta], A::meanOut, A::rstdOut);
                             })
                             .Does([](const Call& c) {
                               using A = GroupNormSwish;
                               return NormAndSwish(c, c.args[A::x], c.args[A::numGroups], &c.args[A::gamma],
                                                   &c.args[A::beta], c.args[A::eps], c.args[A::swishScale],
                                                   c.args[A::activateSwish], c.args[A::yOut], c.args[A::meanOut],
                                                   c.args[A::rstdOut]);
                             });

}  // namespace npu::ops
