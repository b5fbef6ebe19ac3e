// Optimizer steps.
#include "kernels/simd/optim/optim.h"

#include "gen/abi/ops.h"
#include "kernels/simd/rows/convert.h"
#include "ops/common/dims.h"

namespace npu::ops {

using namespace rule;  // NOLINT(google-build-using-namespace)

namespace {

double Number(const Tensor& t) { return simd::LoadDouble(t.data, t.dtype); }

// Lists of one length, tensor by tensor of one shape with floats; `list` may be empty when optional.
Status WantList(const Planning& plan, ListToken params, ListToken list, bool optional) {
  const auto p = plan.args[params], l = plan.args[list];
  if (optional && l.empty()) return {};
  if (l.size() != p.size()) {
    return plan.Refuse("{} has {} tensors, but {} has {}.", plan.ParamName(list), l.size(), plan.ParamName(params), p.size())
        .Remedy("Both lists must have the same length.");
  }
  for (size_t i = 0; i < l.size(); ++i) {
    if (l[i].dtype != DType::none && IsFloat(l[i].dtype) && npu::SameShape(l[i].Shape(), p[i].Shape())) continue;
    return plan.Refuse("{}[{}] is {} {}, but {}[{}] is {} {}.", plan.ParamName(list), i, Name(l[i].dtype), ShapeText(l[i].Shape()),
                       plan.ParamName(params), i, Name(p[i].dtype), ShapeText(p[i].Shape()))
        .Remedy("They must be floats of the same shape.");
  }
  return {};
}

}  // namespace

using abi::ApplyAdamWV2;
NPU_OP(ApplyAdamWV2) = Op<ApplyAdamWV2>()
    .Rules(FloatTensors(ApplyAdamWV2::varRef, ApplyAdamWV2::mRef, ApplyAdamWV2::vRef, ApplyAdamWV2::maxGradNormOptionalRef, ApplyAdamWV2::grad),
           SameShape(ApplyAdamWV2::varRef, ApplyAdamWV2::mRef), SameShape(ApplyAdamWV2::varRef, ApplyAdamWV2::vRef),
           SameShape(ApplyAdamWV2::varRef, ApplyAdamWV2::maxGradNormOptionalRef), SameShape(ApplyAdamWV2::varRef, ApplyAdamWV2::grad))
    .Uses(ApplyAdamWV2::step, ApplyAdamWV2::lr, ApplyAdamWV2::beta1, ApplyAdamWV2::beta2, ApplyAdamWV2::weightDecay, ApplyAdamWV2::eps,
          ApplyAdamWV2::amsgrad, ApplyAdamWV2::maximize)
    .Samples(ApplyAdamWV2::step, "[torch.tensor([0.0]), torch.tensor([6.0])]")
    .Samples(ApplyAdamWV2::lr, "[1e-2]")
    .Samples(ApplyAdamWV2::beta1, "[0.9]")
    .Samples(ApplyAdamWV2::beta2, "[0.999]")
    .Samples(ApplyAdamWV2::weightDecay, "[0.0, 0.1]")
    .Samples(ApplyAdamWV2::eps, "[1e-8]")
    .Tolerance("accumulated")
    .Like("hand.adamw_v2(varRef, mRef, vRef, maxGradNormOptionalRef, grad, step, lr, beta1, beta2, weightDecay, eps, amsgrad, maximize)")
    .Prepares([](Planning& plan) -> Status {
      if (plan.args[ApplyAdamWV2::step].Numel() < 1) return plan.Refuse("step is empty.").Remedy("It holds one number.");
      if (plan.args[ApplyAdamWV2::amsgrad] && plan.args[ApplyAdamWV2::maxGradNormOptionalRef] == nullptr) {
        return plan.Refuse("amsgrad is true, but maxGradNormOptionalRef is null.").Remedy("Pass the largest second moments so far.");
      }
      return {};
    })
    .Does([](const Call& c) -> Status {
      using A = ApplyAdamWV2;
      const Args& a = c.args;
      // The operator counts steps from 0: torch_npu passes the number of steps done before this one.
      simd::AdamStep s{a[A::lr], a[A::beta1], a[A::beta2], a[A::weightDecay], a[A::eps], Number(a[A::step]) + 1, true, a[A::amsgrad],
                       a[A::maximize]};
      simd::Adam(s, a[A::varRef], a[A::grad], a[A::mRef], a[A::vRef], a[A::maxGradNormOptionalRef], c.parallel);
      return {};
    });

using abi::FusedAdam, abi::FusedSgd;
NPU_OP(FusedAdam) = Op<FusedAdam>()
    .Optional(FusedAdam::maxExpAvgSqs)
    .Rules(FloatTensors(FusedAdam::gradScaleOptional, FusedAdam::foundInfOptional))
    .Uses(FusedAdam::params, FusedAdam::grads, FusedAdam::expAvgs, FusedAdam::expAvgSqs, FusedAdam::maxExpAvgSqs, FusedAdam::stateSteps,
          FusedAdam::lr, FusedAdam::beta1, FusedAdam::beta2, FusedAdam::weightDecay, FusedAdam::eps, FusedAdam::amsgrad, FusedAdam::maximize)
    .Tolerance("accumulated")
    .Like("hand.fused_adam(params, grads, expAvgs, expAvgSqs, maxExpAvgSqs, stateSteps, gradScaleOptional, foundInfOptional, lr, beta1, beta2,"
          " weightDecay, eps, amsgrad, maximize)")
    .Prepares([](Planning& plan) -> Status {
      NPU_TRY(WantList(plan, FusedAdam::params, FusedAdam::params, false));
      NPU_TRY(WantList(plan, FusedAdam::params, FusedAdam::grads, false));
      NPU_TRY(WantList(plan, FusedAdam::params, FusedAdam::expAvgs, false));
      NPU_TRY(WantList(plan, FusedAdam::params, FusedAdam::expAvgSqs, false));
      NPU_TRY(WantList(plan, FusedAdam::params, FusedAdam::maxExpAvgSqs, !plan.args[FusedAdam::amsgrad]));
      const auto steps = plan.args[FusedAdam::stateSteps];
      if (steps.size() != plan.args[FusedAdam::params].size()) {
        return plan.Refuse("stateSteps has {} tensors, but params has {}.", steps.size(), plan.args[FusedAdam::params].size());
      }
      for (size_t i = 0; i < steps.size(); ++i) {
        if (steps[i].dtype == DType::none || steps[i].Numel() < 1) return plan.Refuse("stateSteps[{}] holds no number.", i);
      }
      return {};
    })
    .Does([](const Call& c) -> Status {
      const Args& a = c.args;
      // An overflow in the gradients skips the whole step, as torch's scaler wants.
      if (a[FusedAdam::foundInfOptional] != nullptr && Number(*a[FusedAdam::foundInfOptional]) != 0) return {};
      const Tensor* scale = a[FusedAdam::gradScaleOptional];
      const auto params = a[FusedAdam::params], grads = a[FusedAdam::grads], m = a[FusedAdam::expAvgs], v = a[FusedAdam::expAvgSqs],
                 top = a[FusedAdam::maxExpAvgSqs], steps = a[FusedAdam::stateSteps];
      for (size_t i = 0; i < params.size(); ++i) {
        const simd::AdamStep s{a[FusedAdam::lr], a[FusedAdam::beta1], a[FusedAdam::beta2], a[FusedAdam::weightDecay], a[FusedAdam::eps],
                               Number(steps[i]), false, a[FusedAdam::amsgrad], a[FusedAdam::maximize],
                               scale != nullptr ? Number(*scale) : 1};
        simd::Adam(s, params[i], grads[i], m[i], v[i], i < top.size() ? &top[i] : nullptr, c.parallel);
      }
      return {};
    });
NPU_OP(FusedSgd) = Op<FusedSgd>()
    .Optional(FusedSgd::momentumBufferListOptionalRef)
    .Rules(FloatTensors(FusedSgd::gradScaleOptional))
    .Uses(FusedSgd::paramsRef, FusedSgd::gradsRef, FusedSgd::momentumBufferListOptionalRef, FusedSgd::weightDecay, FusedSgd::momentum,
          FusedSgd::lr, FusedSgd::dampening, FusedSgd::nesterov, FusedSgd::maximize, FusedSgd::isFirstStep)
    .Tolerance("accumulated")
    .Like("hand.fused_sgd(paramsRef, gradsRef, momentumBufferListOptionalRef, gradScaleOptional, weightDecay, momentum, lr, dampening, nesterov,"
          " maximize, isFirstStep)")
    .Prepares([](Planning& plan) -> Status {
      NPU_TRY(WantList(plan, FusedSgd::paramsRef, FusedSgd::paramsRef, false));
      NPU_TRY(WantList(plan, FusedSgd::paramsRef, FusedSgd::gradsRef, false));
      return WantList(plan, FusedSgd::paramsRef, FusedSgd::momentumBufferListOptionalRef, plan.args[FusedSgd::momentum] == 0);
    })
    .Does([](const Call& c) -> Status {
      const Args& a = c.args;
      const Tensor* scale = a[FusedSgd::gradScaleOptional];
      const auto params = a[FusedSgd::paramsRef], grads = a[FusedSgd::gradsRef], buffers = a[FusedSgd::momentumBufferListOptionalRef];
      const simd::SgdStep s{a[FusedSgd::lr], a[FusedSgd::momentum], a[FusedSgd::dampening], a[FusedSgd::weightDecay], a[FusedSgd::nesterov],
                            a[FusedSgd::maximize], a[FusedSgd::isFirstStep], scale != nullptr ? Number(*scale) : 1};
      for (size_t i = 0; i < params.size(); ++i) {
        simd::Sgd(s, params[i], grads[i], i < buffers.size() ? &buffers[i] : nullptr, c.parallel);
      }
      return {};
    });

}  // namespace npu::ops
