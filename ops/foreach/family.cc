#include "ops/foreach/family.h"

#include <vector>

#include "tensor/shape.h"

namespace npu::ops {
namespace {

// The value of a number argument for the i-th tensor. A device tensor is read here, so only from Does.
Scalar NumberFor(const OpDef& op, const Args& args, Token token, size_t i) {
  switch (op.params[token.index].kind) {
    case Kind::scalar_list:
      return args[ScalarListIn{token}][i];
    case Kind::tensor: {
      const Tensor& t = *args.Maybe(TensorToken{token});
      const auto at = t.Numel() > 1 ? static_cast<int64_t>(i) * (t.rank > 0 ? t.strides[0] : 0) : 0;
      Scalar s;
      Scalar::Read(static_cast<const char*>(t.data) + at * ItemSize(t.dtype), t.dtype, &s);
      return s;
    }
    default:
      return NumberAt(op, args, token);
  }
}

bool IsList(const OpDef& op, uint8_t param) { return op.params[param].kind == Kind::tensor_list; }

DType ComputeFor(const OpDef& op, const Args& args, size_t i) {
  const auto& kernel = *static_cast<const simd::PointwiseKernel*>(op.kernel);
  Promotion p;
  for (size_t k = 0; k < static_cast<size_t>(kernel.arity); ++k) {
    const Token token{op.slots[k]};
    switch (op.params[token.index].kind) {
      case Kind::tensor_list: {
        const Tensor& t = args[ListToken{token}][i];
        p.AddTensor(t.dtype, t.rank);
        break;
      }
      case Kind::tensor:
        break;  // a number on the device: its kind is the tensors'
      default:
        p.AddScalar(NumberFor(op, args, token, i));
    }
  }
  const DType compute = p.Result();
  const bool keep = IsFloat(compute) || IsComplex(compute) || kernel.types.Has(compute);
  return keep ? compute : DType::f32;
}

std::span<const Tensor> OutList(const OpDef& op, const Args& args) { return args[ListToken{{op.slots[kOutSlot]}}]; }

Status CheckLengths(const Planning& plan, size_t count) {
  const OpDef& op = plan.op;
  for (size_t s = 0; s < kMaxSlots; ++s) {
    const Token token{op.slots[s]};
    if (token.index == 0xff) continue;
    const Kind kind = op.params[token.index].kind;
    size_t has = count;
    if (kind == Kind::tensor_list) has = plan.args[ListToken{token}].size();
    if (kind == Kind::scalar_list) has = plan.args[ScalarListIn{token}].size();
    if (kind == Kind::tensor) {
      const Tensor* t = plan.args.Maybe(TensorToken{token});
      if (t != nullptr && t->Numel() != 1) has = static_cast<size_t>(t->Numel());
    }
    if (has != count) {
      return plan.Refuse("{} has {} values, but there are {} tensors.", plan.ParamName(token), has, count)
          .Remedy("Pass one value for all, or one for each tensor.");
    }
  }
  return {};
}

void RunOne(const Call& c, size_t i, Parallel& parallel) {
  const auto& kernel = c.Kernel<simd::PointwiseKernel>();
  simd::Pointwise p{&kernel, ComputeFor(c.op, c.args, i)};
  std::array<Scalar, 3> numbers;
  std::array<Tensor, 3> operands;
  for (size_t k = 0; k < static_cast<size_t>(kernel.arity); ++k) {
    const Token token{c.op.slots[k]};
    if (IsList(c.op, token.index)) {
      p.in[k] = &c.args[ListToken{token}][i];
      continue;
    }
    numbers[k] = NumberFor(c.op, c.args, token, i);
    operands[k] = simd::NumberTensor(numbers[k]);
    p.in[k] = &operands[k];
    p.number[k] = true;
  }
  if (&kernel == &simd::kPow && p.number[1]) p.kernel = &PowerKernel(numbers[1], p.compute);
  p.out = &OutList(c.op, c.args)[i];
  if (const Token number{c.op.slots[kNumberSlot]}; number.index != 0xff)
    p.imm.Set(0, NumberFor(c.op, c.args, number, i));
  simd::RunPointwise(p, parallel);
}

}  // namespace

Status PrepareForeach(Planning& plan) {
  const auto& kernel = plan.Kernel<simd::PointwiseKernel>();
  const auto out = OutList(plan.op, plan.args);
  NPU_TRY(CheckLengths(plan, out.size()));
  double cost = 0;
  for (size_t i = 0; i < out.size(); ++i) {
    const std::string_view name = plan.op.params[plan.op.slots[kOutSlot]].name;
    if (out[i].dtype == DType::none)
      return plan.Refuse("{}[{}] is null.", name, i).Remedy("Every tensor of the list must exist.");
    for (size_t k = 0; k < static_cast<size_t>(kernel.arity); ++k) {
      const Token token{plan.op.slots[k]};
      if (!IsList(plan.op, token.index)) continue;
      const Tensor& t = plan.args[ListToken{token}][i];
      if (t.dtype != DType::none && ExpandsTo(t.Shape(), out[i].Shape())) continue;
      return plan
          .Refuse("{}[{}] has shape {}, but {}[{}] has shape {}.", plan.ParamName(token), i, ShapeText(t.Shape()), name,
                  i, ShapeText(out[i].Shape()))
          .Remedy("The lists must agree in shape, tensor by tensor.");
    }
    const DType compute = ComputeFor(plan.op, plan.args, i);
    if (!kernel.types.Has(compute) || !CanCast(compute, out[i].dtype)) {
      return plan
          .Refuse("element {} would be computed in {} and stored in {} ({}), which the operator does not support.", i,
                  Name(compute), name, Name(out[i].dtype))
          .Remedy("Cast the tensors to one type that holds the result.");
    }
    cost += simd::PointwiseNs(kernel, out[i].Numel());
  }
  plan.Cost(cost);
  return {};
}

Status RunForeach(const Call& c) {
  // Large tensors are split over the threads, small ones are dealt out whole.
  constexpr int64_t kLarge = 1 << 16;
  const auto out = OutList(c.op, c.args);
  std::vector<size_t> small;
  int64_t elements = 0;
  for (size_t i = 0; i < out.size(); ++i) {
    if (out[i].Numel() >= kLarge) {
      RunOne(c, i, c.parallel);
    } else {
      small.push_back(i);
      elements += out[i].Numel();
    }
  }
  if (small.empty()) return {};
  const int64_t average = elements / static_cast<int64_t>(small.size()) + 64;
  c.parallel.For(static_cast<int64_t>(small.size()), std::max<int64_t>(1, kLarge / average),
                 [&](int64_t begin, int64_t end) {
                   SerialParallel serial;
                   for (int64_t i = begin; i < end; ++i) RunOne(c, small[static_cast<size_t>(i)], serial);
                 });
  return {};
}

}  // namespace npu::ops
