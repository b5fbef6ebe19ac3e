#include "gen/abi/ops.h"
#include "kernels/simd/norm/norm.h"
#include "ops/norm/rules.h"

namespace npu::ops {

using namespace rule;  // NOLINT(google-build-using-namespace)

namespace {

Status CheckGroups(const Planning& plan, const Tensor& x, const simd::GroupShape& s, const Tensor* mean, const Tensor* rstd) {
  if (s.batch < 0 || s.channels < 0 || s.space < 0 || s.batch * s.channels * s.space != x.Numel()) {
    return plan.Refuse("N·C·HxW is {}·{}·{}, but the input has shape {}.", s.batch, s.channels, s.space, ShapeText(x.Shape()))
        .Remedy("Their product must be the number of elements.");
  }
  if (s.groups <= 0 || s.channels % s.groups != 0) {
    return plan.Refuse("group is {}, but there are {} channels.", s.groups, s.channels)
        .Remedy("The number of channels must be a multiple of the number of groups.");
  }
  for (const Tensor* t : {mean, rstd}) {
    if (t == nullptr || t->Numel() == s.batch * s.groups) continue;
    return plan.Refuse("a statistic has shape {}, but there are {} groups in {} samples.", ShapeText(t->Shape()), s.groups, s.batch)
        .Remedy("Mean and rstd have one element for each sample and group.");
  }
  return {};
}

}  // namespace

using abi::GroupNorm, abi::GroupNormBackward;
NPU_OP(GroupNorm) = Op<GroupNorm>()
    .Rules(FloatTensors(GroupNorm::self, GroupNorm::gamma, GroupNorm::beta, GroupNorm::out, GroupNorm::meanOut, GroupNorm::rstdOut),
           HasChannels(GroupNorm::self), PerChannel(GroupNorm::self, GroupNorm::gamma), PerChannel(GroupNorm::self, GroupNorm::beta),
           SameShape(GroupNorm::self, GroupNorm::out), AnyShapes(GroupNorm::meanOut, GroupNorm::rstdOut))
    .Uses(GroupNorm::N, GroupNorm::C, GroupNorm::HxW, GroupNorm::group, GroupNorm::eps)
    .Tolerance("accumulated")
    .Like("torch.native_group_norm(self, gamma, beta, N, C, HxW, group, eps)")
    .Prepares([](Planning& plan) -> Status {
      const Args& a = plan.args;
      return CheckGroups(plan, a[GroupNorm::self], {a[GroupNorm::N], a[GroupNorm::C], a[GroupNorm::HxW], a[GroupNorm::group]},
                         &a[GroupNorm::meanOut], &a[GroupNorm::rstdOut]);
    })
    .Does([](const Call& c) -> Status {
      const Args& a = c.args;
      simd::GroupNorm(a[GroupNorm::self], {a[GroupNorm::N], a[GroupNorm::C], a[GroupNorm::HxW], a[GroupNorm::group]},
                      a[GroupNorm::gamma], a[GroupNorm::beta], a[GroupNorm::eps], a[GroupNorm::out], &a[GroupNorm::meanOut],
                      &a[GroupNorm::rstdOut], c.parallel);
      return {};
    });
NPU_OP(GroupNormBackward) = Op<GroupNormBackward>()
    .Optional(GroupNormBackward::gamma)
    .Rules(FloatTensors(GroupNormBackward::gradOut, GroupNormBackward::input, GroupNormBackward::mean, GroupNormBackward::rstd,
                        GroupNormBackward::gamma),
           FloatTensors(GroupNormBackward::gradInput, GroupNormBackward::gradGammaOut, GroupNormBackward::gradBetaOut),
           HasChannels(GroupNormBackward::input), SameShape(GroupNormBackward::input, GroupNormBackward::gradOut),
           SameShape(GroupNormBackward::input, GroupNormBackward::gradInput),
           PerChannel(GroupNormBackward::input, GroupNormBackward::gamma),
           PerChannel(GroupNormBackward::input, GroupNormBackward::gradGammaOut),
           PerChannel(GroupNormBackward::input, GroupNormBackward::gradBetaOut))
    .Uses(GroupNormBackward::N, GroupNormBackward::C, GroupNormBackward::HxW, GroupNormBackward::group, GroupNormBackward::outputMask)
    .Tolerance("accumulated")
    .Like("torch.ops.aten.native_group_norm_backward(gradOut, input, mean, rstd, gamma, N, C, HxW, group, outputMask)")
    .Prepares([](Planning& plan) -> Status {
      const Args& a = plan.args;
      return CheckGroups(plan, a[GroupNormBackward::input],
                         {a[GroupNormBackward::N], a[GroupNormBackward::C], a[GroupNormBackward::HxW], a[GroupNormBackward::group]},
                         &a[GroupNormBackward::mean], &a[GroupNormBackward::rstd]);
    })
    .Does([](const Call& c) -> Status {
      const Args& a = c.args;
      simd::GroupNormBackward(
          a[GroupNormBackward::gradOut], a[GroupNormBackward::input],
          {a[GroupNormBackward::N], a[GroupNormBackward::C], a[GroupNormBackward::HxW], a[GroupNormBackward::group]},
          a[GroupNormBackward::mean], a[GroupNormBackward::rstd], a.Maybe(GroupNormBackward::gamma),
          Wanted(c, GroupNormBackward::outputMask, 0, GroupNormBackward::gradInput),
          Wanted(c, GroupNormBackward::outputMask, 1, GroupNormBackward::gradGammaOut),
          Wanted(c, GroupNormBackward::outputMask, 2, GroupNormBackward::gradBetaOut), c.parallel);
      return {};
    });

}  // namespace npu::ops
