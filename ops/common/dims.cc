#include "ops/common/dims.h"

namespace npu::ops {

Dims ReducedShape(const Tensor& t, uint32_t mask, bool keep) {
  Dims dims;
  for (int d = 0; d < t.rank; ++d) {
    if ((mask >> d & 1u) == 0) dims.Push(t.shape[static_cast<size_t>(d)]);
    else if (keep) dims.Push(1);
  }
  return dims;
}

Status WantShape(const Planning& plan, TensorToken out, const Dims& wanted, std::string_view why) {
  const Tensor* t = plan.args.Maybe(out);
  if (t == nullptr || npu::SameShape(t->Shape(), wanted.Span())) return {};
  return plan.Refuse("{} has shape {}, but {}.", plan.ParamName(out), ShapeText(t->Shape()), why)
      .Remedy("Give {} the shape {}.", plan.ParamName(out), ShapeText(wanted.Span()));
}

Status IndexError(const Call& c, Token index, Token of, const simd::BadIndex& bad) {
  return Error(Code::kTaskException, "{}: {}[{}] is {}, but dim {} of {} has size {}.", c.op.name,
               c.op.params[index.index].name, bad.position, bad.value, bad.dim, c.op.params[of.index].name, bad.size)
      .Remedy("Indices run from 0 to {}.", bad.size - 1);
}

namespace rule::check {
namespace {

TensorToken At(const Rule& rule, size_t i) { return TensorToken{{rule.params[i]}}; }

// Dimensions in range and named once.
Status Wrap(const Planning& plan, std::span<const int64_t> dims, Token name, const Tensor& self, uint32_t* mask) {
  uint32_t seen = 0;
  for (size_t i = 0; i < dims.size(); ++i) {
    const int d = WrapDim(dims[i], self.rank);
    if (d < 0) {
      const int n = self.rank == 0 ? 1 : self.rank;
      return plan.Refuse("{}[{}] is {}, but self has shape {}.", plan.ParamName(name), i, dims[i], ShapeText(self.Shape()))
          .Remedy("Dimensions run from {} to {}.", -n, n - 1);
    }
    if (seen >> d & 1u) {
      return plan.Refuse("{} names dimension {} twice.", plan.ParamName(name), d).Remedy("Name each dimension once.");
    }
    seen |= 1u << d;
  }
  *mask = MaskOf(dims, self.rank);
  return {};
}

}  // namespace

Status Reduced(const Planning& plan, const Rule& rule) {
  const Tensor* self = plan.args.Maybe(At(rule, 0));
  if (self == nullptr) return {};
  uint32_t mask = 0;
  NPU_TRY(Wrap(plan, plan.args[IntsToken{{rule.params[1]}}], Token{rule.params[1]}, *self, &mask));
  const Dims wanted = ReducedShape(*self, mask, plan.args[BoolIn{{rule.params[2]}}]);
  return WantShape(plan, At(rule, 3), wanted, 
                   fmt::format("self {} reduces to {}", ShapeText(self->Shape()), ShapeText(wanted.Span())));
}

Status ReducedDim(const Planning& plan, const Rule& rule) {
  const Tensor* self = plan.args.Maybe(At(rule, 0));
  if (self == nullptr) return {};
  const int64_t dim[] = {plan.args[IntIn{{rule.params[1]}}]};
  uint32_t mask = 0;
  NPU_TRY(Wrap(plan, dim, Token{rule.params[1]}, *self, &mask));
  const Dims wanted = ReducedShape(*self, mask, plan.args[BoolIn{{rule.params[2]}}]);
  return WantShape(plan, At(rule, 3), wanted, 
                   fmt::format("self {} reduces to {}", ShapeText(self->Shape()), ShapeText(wanted.Span())));
}

Status ReducedAll(const Planning& plan, const Rule& rule) {
  const Tensor* out = plan.args.Maybe(At(rule, 1));
  if (out == nullptr || out->Numel() == 1) return {};
  return WantShape(plan, At(rule, 1), Dims{}, "the result is one number");
}

Status NotEmptyDims(const Planning& plan, const Rule& rule) {
  const Tensor* self = plan.args.Maybe(At(rule, 0));
  if (self == nullptr) return {};
  const uint32_t mask = MaskOf(plan.args[IntsToken{{rule.params[1]}}], self->rank);
  for (int d = 0; d < self->rank; ++d) {
    if ((mask >> d & 1u) == 0 || self->shape[static_cast<size_t>(d)] != 0) continue;
    return plan.Refuse("dim {} of {}, which has shape {}, is empty and nothing has no such element.", d,
                       plan.ParamName(At(rule, 0)), ShapeText(self->Shape()))
        .Remedy("Reduce dimensions that have elements.");
  }
  return {};
}

Status NotEmptyDim(const Planning& plan, const Rule& rule) {
  const Tensor* self = plan.args.Maybe(At(rule, 0));
  if (self == nullptr || self->rank == 0) return {};
  const int d = WrapDim(plan.args[IntIn{{rule.params[1]}}], self->rank);
  if (d < 0 || self->shape[static_cast<size_t>(d)] != 0) return {};
  return plan.Refuse("dim {} of {}, which has shape {}, is empty and nothing has no such element.", d,
                     plan.ParamName(At(rule, 0)), ShapeText(self->Shape()))
      .Remedy("Reduce a dimension that has elements.");
}

Status FloatTensors(const Planning& plan, const Rule& rule) {
  for (const uint8_t param : rule.params) {
    if (param == 0xff) break;
    const Tensor* t = plan.args.Maybe(TensorToken{{param}});
    if (t == nullptr || IsFloat(t->dtype)) continue;
    return plan.Refuse("{} is {}, but must be float32, float16, bfloat16 or float64.", plan.ParamName(Token{param}), Name(t->dtype))
        .Remedy("Cast {} first.", plan.ParamName(Token{param}));
  }
  return {};
}

Status NotEmpty(const Planning& plan, const Rule& rule) {
  const Tensor* self = plan.args.Maybe(At(rule, 0));
  if (self == nullptr || self->Numel() != 0) return {};
  return plan.Refuse("{} has shape {} and no elements.", plan.ParamName(At(rule, 0)), ShapeText(self->Shape()))
      .Remedy("Give it at least one element.");
}

}  // namespace rule::check
}  // namespace npu::ops
