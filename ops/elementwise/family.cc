#include "ops/elementwise/family.h"

#include "tensor/shape.h"

namespace npu::ops {
namespace {

struct PointwiseState {
  DType compute = DType::none;
};

bool IsTensor(const OpDef& op, uint8_t param) { return op.params[param].kind == Kind::tensor; }

// A number as any of the kinds a parameter may have.
Scalar NumberAt(const OpDef& op, const Args& args, uint8_t param) {
  const Token token{param};
  switch (op.params[param].kind) {
    case Kind::scalar: {
      const Scalar* s = args.Maybe(ScalarToken{token});
      return s != nullptr ? *s : Scalar::Of(0.0);
    }
    case Kind::real32:
    case Kind::real64: return Scalar::Of(args[RealIn{token}]);
    case Kind::boolean: return Scalar::Of(args[BoolIn{token}]);
    default: return Scalar::Of(args[IntIn{token}]);
  }
}

// A number as a 0-d operand; the value lies in the arguments' block.
Tensor NumberOperand(const Scalar& s) {
  Tensor t;
  t.dtype = s.Complex() ? DType::c128 : s.Floating() ? DType::f64 : DType::i64;
  t.data = const_cast<void*>(s.Floating() || s.Complex() ? static_cast<const void*>(&s.re) : &s.i);
  return t;
}

DType ComputeType(const OpDef& op, const Args& args) {
  const auto& kernel = *static_cast<const simd::PointwiseKernel*>(op.kernel);
  Promotion p;
  for (size_t k = 0; k < static_cast<size_t>(kernel.arity); ++k) {
    const uint8_t param = op.slots[k];
    if (k == kernel.mask_operand) continue;
    if (IsTensor(op, param)) {
      const Tensor* t = args.Maybe(TensorToken{{param}});
      if (t != nullptr) p.AddTensor(t->dtype, t->rank);
    } else if ((op.imm & kIgnoreNumbersInPromotion) == 0) {
      p.AddScalar(NumberAt(op, args, param));
    }
  }
  DType compute = p.Result();
  switch (static_cast<Compute>(op.imm & kComputeMask)) {
    case Compute::kPromoted: break;
    case Compute::kFloat:
      // An operation that has integers of its own (abs, neg …) keeps them.
      if (!IsFloat(compute) && !IsComplex(compute) && !kernel.types.Has(compute)) compute = DType::f32;
      break;
    case Compute::kOut: compute = args.Maybe(TensorToken{{op.slots[kOutSlot]}})->dtype; break;
  }
  return compute;
}

}  // namespace

namespace rule::check {

Status Promotes(const Planning& plan, const Rule&) {
  const OpDef& op = plan.op;
  const auto& kernel = plan.Kernel<simd::PointwiseKernel>();
  const DType compute = ComputeType(op, plan.args);
  const std::string_view first = op.params[op.slots[0]].name;
  if (compute == DType::none) {
    return plan.Refuse("the types of {} and {} have no common type.", first, op.params[op.slots[1]].name)
        .Remedy("Cast one of them first.");
  }
  if (!kernel.types.Has(compute) || kernel.find(simd::LaneOf(compute)) == nullptr) {
    return plan.Refuse("{} would be computed in {}, which the operator does not support.", first, Name(compute))
        .Remedy("Cast {} to a type it supports.", first);
  }
  const Tensor* out = plan.args.Maybe(TensorToken{{op.slots[kOutSlot]}});
  const DType result = kernel.predicate ? DType::b8 : compute;
  if ((op.imm & kAnyOutType) == 0 && !CanCast(result, out->dtype)) {
    return plan.Refuse("the result type {} cannot be stored in {}, which is {}.", Name(result), op.params[op.slots[kOutSlot]].name,
                       Name(out->dtype))
        .Remedy("Give {} the type {}.", op.params[op.slots[kOutSlot]].name, Name(result));
  }
  return {};
}

}  // namespace rule::check

KernelFacts DescribePointwise(const void* kernel) {
  const auto& k = *static_cast<const simd::PointwiseKernel*>(kernel);
  return {k.name, k.types, k.tolerance};
}

Status PreparePointwise(Planning& plan) {
  const auto& kernel = plan.Kernel<simd::PointwiseKernel>();
  plan.NewState(PointwiseState{ComputeType(plan.op, plan.args)});
  plan.Cost(simd::PointwiseNs(kernel, plan.args.Maybe(TensorToken{{plan.op.slots[kOutSlot]}})->Numel()));
  return {};
}

Status RunPointwiseOp(const Call& c) {
  const auto& kernel = c.Kernel<simd::PointwiseKernel>();
  simd::Pointwise p{&kernel, c.State<PointwiseState>().compute};
  std::array<Scalar, 3> numbers;
  std::array<Tensor, 3> operands;
  for (size_t k = 0; k < static_cast<size_t>(kernel.arity); ++k) {
    const uint8_t param = c.op.slots[k];
    if (IsTensor(c.op, param)) {
      p.in[k] = c.args.Maybe(TensorToken{{param}});
      continue;
    }
    numbers[k] = NumberAt(c.op, c.args, param);
    operands[k] = NumberOperand(numbers[k]);
    p.in[k] = &operands[k];
    p.number[k] = true;
  }
  p.out = c.args.Maybe(TensorToken{{c.op.slots[kOutSlot]}});
  if ((c.op.imm & kShiftWidth) != 0) p.imm.Set(0, Scalar::Of(static_cast<int64_t>(ItemSize(p.compute) * 8)));
  for (size_t i = kNumberSlot; i < kMaxSlots; ++i) {
    if (c.op.slots[i] != 0xff) p.imm.Set(static_cast<int>(i - kNumberSlot), NumberAt(c.op, c.args, c.op.slots[i]));
  }
  simd::RunPointwise(p, c.parallel);
  return {};
}

}  // namespace npu::ops
