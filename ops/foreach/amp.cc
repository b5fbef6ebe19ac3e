// What torch.amp.GradScaler calls: gradients are unscaled and checked, the scale is updated.
#include <cmath>
#include <cstring>
#include <memory>

#include "gen/abi/ops.h"
#include "kernels/simd/binary.h"
#include "kernels/simd/unary.h"
#include "ops/core/builder.h"
#include "ops/core/rule.h"
#include "tensor/shape.h"

namespace npu::ops {
namespace {

// Whether some element is infinite or not a number.
bool AnyNonFinite(const Tensor& t, Parallel& parallel) {
  const auto n = static_cast<size_t>(t.Numel());
  const auto finite = std::make_unique<uint8_t[]>(n + 1);
  const Tensor map = MakeContiguous(finite.get(), DType::b8, t.Shape());
  simd::Pointwise p{&simd::kIsFinite, t.dtype};
  p.in[0] = &t;
  p.out = &map;
  simd::RunPointwise(p, parallel);
  return std::memchr(finite.get(), 0, n) != nullptr;
}

}  // namespace

using abi::ForeachNonFiniteCheckAndUnscale;
NPU_OP(ForeachNonFiniteCheckAndUnscale) = Op<ForeachNonFiniteCheckAndUnscale>()
    .Rules(rule::DtypeIn(ForeachNonFiniteCheckAndUnscale::foundInf, {DType::f32}),
           rule::DtypeIn(ForeachNonFiniteCheckAndUnscale::invScale, {DType::f32}))
    .Uses(ForeachNonFiniteCheckAndUnscale::scaledGrads)
    .Samples(ForeachNonFiniteCheckAndUnscale::foundInf, "[torch.zeros(1)]")
    .Samples(ForeachNonFiniteCheckAndUnscale::invScale, "[torch.ones(1), torch.full((1,), 0.5)]")
    .Like("amp_unscale(scaledGrads, foundInf, invScale)")
    .Prepares([](Planning& p) -> Status {
      for (const TensorToken t : {TensorToken(ForeachNonFiniteCheckAndUnscale::foundInf), TensorToken(ForeachNonFiniteCheckAndUnscale::invScale)})
        if (p.args.Maybe(t)->Numel() != 1) return p.Refuse("{} has {} elements.", p.ParamName(t), p.args.Maybe(t)->Numel()).Remedy("It holds one value.");
      return {};
    })
    .Does([](const Call& c) -> Status {
      const Tensor& scale = c.args[ForeachNonFiniteCheckAndUnscale::invScale];
      for (const Tensor& grad : c.args[ForeachNonFiniteCheckAndUnscale::scaledGrads]) {
        if (grad.dtype == DType::none || grad.Numel() == 0) continue;
        if (AnyNonFinite(grad, c.parallel)) *c.args[ForeachNonFiniteCheckAndUnscale::foundInf].As<float>() = 1.0f;
        if (*scale.As<float>() == 1.0f) continue;
        simd::Pointwise p{&simd::kMul, grad.dtype};
        Tensor number = scale;
        number.rank = 0;
        p.in = {&grad, &number, nullptr};
        p.number[1] = true;
        p.out = &grad;
        simd::RunPointwise(p, c.parallel);
      }
      return {};
    });

using abi::AmpUpdateScale;
NPU_OP(AmpUpdateScale) = Op<AmpUpdateScale>()
    .Rules(rule::DtypeIn(AmpUpdateScale::currentScale, {DType::f32}), rule::DtypeIn(AmpUpdateScale::growthTracker, {DType::i32}),
           rule::DtypeIn(AmpUpdateScale::foundInf, {DType::f32}),
           rule::SameShape(AmpUpdateScale::currentScale, AmpUpdateScale::updatedScale), rule::SameDtype(AmpUpdateScale::currentScale, AmpUpdateScale::updatedScale),
           rule::SameShape(AmpUpdateScale::growthTracker, AmpUpdateScale::updatedGrowthTracker), rule::SameDtype(AmpUpdateScale::growthTracker, AmpUpdateScale::updatedGrowthTracker))
    .Uses(AmpUpdateScale::growthFactor, AmpUpdateScale::backoffFactor, AmpUpdateScale::growthInterval)
    .Samples(AmpUpdateScale::currentScale, "[torch.full((1,), 1024.0)]").Samples(AmpUpdateScale::growthTracker, "[torch.ones(1, dtype=torch.int32)]").Samples(AmpUpdateScale::foundInf, "[torch.zeros(1), torch.ones(1)]").Samples(AmpUpdateScale::growthInterval, "[2, 5]")
    .Like("amp_update(currentScale, growthTracker, foundInf, growthFactor, backoffFactor, growthInterval)")
    .Prepares([](Planning& p) -> Status {
      for (const TensorIn t : {AmpUpdateScale::currentScale, AmpUpdateScale::growthTracker, AmpUpdateScale::foundInf})
        if (p.args[t].Numel() != 1) return p.Refuse("{} has {} elements.", p.ParamName(t), p.args[t].Numel()).Remedy("It holds one value.");
      return {};
    })
    .Does([](const Call& c) -> Status {
      const float scale = *c.args[AmpUpdateScale::currentScale].As<float>();
      int32_t tracker = *c.args[AmpUpdateScale::growthTracker].As<int32_t>();
      float next = scale;
      if (*c.args[AmpUpdateScale::foundInf].As<float>() != 0) {
        next = static_cast<float>(scale * c.args[AmpUpdateScale::backoffFactor]);
        tracker = 0;
      } else if (++tracker == c.args[AmpUpdateScale::growthInterval]) {
        const auto grown = static_cast<float>(scale * c.args[AmpUpdateScale::growthFactor]);
        if (std::isfinite(grown)) next = grown;
        tracker = 0;
      }
      *c.args[AmpUpdateScale::updatedScale].As<float>() = next;
      *c.args[AmpUpdateScale::updatedGrowthTracker].As<int32_t>() = tracker;
      return {};
    });

}  // namespace npu::ops
