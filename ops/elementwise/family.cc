#include "ops/elementwise/family.h"

#include "tensor/shape.h"

namespace npu::ops {
namespace {

bool IsTensor(const OpDef& op, uint8_t param) { return op.params[param].kind == Kind::tensor; }

const Tensor& OutOf(const OpDef& op, const Args& args) { return *args.Maybe(TensorToken{{op.slots[kOutSlot]}}); }

DType ComputeType(const OpDef& op, const Args& args) {
  const auto& kernel = *static_cast<const simd::PointwiseKernel*>(op.kernel);
  const auto how = static_cast<Compute>(op.imm & kComputeMask);
  if (how == Compute::kOut) return OutOf(op, args).dtype;
  Promotion p;
  for (size_t k = 0; k < static_cast<size_t>(kernel.arity); ++k) {
    const uint8_t param = op.slots[k];
    if (k == kernel.mask_operand || param == 0xff) continue;
    if (IsTensor(op, param)) {
      const Tensor* t = args.Maybe(TensorToken{{param}});
      if (t != nullptr) p.AddTensor(t->dtype, t->rank);
    } else {
      p.AddScalar(NumberAt(op, args, Token{param}));
    }
  }
  const DType compute = p.Result();
  // An operation that has integers of its own (abs, neg …) keeps them.
  if (how == Compute::kFloat && compute != DType::none && !IsFloat(compute) && !IsComplex(compute) &&
      !kernel.types.Has(compute))
    return DType::f32;
  return compute;
}

Status Supported(const Planning& plan, const simd::PointwiseKernel& kernel, DType compute) {
  const OpDef& op = plan.op;
  const std::string_view first = op.params[op.slots[0]].name;
  if (compute == DType::none) {
    return plan.Refuse("the types of {} and {} have no common type.", first, op.params[op.slots[1]].name)
        .Remedy("Cast one of them first.");
  }
  if (kernel.types.Has(compute) && kernel.find(simd::LaneOf(compute)) != nullptr) return {};
  return plan.Refuse("{} would be computed in {}, which the operator does not support.", first, Name(compute))
      .Remedy("Cast {} to a type it supports.", first);
}

Status Storable(const Planning& plan, const simd::PointwiseKernel& kernel, DType compute) {
  const Tensor& out = OutOf(plan.op, plan.args);
  const bool to_real = (plan.op.imm & kRealResult) != 0 && IsComplex(compute);
  const DType result = kernel.predicate ? DType::b8
                       : to_real        ? (compute == DType::c128 ? DType::f64 : DType::f32)
                                        : compute;
  if (kernel.predicate || CanCast(result, out.dtype)) return {};
  const std::string_view name = plan.op.params[plan.op.slots[kOutSlot]].name;
  return plan.Refuse("the result type {} cannot be stored in {}, which is {}.", Name(result), name, Name(out.dtype))
      .Remedy("Give {} the type {}.", name, Name(result));
}

}  // namespace

Scalar NumberAt(const OpDef& op, const Args& args, Token token) {
  switch (op.params[token.index].kind) {
    case Kind::scalar: {
      const Scalar* s = args.Maybe(ScalarToken{token});
      return s != nullptr ? *s : Scalar::Of(0.0);
    }
    case Kind::real32:
    case Kind::real64:
      return Scalar::Of(args[RealIn{token}]);
    case Kind::boolean:
      return Scalar::Of(args[BoolIn{token}]);
    default:
      return Scalar::Of(args[IntIn{token}]);
  }
}

Scalar Kept(const Scalar& number, DType compute) {
  if (!IsInt(compute) || !IsInt(number.dtype) || ItemSize(compute) == 8) return number;
  const int unused = 64 - 8 * ItemSize(compute);
  const uint64_t bits = static_cast<uint64_t>(number.i) << unused;
  const bool is_signed = compute == DType::i8 || compute == DType::i16 || compute == DType::i32;
  return Scalar::Of(is_signed ? static_cast<int64_t>(bits) >> unused : static_cast<int64_t>(bits >> unused));
}

namespace rule::check {

Status Promotes(const Planning& plan, const Rule&) {
  const auto& kernel = plan.Kernel<simd::PointwiseKernel>();
  const DType compute = ComputeType(plan.op, plan.args);
  NPU_TRY(Supported(plan, kernel, compute));
  return Storable(plan, kernel, compute);
}

}  // namespace rule::check

KernelFacts DescribePointwise(const void* kernel) {
  const auto& k = *static_cast<const simd::PointwiseKernel*>(kernel);
  return {k.name, k.types, k.tolerance};
}

PointwiseChoice DefaultChoice(const Planning& plan) {
  const OpDef& op = plan.op;
  PointwiseChoice choice;
  choice.kernel = static_cast<const simd::PointwiseKernel*>(op.kernel);
  choice.compute = ComputeType(op, plan.args);
  for (size_t k = 0; k < choice.operands.size(); ++k) choice.operands[k] = op.slots[k];
  if ((op.imm & kShiftWidth) != 0) choice.imm.Set(0, Scalar::Of(static_cast<int64_t>(ItemSize(choice.compute) * 8)));
  for (size_t i = kNumberSlot; i < kMaxSlots; ++i)
    if (op.slots[i] != 0xff)
      choice.imm.Set(static_cast<int>(i - kNumberSlot),
                     Kept(NumberAt(op, plan.args, Token{op.slots[i]}), choice.compute));
  return choice;
}

Status FinishChoice(Planning& plan, const PointwiseChoice& choice) {
  if (choice.kernel != plan.op.kernel || choice.compute != ComputeType(plan.op, plan.args)) {
    NPU_TRY(Supported(plan, *choice.kernel, choice.compute));
    NPU_TRY(Storable(plan, *choice.kernel, choice.compute));
  }
  plan.NewState(choice);
  plan.Cost(simd::PointwiseNs(*choice.kernel, OutOf(plan.op, plan.args).Numel()));
  return {};
}

Status PreparePointwise(Planning& plan) {
  const PointwiseChoice choice = DefaultChoice(plan);
  plan.NewState(choice);
  plan.Cost(simd::PointwiseNs(*choice.kernel, OutOf(plan.op, plan.args).Numel()));
  return {};
}

Status RunPointwiseOp(const Call& c) {
  const auto& choice = c.State<PointwiseChoice>();
  simd::Pointwise p{choice.kernel, choice.compute};
  std::array<Scalar, 3> numbers;
  std::array<Tensor, 3> operands;
  for (size_t k = 0; k < static_cast<size_t>(choice.kernel->arity); ++k) {
    const uint8_t param = choice.operands[k];
    if (IsTensor(c.op, param)) {
      p.in[k] = c.args.Maybe(TensorToken{{param}});
      continue;
    }
    numbers[k] = Kept(NumberAt(c.op, c.args, Token{param}), choice.compute);
    operands[k] = simd::NumberTensor(numbers[k]);
    p.in[k] = &operands[k];
    p.number[k] = true;
  }
  p.out = &OutOf(c.op, c.args);
  p.imm = choice.imm;
  simd::RunPointwise(p, c.parallel);
  return {};
}

}  // namespace npu::ops
