#include "kernels/simd/loss/loss.h"

#include "gen/abi/ops.h"
#include "ops/common/dims.h"

namespace npu::ops {

using namespace rule;  // NOLINT(google-build-using-namespace)
using simd::Loss, simd::Reduction;

namespace {

Status WantReduction(const Planning& plan, int64_t reduction) {
  if (reduction >= 0 && reduction <= 2) return {};
  return plan.Refuse("reduction is {}.", reduction).Remedy("Use 0 none, 1 mean or 2 sum.");
}

// Shape of the loss: that of the broadcast arguments, or one number.
Status WantLoss(const Planning& plan, TensorIn x, TensorIn y, IntIn reduction, TensorOut out) {
  NPU_TRY(WantReduction(plan, plan.args[reduction]));
  Dims dims = DimsOf(plan.args[x]);
  int bad = 0;
  if (!BroadcastInto(&dims, plan.args[y].Shape(), &bad)) {
    return plan.Refuse("{} has shape {}, which does not broadcast with {} {}.", plan.ParamName(y), ShapeText(plan.args[y].Shape()),
                       plan.ParamName(x), ShapeText(plan.args[x].Shape()))
        .Remedy("Sizes must be equal or 1, counted from the last dimension.");
  }
  if (plan.args[reduction] == 0) return WantShape(plan, out, dims, "it holds one loss for each element");
  if (plan.args[out].Numel() == 1) return {};
  return WantShape(plan, out, Dims{}, "the reduced loss is one number");
}

// Shape of the gradient: that of the broadcast arguments.
Status WantGradient(const Planning& plan, TensorIn grad, TensorIn x, TensorIn y, IntIn reduction, TensorOut out) {
  NPU_TRY(WantReduction(plan, plan.args[reduction]));
  Dims dims = DimsOf(plan.args[x]);
  int bad = 0;
  const bool fits = BroadcastInto(&dims, plan.args[y].Shape(), &bad);
  if (!fits || !npu::ExpandsTo(plan.args[grad].Shape(), dims.Span())) {
    return plan.Refuse("{} {}, {} {} and {} {} do not broadcast.", plan.ParamName(grad), ShapeText(plan.args[grad].Shape()),
                       plan.ParamName(x), ShapeText(plan.args[x].Shape()), plan.ParamName(y), ShapeText(plan.args[y].Shape()))
        .Remedy("Sizes must be equal or 1, counted from the last dimension.");
  }
  return WantShape(plan, out, dims, "it is the gradient of every element");
}

// The arguments seen with one shape.
struct Expand {
  Tensor x, y, w, p;
  simd::LossArgs args;
  Expand(const Tensor& xs, const Tensor& ys, const Tensor* ws = nullptr, const Tensor* ps = nullptr, double beta = 1) {
    Dims dims = DimsOf(xs);
    int bad = 0;
    BroadcastInto(&dims, ys.Shape(), &bad);
    x = Expanded(xs, dims.Span());
    y = Expanded(ys, dims.Span());
    if (ws != nullptr) w = Expanded(*ws, dims.Span());
    if (ps != nullptr) p = Expanded(*ps, dims.Span());
    args = {&x, &y, ws != nullptr ? &w : nullptr, ps != nullptr ? &p : nullptr, beta};
  }
};
Tensor One(Tensor t) {
  t.rank = 0;
  return t;
}

void Forward(const Call& c, Loss loss, const Expand& e, int64_t reduction, const Tensor& out) {
  simd::LossForward(loss, e.args, static_cast<Reduction>(reduction), reduction == 0 ? out : One(out), c.parallel);
}
void Backward(const Call& c, Loss loss, const Expand& e, const Tensor& grad, int64_t reduction, const Tensor& out) {
  simd::LossBackward(loss, e.args, Expanded(grad, e.x.Shape()), static_cast<Reduction>(reduction), out, c.parallel);
}

constexpr std::string_view kReductions = "[0, 1, 2]";

}  // namespace

using abi::MseLoss, abi::MseLossBackward, abi::L1Loss, abi::L1LossBackward, abi::SmoothL1Loss, abi::SmoothL1LossBackward;
NPU_OP(MseLoss) = Op<MseLoss>()
    .Rules(FloatTensors(MseLoss::self, MseLoss::target, MseLoss::out), AnyShape(MseLoss::out))
    .Uses(MseLoss::reduction)
    .Samples(MseLoss::reduction, kReductions)
    .Tolerance("accumulated")
    .Like("torch.ops.aten.mse_loss(self, target, reduction)")
    .Prepares([](Planning& plan) { return WantLoss(plan, MseLoss::self, MseLoss::target, MseLoss::reduction, MseLoss::out); })
    .Does([](const Call& c) -> Status {
      Forward(c, Loss::kMse, Expand(c.args[MseLoss::self], c.args[MseLoss::target]), c.args[MseLoss::reduction], c.args[MseLoss::out]);
      return {};
    });
NPU_OP(MseLossBackward) = Op<MseLossBackward>()
    .Rules(FloatTensors(MseLossBackward::gradOutput, MseLossBackward::self, MseLossBackward::target, MseLossBackward::out),
           AnyShape(MseLossBackward::out))
    .Uses(MseLossBackward::reduction)
    .Samples(MseLossBackward::reduction, kReductions)
    .Tolerance("accumulated")
    .Like("torch.ops.aten.mse_loss_backward(gradOutput, self, target, reduction)")
    .Prepares([](Planning& plan) {
      return WantGradient(plan, MseLossBackward::gradOutput, MseLossBackward::self, MseLossBackward::target, MseLossBackward::reduction,
                          MseLossBackward::out);
    })
    .Does([](const Call& c) -> Status {
      Backward(c, Loss::kMse, Expand(c.args[MseLossBackward::self], c.args[MseLossBackward::target]), c.args[MseLossBackward::gradOutput],
               c.args[MseLossBackward::reduction], c.args[MseLossBackward::out]);
      return {};
    });
NPU_OP(L1Loss) = Op<L1Loss>()
    .Rules(FloatTensors(L1Loss::self, L1Loss::target, L1Loss::out), AnyShape(L1Loss::out))
    .Uses(L1Loss::reduction)
    .Samples(L1Loss::reduction, kReductions)
    .Tolerance("accumulated")
    .Like("torch.nn.functional.l1_loss(self, target, reduction=['none', 'mean', 'sum'][reduction])")
    .Prepares([](Planning& plan) { return WantLoss(plan, L1Loss::self, L1Loss::target, L1Loss::reduction, L1Loss::out); })
    .Does([](const Call& c) -> Status {
      Forward(c, Loss::kL1, Expand(c.args[L1Loss::self], c.args[L1Loss::target]), c.args[L1Loss::reduction], c.args[L1Loss::out]);
      return {};
    });
NPU_OP(L1LossBackward) = Op<L1LossBackward>()
    .Rules(FloatTensors(L1LossBackward::gradOutput, L1LossBackward::self, L1LossBackward::target, L1LossBackward::gradInput),
           AnyShape(L1LossBackward::gradInput))
    .Uses(L1LossBackward::reduction)
    .Samples(L1LossBackward::reduction, kReductions)
    .Tolerance("accumulated")
    .Like("torch.sign(self - target) * gradOutput / (self.numel() if reduction == 1 else 1)")
    .Prepares([](Planning& plan) {
      return WantGradient(plan, L1LossBackward::gradOutput, L1LossBackward::self, L1LossBackward::target, L1LossBackward::reduction,
                          L1LossBackward::gradInput);
    })
    .Does([](const Call& c) -> Status {
      Backward(c, Loss::kL1, Expand(c.args[L1LossBackward::self], c.args[L1LossBackward::target]), c.args[L1LossBackward::gradOutput],
               c.args[L1LossBackward::reduction], c.args[L1LossBackward::gradInput]);
      return {};
    });
NPU_OP(SmoothL1Loss) = Op<SmoothL1Loss>()
    .Rules(FloatTensors(SmoothL1Loss::self, SmoothL1Loss::target, SmoothL1Loss::result), AnyShape(SmoothL1Loss::result))
    .Uses(SmoothL1Loss::reduction, SmoothL1Loss::beta)
    .Samples(SmoothL1Loss::reduction, kReductions)
    .Samples(SmoothL1Loss::beta, "[1.0, 0.5]")
    .Tolerance("accumulated")
    .Like("torch.ops.aten.smooth_l1_loss(self, target, reduction, beta)")
    .Prepares([](Planning& plan) {
      return WantLoss(plan, SmoothL1Loss::self, SmoothL1Loss::target, SmoothL1Loss::reduction, SmoothL1Loss::result);
    })
    .Does([](const Call& c) -> Status {
      Forward(c, Loss::kSmoothL1, Expand(c.args[SmoothL1Loss::self], c.args[SmoothL1Loss::target], nullptr, nullptr, c.args[SmoothL1Loss::beta]),
              c.args[SmoothL1Loss::reduction], c.args[SmoothL1Loss::result]);
      return {};
    });
NPU_OP(SmoothL1LossBackward) = Op<SmoothL1LossBackward>()
    .Rules(FloatTensors(SmoothL1LossBackward::gradOut, SmoothL1LossBackward::self, SmoothL1LossBackward::target, SmoothL1LossBackward::gradInput),
           AnyShape(SmoothL1LossBackward::gradInput))
    .Uses(SmoothL1LossBackward::reduction, SmoothL1LossBackward::beta)
    .Samples(SmoothL1LossBackward::reduction, kReductions)
    .Samples(SmoothL1LossBackward::beta, "[1.0, 0.5]")
    .Tolerance("accumulated")
    .Like("torch.ops.aten.smooth_l1_loss_backward(gradOut, self, target, reduction, beta)")
    .Prepares([](Planning& plan) {
      return WantGradient(plan, SmoothL1LossBackward::gradOut, SmoothL1LossBackward::self, SmoothL1LossBackward::target,
                          SmoothL1LossBackward::reduction, SmoothL1LossBackward::gradInput);
    })
    .Does([](const Call& c) -> Status {
      Backward(c, Loss::kSmoothL1,
               Expand(c.args[SmoothL1LossBackward::self], c.args[SmoothL1LossBackward::target], nullptr, nullptr, c.args[SmoothL1LossBackward::beta]),
               c.args[SmoothL1LossBackward::gradOut], c.args[SmoothL1LossBackward::reduction], c.args[SmoothL1LossBackward::gradInput]);
      return {};
    });

using abi::BinaryCrossEntropy, abi::BinaryCrossEntropyBackward, abi::BinaryCrossEntropyWithLogits, abi::BinaryCrossEntropyWithLogitsBackward;
NPU_OP(BinaryCrossEntropy) = Op<BinaryCrossEntropy>()
    .Rules(FloatTensors(BinaryCrossEntropy::self, BinaryCrossEntropy::target, BinaryCrossEntropy::weight, BinaryCrossEntropy::out),
           SameShape(BinaryCrossEntropy::self, BinaryCrossEntropy::target), ExpandsTo(BinaryCrossEntropy::weight, BinaryCrossEntropy::self),
           AnyShape(BinaryCrossEntropy::out))
    .Uses(BinaryCrossEntropy::reduction)
    .Samples(BinaryCrossEntropy::self, "[torch.rand(3, 5), torch.rand(7)]")
    .Samples(BinaryCrossEntropy::reduction, kReductions)
    .Tolerance("accumulated")
    .Like("torch.ops.aten.binary_cross_entropy(self, target, weight, reduction)")
    .Prepares([](Planning& plan) {
      return WantLoss(plan, BinaryCrossEntropy::self, BinaryCrossEntropy::target, BinaryCrossEntropy::reduction, BinaryCrossEntropy::out);
    })
    .Does([](const Call& c) -> Status {
      Forward(c, Loss::kBce, Expand(c.args[BinaryCrossEntropy::self], c.args[BinaryCrossEntropy::target], c.args[BinaryCrossEntropy::weight]),
              c.args[BinaryCrossEntropy::reduction], c.args[BinaryCrossEntropy::out]);
      return {};
    });
NPU_OP(BinaryCrossEntropyBackward) = Op<BinaryCrossEntropyBackward>()
    .Rules(FloatTensors(BinaryCrossEntropyBackward::gradOutput, BinaryCrossEntropyBackward::self, BinaryCrossEntropyBackward::target,
                        BinaryCrossEntropyBackward::weightOptional, BinaryCrossEntropyBackward::out),
           ExpandsTo(BinaryCrossEntropyBackward::weightOptional, BinaryCrossEntropyBackward::self), AnyShape(BinaryCrossEntropyBackward::out))
    .Uses(BinaryCrossEntropyBackward::reduction)
    .Samples(BinaryCrossEntropyBackward::reduction, kReductions)
    .Tolerance("accumulated")
    .Like("torch.ops.aten.binary_cross_entropy_backward(gradOutput, self, target, weightOptional, reduction)")
    .Prepares([](Planning& plan) {
      return WantGradient(plan, BinaryCrossEntropyBackward::gradOutput, BinaryCrossEntropyBackward::self, BinaryCrossEntropyBackward::target,
                          BinaryCrossEntropyBackward::reduction, BinaryCrossEntropyBackward::out);
    })
    .Does([](const Call& c) -> Status {
      Backward(c, Loss::kBce,
               Expand(c.args[BinaryCrossEntropyBackward::self], c.args[BinaryCrossEntropyBackward::target],
                      c.args[BinaryCrossEntropyBackward::weightOptional]),
               c.args[BinaryCrossEntropyBackward::gradOutput], c.args[BinaryCrossEntropyBackward::reduction], c.args[BinaryCrossEntropyBackward::out]);
      return {};
    });
NPU_OP(BinaryCrossEntropyWithLogits) = Op<BinaryCrossEntropyWithLogits>()
    .Rules(FloatTensors(BinaryCrossEntropyWithLogits::self, BinaryCrossEntropyWithLogits::target, BinaryCrossEntropyWithLogits::weightOptional,
                        BinaryCrossEntropyWithLogits::posWeightOptional, BinaryCrossEntropyWithLogits::out),
           SameShape(BinaryCrossEntropyWithLogits::self, BinaryCrossEntropyWithLogits::target),
           ExpandsTo(BinaryCrossEntropyWithLogits::weightOptional, BinaryCrossEntropyWithLogits::self),
           ExpandsTo(BinaryCrossEntropyWithLogits::posWeightOptional, BinaryCrossEntropyWithLogits::self),
           AnyShape(BinaryCrossEntropyWithLogits::out))
    .Uses(BinaryCrossEntropyWithLogits::reduction)
    .Samples(BinaryCrossEntropyWithLogits::reduction, kReductions)
    .Tolerance("accumulated")
    .Like("torch.ops.aten.binary_cross_entropy_with_logits(self, target, weightOptional, posWeightOptional, reduction)")
    .Prepares([](Planning& plan) {
      return WantLoss(plan, BinaryCrossEntropyWithLogits::self, BinaryCrossEntropyWithLogits::target, BinaryCrossEntropyWithLogits::reduction,
                      BinaryCrossEntropyWithLogits::out);
    })
    .Does([](const Call& c) -> Status {
      using B = BinaryCrossEntropyWithLogits;
      Forward(c, Loss::kBceLogits, Expand(c.args[B::self], c.args[B::target], c.args[B::weightOptional], c.args[B::posWeightOptional]),
              c.args[B::reduction], c.args[B::out]);
      return {};
    });
NPU_OP(BinaryCrossEntropyWithLogitsBackward) = Op<BinaryCrossEntropyWithLogitsBackward>()
    .Rules(FloatTensors(BinaryCrossEntropyWithLogitsBackward::gradOutput, BinaryCrossEntropyWithLogitsBackward::self,
                        BinaryCrossEntropyWithLogitsBackward::target, BinaryCrossEntropyWithLogitsBackward::weightOptional,
                        BinaryCrossEntropyWithLogitsBackward::posWeightOptional, BinaryCrossEntropyWithLogitsBackward::out),
           ExpandsTo(BinaryCrossEntropyWithLogitsBackward::weightOptional, BinaryCrossEntropyWithLogitsBackward::self),
           ExpandsTo(BinaryCrossEntropyWithLogitsBackward::posWeightOptional, BinaryCrossEntropyWithLogitsBackward::self),
           AnyShape(BinaryCrossEntropyWithLogitsBackward::out))
    .Uses(BinaryCrossEntropyWithLogitsBackward::reduction)
    .Samples(BinaryCrossEntropyWithLogitsBackward::reduction, kReductions)
    .Tolerance("accumulated")
    .Like("(lambda t, y: (t * gradOutput * (1 if weightOptional is None else weightOptional)) / (self.numel() if reduction == 1 else 1))("
          "((1 if posWeightOptional is None else posWeightOptional) * target + 1 - target) * torch.sigmoid(self) - "
          "(1 if posWeightOptional is None else posWeightOptional) * target, 0)")
    .Prepares([](Planning& plan) {
      using B = BinaryCrossEntropyWithLogitsBackward;
      return WantGradient(plan, B::gradOutput, B::self, B::target, B::reduction, B::out);
    })
    .Does([](const Call& c) -> Status {
      using B = BinaryCrossEntropyWithLogitsBackward;
      Backward(c, Loss::kBceLogits, Expand(c.args[B::self], c.args[B::target], c.args[B::weightOptional], c.args[B::posWeightOptional]),
               c.args[B::gradOutput], c.args[B::reduction], c.args[B::out]);
      return {};
    });

using abi::KlDiv, abi::KlDivBackward, abi::KlDivTargetBackward;
NPU_OP(KlDiv) = Op<KlDiv>()
    .Rules(FloatTensors(KlDiv::self, KlDiv::target, KlDiv::out), AnyShape(KlDiv::out))
    .Uses(KlDiv::reduction, KlDiv::logTarget)
    .Samples(KlDiv::reduction, kReductions)
    .Samples(KlDiv::target, "[torch.rand(3, 5), torch.rand(7)]")
    .Tolerance("accumulated")
    .Like("torch.ops.aten.kl_div(self, target, reduction, log_target=logTarget)")
    .Prepares([](Planning& plan) { return WantLoss(plan, KlDiv::self, KlDiv::target, KlDiv::reduction, KlDiv::out); })
    .Does([](const Call& c) -> Status {
      Forward(c, c.args[KlDiv::logTarget] ? Loss::kKlDivLog : Loss::kKlDiv, Expand(c.args[KlDiv::self], c.args[KlDiv::target]),
              c.args[KlDiv::reduction], c.args[KlDiv::out]);
      return {};
    });
NPU_OP(KlDivBackward) = Op<KlDivBackward>()
    .Rules(FloatTensors(KlDivBackward::gradOutput, KlDivBackward::self, KlDivBackward::target, KlDivBackward::out), AnyShape(KlDivBackward::out))
    .Uses(KlDivBackward::reduction, KlDivBackward::logTarget)
    .Samples(KlDivBackward::reduction, kReductions)
    .Samples(KlDivBackward::target, "[torch.rand(3, 5), torch.rand(7)]")
    .Tolerance("accumulated")
    .Like("-(target.exp() if logTarget else target) * gradOutput / (self.numel() if reduction == 1 else 1)")
    .Prepares([](Planning& plan) {
      return WantGradient(plan, KlDivBackward::gradOutput, KlDivBackward::self, KlDivBackward::target, KlDivBackward::reduction, KlDivBackward::out);
    })
    .Does([](const Call& c) -> Status {
      Backward(c, c.args[KlDivBackward::logTarget] ? Loss::kKlDivLog : Loss::kKlDiv, Expand(c.args[KlDivBackward::self], c.args[KlDivBackward::target]),
               c.args[KlDivBackward::gradOutput], c.args[KlDivBackward::reduction], c.args[KlDivBackward::out]);
      return {};
    });
NPU_OP(KlDivTargetBackward) = Op<KlDivTargetBackward>()
    .Rules(FloatTensors(KlDivTargetBackward::gradOutput, KlDivTargetBackward::self, KlDivTargetBackward::target, KlDivTargetBackward::gradTarget),
           AnyShape(KlDivTargetBackward::gradTarget))
    .Uses(KlDivTargetBackward::reduction, KlDivTargetBackward::logTarget)
    .Samples(KlDivTargetBackward::reduction, kReductions)
    .Samples(KlDivTargetBackward::target, "[torch.rand(3, 5) + 0.1, torch.rand(7) + 0.1]")
    .Tolerance("accumulated")
    .Like("(target.exp() * (target + 1 - self) if logTarget else target.log() + 1 - self) * gradOutput / (self.numel() if reduction == 1 else 1)")
    .Prepares([](Planning& plan) {
      using K = KlDivTargetBackward;
      return WantGradient(plan, K::gradOutput, K::self, K::target, K::reduction, K::gradTarget);
    })
    .Does([](const Call& c) -> Status {
      using K = KlDivTargetBackward;
      const Expand e(c.args[K::self], c.args[K::target]);
      simd::KlTargetBackward(c.args[K::logTarget], e.x, e.y, Expanded(c.args[K::gradOutput], e.x.Shape()),
                             static_cast<Reduction>(c.args[K::reduction]), c.args[K::gradTarget], c.parallel);
      return {};
    });

}  // namespace npu::ops
