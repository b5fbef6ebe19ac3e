#include "ops/core/rule.h"

#include "tensor/shape.h"

namespace npu::ops::rule::check {
namespace {

TensorToken At(const Rule& rule, size_t i) { return TensorToken{{rule.params[i]}}; }

// Null for absent tensors, and for operands that are numbers.
const Tensor* TensorAt(const Planning& plan, const Rule& rule, size_t i) {
  return plan.op.params[rule.params[i]].kind == Kind::tensor ? plan.args.Maybe(At(rule, i)) : nullptr;
}

std::string Types(TypeSet set) {
  std::string text;
  for (int t = 0; t < 64; ++t) {
    if (!set.Has(static_cast<DType>(t))) continue;
    if (!text.empty()) text += ", ";
    text += Name(static_cast<DType>(t));
  }
  return text;
}

Status Invalid(const Planning& plan, std::string text) {
  return Status(Code::kInvalidParam, fmt::format("{}: {}", plan.op.name, text));
}

}  // namespace

// params: operands…, out. The same parameter may be operand and out.
Status Broadcast(const Planning& plan, const Rule& rule) {
  size_t n = 0;
  while (n < rule.params.size() && rule.params[n] != 0xff) ++n;
  const size_t out_at = n - 1;
  Dims dims;
  int first = -1;
  for (size_t i = 0; i < out_at; ++i) {
    const Tensor* t = TensorAt(plan, rule, i);
    if (t == nullptr) continue;
    if (first < 0) {
      dims = DimsOf(*t);
      first = static_cast<int>(i);
      continue;
    }
    int bad = 0;
    const Dims before = dims;
    if (!BroadcastInto(&dims, t->Shape(), &bad)) {
      return Invalid(plan, fmt::format("{} has shape {}, which does not broadcast with {} {} (they disagree in dim {}).",
                                       plan.ParamName(At(rule, i)), ShapeText(t->Shape()),
                                       plan.ParamName(At(rule, static_cast<size_t>(first))), ShapeText(before.Span()), bad))
          .Remedy("Sizes must be equal or 1, counted from the last dimension: expand or transpose one of them.");
    }
  }
  const Tensor* out = plan.args.Maybe(At(rule, out_at));
  if (out != nullptr && !npu::SameShape(out->Shape(), dims.Span())) {
    return Invalid(plan, fmt::format("{} has shape {}, but the operands broadcast to {}.", plan.ParamName(At(rule, out_at)),
                                     ShapeText(out->Shape()), ShapeText(dims.Span())))
        .Remedy("Give {} the shape {}.", plan.ParamName(At(rule, out_at)), ShapeText(dims.Span()));
  }
  return {};
}

Status ExpandsTo(const Planning& plan, const Rule& rule) {
  const Tensor* from = plan.args.Maybe(At(rule, 0));
  const Tensor* to = plan.args.Maybe(At(rule, 1));
  if (from == nullptr || to == nullptr || npu::ExpandsTo(from->Shape(), to->Shape())) return {};
  return Invalid(plan, fmt::format("{} has shape {}, which cannot be expanded to that of {}, {}.", plan.ParamName(At(rule, 0)),
                                   ShapeText(from->Shape()), plan.ParamName(At(rule, 1)), ShapeText(to->Shape())))
      .Remedy("Sizes must be equal or 1, counted from the last dimension.");
}

Status SameShape(const Planning& plan, const Rule& rule) {
  const Tensor* a = plan.args.Maybe(At(rule, 0));
  const Tensor* b = plan.args.Maybe(At(rule, 1));
  if (a == nullptr || b == nullptr || npu::SameShape(a->Shape(), b->Shape())) return {};
  return Invalid(plan, fmt::format("{} has shape {}, but {} has shape {}.", plan.ParamName(At(rule, 1)),
                                   ShapeText(b->Shape()), plan.ParamName(At(rule, 0)), ShapeText(a->Shape())))
      .Remedy("Both must have the same shape.");
}

Status SameDtype(const Planning& plan, const Rule& rule) {
  const Tensor* a = plan.args.Maybe(At(rule, 0));
  const Tensor* b = plan.args.Maybe(At(rule, 1));
  if (a == nullptr || b == nullptr || a->dtype == b->dtype) return {};
  return Invalid(plan, fmt::format("{} is {}, but {} is {}.", plan.ParamName(At(rule, 1)), Name(b->dtype),
                                   plan.ParamName(At(rule, 0)), Name(a->dtype)))
      .Remedy("Both must have the same type: cast one of them.");
}

Status DtypeIn(const Planning& plan, const Rule& rule) {
  TypeSet set;
  set.bits = static_cast<uint64_t>(rule.imm);
  for (const Tensor& t : plan.args.Many<Tensor>(At(rule, 0))) {
    if (t.dtype == DType::none || set.Has(t.dtype)) continue;
    return Invalid(plan, fmt::format("{} is {}, which is not supported here (supported: {}).", plan.ParamName(At(rule, 0)),
                                     Name(t.dtype), Types(set)))
        .Remedy("Cast {} first.", plan.ParamName(At(rule, 0)));
  }
  return {};
}

Status Castable(const Planning& plan, const Rule& rule) {
  const Tensor* from = plan.args.Maybe(At(rule, 0));
  const Tensor* to = plan.args.Maybe(At(rule, 1));
  if (from == nullptr || to == nullptr || CanCast(from->dtype, to->dtype)) return {};
  return Invalid(plan, fmt::format("{} is {}, which cannot hold the result type {} (that of {}).", plan.ParamName(At(rule, 1)),
                                   Name(to->dtype), Name(from->dtype), plan.ParamName(At(rule, 0))))
      .Remedy("Give {} a type of the same or a higher kind.", plan.ParamName(At(rule, 1)));
}

Status DtypeIs(const Planning& plan, const Rule& rule) {
  const Tensor* t = plan.args.Maybe(At(rule, 0));
  const auto wanted = plan.args[DTypeIn{{rule.params[1]}}];
  if (t == nullptr || t->dtype == wanted) return {};
  return Invalid(plan, fmt::format("{} is {}, but {} asks for {}.", plan.ParamName(At(rule, 0)), Name(t->dtype),
                                   plan.op.params[rule.params[1]].name, Name(wanted)))
      .Remedy("Both must name the same type.");
}

Status RankIs(const Planning& plan, const Rule& rule) {
  const Tensor* t = plan.args.Maybe(At(rule, 0));
  if (t == nullptr || t->rank == rule.imm) return {};
  return Invalid(plan, fmt::format("{} has shape {}, but must have {} dimensions.", plan.ParamName(At(rule, 0)),
                                   ShapeText(t->Shape()), rule.imm))
      .Remedy("Reshape {}.", plan.ParamName(At(rule, 0)));
}

Status SameLists(const Planning& plan, const Rule& rule) {
  const auto a = plan.args[ListToken{{rule.params[0]}}];
  const auto b = plan.args[ListToken{{rule.params[1]}}];
  if (a.size() != b.size()) {
    return Invalid(plan, fmt::format("{} has {} tensors, but {} has {}.", plan.ParamName(At(rule, 1)), b.size(),
                                     plan.ParamName(At(rule, 0)), a.size()))
        .Remedy("Both lists must have the same length.");
  }
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i].dtype == DType::none || b[i].dtype == DType::none) {
      return Invalid(plan, fmt::format("{}[{}] is null.", plan.ParamName(At(rule, a[i].dtype == DType::none ? 0 : 1)), i))
          .Remedy("Every tensor of the list must exist.");
    }
    if (npu::SameShape(a[i].Shape(), b[i].Shape())) continue;
    return Invalid(plan, fmt::format("{}[{}] has shape {}, but {}[{}] has shape {}.", plan.ParamName(At(rule, 1)), i,
                                     ShapeText(b[i].Shape()), plan.ParamName(At(rule, 0)), i, ShapeText(a[i].Shape())))
        .Remedy("The lists must agree in shape, tensor by tensor.");
  }
  return {};
}

Status DimInRange(const Planning& plan, const Rule& rule) {
  const int64_t dim = plan.args[IntIn{{rule.params[0]}}];
  const Tensor* t = plan.args.Maybe(At(rule, 1));
  if (t == nullptr || WrapDim(dim, t->rank) >= 0) return {};
  const int n = t->rank == 0 ? 1 : t->rank;
  return Invalid(plan, fmt::format("{} is {}, but {} has shape {}.", plan.op.params[rule.params[0]].name, dim,
                                   plan.ParamName(At(rule, 1)), ShapeText(t->Shape())))
      .Remedy("It must be between {} and {}.", -n, n - 1);
}

Status Free(const Planning&, const Rule&) { return {}; }

}  // namespace npu::ops::rule::check
