// Negative log likelihood, whose targets are classes.
#include "gen/abi/ops.h"
#include "kernels/simd/loss/loss.h"
#include "ops/common/dims.h"

namespace npu::ops {

using namespace rule;  // NOLINT(google-build-using-namespace)
using simd::Reduction;

namespace {

// self is [C], [N, C] or [N, C, …]; target lacks the classes.
Status WantTargets(const Planning& plan, const Tensor& self, const Tensor& target, const Tensor* weight, int64_t reduction) {
  if (reduction < 0 || reduction > 2) return plan.Refuse("reduction is {}.", reduction).Remedy("Use 0 none, 1 mean or 2 sum.");
  Dims wanted;
  for (int d = 0; d < self.rank; ++d) {
    if (d != (self.rank == 1 ? 0 : 1)) wanted.Push(self.shape[static_cast<size_t>(d)]);
  }
  if (self.rank < 1 || (!npu::SameShape(target.Shape(), wanted.Span()) && !(self.rank == 1 && target.Numel() == 1))) {
    return plan.Refuse("self has shape {}, but target has shape {}.", ShapeText(self.Shape()), ShapeText(target.Shape()))
        .Remedy("target is self without the dimension of the classes.");
  }
  const int64_t classes = self.shape[self.rank == 1 ? 0 : 1];
  if (weight != nullptr && weight->Numel() != classes) {
    return plan.Refuse("weight has shape {}, but there are {} classes.", ShapeText(weight->Shape()), classes).Remedy("Give one weight for each class.");
  }
  return {};
}

Status WantResult(const Planning& plan, TensorOut out, TensorOut total, const Tensor& target, int64_t reduction) {
  if (reduction == 0) NPU_TRY(WantShape(plan, out, DimsOf(target), "it holds one loss for each target"));
  else if (plan.args[out].Numel() != 1) return WantShape(plan, out, Dims{}, "the reduced loss is one number");
  return plan.args[total].Numel() == 1 ? Status() : WantShape(plan, total, Dims{}, "it is one number");
}

Tensor One(Tensor t, bool yes = true) {
  if (yes) t.rank = 0;
  return t;
}
// A vector's target as 0-d.
Tensor TargetOf(const Tensor& self, const Tensor& target) { return One(target, self.rank == 1); }
const Tensor* WeightOf(const Tensor* weight) { return weight != nullptr && weight->Numel() > 0 ? weight : nullptr; }

constexpr std::string_view kReductions = "[0, 1, 2]";

}  // namespace

using abi::NLLLoss, abi::NLLLoss2d, abi::NLLLossBackward, abi::NLLLoss2dBackward;
NPU_OP(NLLLoss) = Op<NLLLoss>()
    .Optional(NLLLoss::weight)
    .Rules(DtypeIn(NLLLoss::self, kFloats), FloatTensors(NLLLoss::weight, NLLLoss::out, NLLLoss::totalWeightOut),
           DtypeIn(NLLLoss::target, kInts), AnyShapes(NLLLoss::out, NLLLoss::totalWeightOut))
    .Uses(NLLLoss::reduction, NLLLoss::ignoreIndex)
    .Samples(NLLLoss::reduction, kReductions)
    .Samples(NLLLoss::ignoreIndex, "[-100, 1]")
    .Tolerance("accumulated")
    .Like("torch.ops.aten.nll_loss_forward(self, target, weight, reduction, ignoreIndex)")
    .Prepares([](Planning& plan) -> Status {
      const Args& a = plan.args;
      NPU_TRY(WantTargets(plan, a[NLLLoss::self], a[NLLLoss::target], WeightOf(a.Maybe(NLLLoss::weight)), a[NLLLoss::reduction]));
      return WantResult(plan, NLLLoss::out, NLLLoss::totalWeightOut, a[NLLLoss::target], a[NLLLoss::reduction]);
    })
    .Does([](const Call& c) -> Status {
      const Args& a = c.args;
      const Tensor& self = a[NLLLoss::self];
      const auto reduction = static_cast<Reduction>(a[NLLLoss::reduction]);
      return CheckIndex(c, NLLLoss::target, NLLLoss::self,
                        simd::NllForward(self, TargetOf(self, a[NLLLoss::target]), WeightOf(a.Maybe(NLLLoss::weight)), reduction,
                                         a[NLLLoss::ignoreIndex], One(a[NLLLoss::out], reduction != Reduction::kNone || self.rank == 1),
                                         One(a[NLLLoss::totalWeightOut]), c.parallel));
    });
NPU_OP(NLLLoss2d) = Op<NLLLoss2d>()
    .Rules(DtypeIn(NLLLoss2d::self, kFloats), FloatTensors(NLLLoss2d::weight, NLLLoss2d::out, NLLLoss2d::totalWeightOut),
           DtypeIn(NLLLoss2d::target, kInts), AnyShapes(NLLLoss2d::out, NLLLoss2d::totalWeightOut))
    .Uses(NLLLoss2d::reduction, NLLLoss2d::ignoreIndex)
    .Samples(NLLLoss2d::reduction, kReductions)
    .Samples(NLLLoss2d::ignoreIndex, "[-100, 1]")
    .Tolerance("accumulated")
    .Like("torch.ops.aten.nll_loss2d_forward(self, target, weight, reduction, ignoreIndex)")
    .Prepares([](Planning& plan) -> Status {
      const Args& a = plan.args;
      NPU_TRY(WantTargets(plan, a[NLLLoss2d::self], a[NLLLoss2d::target], WeightOf(a[NLLLoss2d::weight]), a[NLLLoss2d::reduction]));
      return WantResult(plan, NLLLoss2d::out, NLLLoss2d::totalWeightOut, a[NLLLoss2d::target], a[NLLLoss2d::reduction]);
    })
    .Does([](const Call& c) -> Status {
      const Args& a = c.args;
      const auto reduction = static_cast<Reduction>(a[NLLLoss2d::reduction]);
      return CheckIndex(c, NLLLoss2d::target, NLLLoss2d::self,
                        simd::NllForward(a[NLLLoss2d::self], a[NLLLoss2d::target], WeightOf(a[NLLLoss2d::weight]), reduction,
                                         a[NLLLoss2d::ignoreIndex], One(a[NLLLoss2d::out], reduction != Reduction::kNone),
                                         One(a[NLLLoss2d::totalWeightOut]), c.parallel));
    });
NPU_OP(NLLLossBackward) = Op<NLLLossBackward>()
    .Optional(NLLLossBackward::weight)
    .Rules(FloatTensors(NLLLossBackward::gradOutput, NLLLossBackward::self, NLLLossBackward::weight, NLLLossBackward::totalWeight,
                        NLLLossBackward::out),
           DtypeIn(NLLLossBackward::target, kInts), SameShape(NLLLossBackward::self, NLLLossBackward::out))
    .Uses(NLLLossBackward::reduction, NLLLossBackward::ignoreIndex)
    .Samples(NLLLossBackward::reduction, kReductions)
    .Samples(NLLLossBackward::ignoreIndex, "[-100, 1]")
    .Tolerance("accumulated")
    .Like("torch.ops.aten.nll_loss_backward(gradOutput, self, target, weight, reduction, ignoreIndex, totalWeight)")
    .Prepares([](Planning& plan) -> Status {
      const Args& a = plan.args;
      return WantTargets(plan, a[NLLLossBackward::self], a[NLLLossBackward::target], WeightOf(a.Maybe(NLLLossBackward::weight)),
                         a[NLLLossBackward::reduction]);
    })
    .Does([](const Call& c) -> Status {
      const Args& a = c.args;
      const Tensor& out = a[NLLLossBackward::out];
      return CheckIndex(c, NLLLossBackward::target, NLLLossBackward::self,
                        simd::NllBackward(a[NLLLossBackward::gradOutput], TargetOf(out, a[NLLLossBackward::target]),
                                          WeightOf(a.Maybe(NLLLossBackward::weight)), static_cast<Reduction>(a[NLLLossBackward::reduction]),
                                          a[NLLLossBackward::ignoreIndex], a[NLLLossBackward::totalWeight], out, c.parallel));
    });
NPU_OP(NLLLoss2dBackward) = Op<NLLLoss2dBackward>()
    .Rules(FloatTensors(NLLLoss2dBackward::gradOutput, NLLLoss2dBackward::self, NLLLoss2dBackward::weight, NLLLoss2dBackward::totalWeight,
                        NLLLoss2dBackward::out),
           DtypeIn(NLLLoss2dBackward::target, kInts), SameShape(NLLLoss2dBackward::self, NLLLoss2dBackward::out))
    .Uses(NLLLoss2dBackward::reduction, NLLLoss2dBackward::ignoreIndex)
    .Samples(NLLLoss2dBackward::reduction, kReductions)
    .Samples(NLLLoss2dBackward::ignoreIndex, "[-100, 1]")
    .Tolerance("accumulated")
    .Like("torch.ops.aten.nll_loss2d_backward(gradOutput, self, target, weight, reduction, ignoreIndex, totalWeight)")
    .Prepares([](Planning& plan) -> Status {
      const Args& a = plan.args;
      return WantTargets(plan, a[NLLLoss2dBackward::self], a[NLLLoss2dBackward::target], WeightOf(a[NLLLoss2dBackward::weight]),
                         a[NLLLoss2dBackward::reduction]);
    })
    .Does([](const Call& c) -> Status {
      const Args& a = c.args;
      return CheckIndex(c, NLLLoss2dBackward::target, NLLLoss2dBackward::self,
                        simd::NllBackward(a[NLLLoss2dBackward::gradOutput], a[NLLLoss2dBackward::target], WeightOf(a[NLLLoss2dBackward::weight]),
                                          static_cast<Reduction>(a[NLLLoss2dBackward::reduction]), a[NLLLoss2dBackward::ignoreIndex],
                                          a[NLLLoss2dBackward::totalWeight], a[NLLLoss2dBackward::out], c.parallel));
    });

}  // namespace npu::ops
