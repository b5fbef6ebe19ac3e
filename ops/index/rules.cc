#include "ops/index/rules.h"

#include <algorithm>
#include <array>

#include "kernels/simd/copy/copy.h"
#include "kernels/simd/index/index.h"

namespace npu::ops {

void StartFrom(const Call& c, const Tensor& self, const Tensor& out) {
  if (OverlapOf(self, out) != Overlap::kSame) simd::Copy(self, out, c.parallel);
}

namespace {

// Whether index `d` stands for a full slice: a tensor without elements does, unless every index is empty and of rank 1
// or more by broadcasting. `masked` has an entry for each index when masks were among them: what a mask selects is an
// index also when it is nothing.
bool IsSlice(std::span<const Tensor> list, const std::vector<bool>& masked, size_t d) {
  if (list[d].dtype == DType::none) return true;
  return list[d].Numel() == 0 && list[d].rank <= 1 && (masked.empty() || !masked[d]);
}

Status ReadIndices(std::string_view op, std::span<const Tensor> list, int self_rank, const std::vector<bool>& masked,
                   IndexList* out) {
  if (static_cast<int>(list.size()) > self_rank) {
    return Error(Code::kInvalidParam, "{}: indices has {} tensors, but self has {} dimensions.", op, list.size(), self_rank)
        .Remedy("Give one index for each leading dimension at most.");
  }
  for (size_t d = 0; d < list.size(); ++d) {
    const Tensor& t = list[d];
    if (IsSlice(list, masked, d)) continue;
    if (!IsInt(t.dtype)) {
      return Error(Code::kInvalidParam, "{}: indices[{}] is {}, but must be int32 or int64.", op, d, Name(t.dtype))
          .Remedy("Cast it.");
    }
    int bad = 0;
    const Dims before = out->shape;
    if (out->dims.empty()) {
      out->shape = DimsOf(t);
    } else if (!BroadcastInto(&out->shape, t.Shape(), &bad)) {
      return Error(Code::kInvalidParam, "{}: indices[{}] has shape {}, which does not broadcast with {}.", op, d,
                   ShapeText(t.Shape()), ShapeText(before.Span()))
          .Remedy("All indices must broadcast to one shape.");
    }
    out->dims.push_back(static_cast<int>(d));
  }
  out->tensors.assign(list.begin(), list.end());
  out->pointers.assign(list.size(), nullptr);
  for (const int d : out->dims) {
    const auto i = static_cast<size_t>(d);
    out->tensors[i] = Expanded(out->tensors[i], out->shape.Span());
    out->pointers[i] = &out->tensors[i];
  }
  return {};
}

}  // namespace

Status ReadIndexList(std::string_view op, std::span<const Tensor> list, int self_rank, IndexList* out) {
  return ReadIndices(op, list, self_rank, {}, out);
}

bool HasMask(std::span<const Tensor> list) {
  return std::any_of(list.begin(), list.end(), [](const Tensor& t) {
    return (t.dtype == DType::b8 || t.dtype == DType::u8) && !(t.Numel() == 0 && t.rank <= 1);
  });
}

Status ReadIndexList(const Call& c, std::span<const Tensor> list, const Tensor& self, IndexList* out) {
  if (!HasMask(list)) return ReadIndexList(c.op.name, list, self.rank, out);
  std::vector<Tensor> given;
  std::vector<bool> masked;
  for (size_t i = 0; i < list.size(); ++i) {
    if (!HasMask(list.subspan(i, 1))) {
      given.push_back(list[i]);
      masked.push_back(false);
      continue;
    }
    const Tensor& mask = list[i];
    if (mask.rank == 0) return NotYet(c.op.name, "a mask without dimensions among the indices is not expanded");
    const auto first = given.size();
    for (int d = 0; d < mask.rank; ++d) {
      const auto at = first + static_cast<size_t>(d);
      if (at < static_cast<size_t>(self.rank) && self.shape[at] == mask.shape[static_cast<size_t>(d)]) continue;
      return Error(Code::kTaskException, "{}: the mask indices[{}] has shape {}, which is not that of self {} from dim {} on.",
                   c.op.name, i, ShapeText(mask.Shape()), ShapeText(self.Shape()), first)
          .Remedy("A mask has the sizes of the dimensions that it covers.");
    }
    std::vector<int64_t> found(static_cast<size_t>(mask.Numel() * std::max<int>(1, mask.rank)));
    const int64_t count = simd::Nonzero(mask, found.data(), true, c.parallel);
    for (int d = 0; d < mask.rank; ++d) {
      given.push_back(MakeContiguous(found.data() + d * count, DType::i64, std::array<int64_t, 1>{count}));
      masked.push_back(true);
    }
    out->coordinates.push_back(std::move(found));
  }
  return ReadIndices(c.op.name, given, self.rank, masked, out);
}

Dims IndexedShape(const Tensor& self, const IndexList& list) {
  if (list.dims.empty()) return DimsOf(self);
  const bool neighbours = list.dims.back() - list.dims.front() + 1 == static_cast<int>(list.dims.size());
  Dims dims;
  const auto indices = [&] {
    for (const int64_t n : list.shape.Span()) dims.Push(n);
  };
  if (!neighbours) indices();
  for (int d = 0; d < self.rank; ++d) {
    const bool indexed = d < static_cast<int>(list.pointers.size()) && list.pointers[static_cast<size_t>(d)] != nullptr;
    if (neighbours && d == list.dims.front()) indices();
    if (!indexed) dims.Push(self.shape[static_cast<size_t>(d)]);
  }
  return dims;
}

namespace rule::check {
namespace {

TensorToken At(const Rule& rule, size_t i) { return TensorToken{{rule.params[i]}}; }

Status SameRank(const Planning& plan, TensorToken a, TensorToken b) {
  const Tensor *x = plan.args.Maybe(a), *y = plan.args.Maybe(b);
  if (std::max<int>(1, x->rank) == std::max<int>(1, y->rank)) return {};
  return plan.Refuse("{} has shape {}, but {} has shape {}.", plan.ParamName(b), ShapeText(y->Shape()), plan.ParamName(a),
                     ShapeText(x->Shape()))
      .Remedy("Both must have the same number of dimensions.");
}

// `small` fits into `large`, dimension `except` left out.
Status Fits(const Planning& plan, TensorToken small, TensorToken large, int except) {
  const Tensor *x = plan.args.Maybe(small), *y = plan.args.Maybe(large);
  for (int d = 0; d < std::min(x->rank, y->rank); ++d) {
    const auto i = static_cast<size_t>(d);
    if (d == except || x->shape[i] <= y->shape[i]) continue;
    return plan.Refuse("{} has shape {}, which is larger than {} {} in dim {}.", plan.ParamName(small), ShapeText(x->Shape()),
                       plan.ParamName(large), ShapeText(y->Shape()), d)
        .Remedy("Make {} no larger there.", plan.ParamName(small));
  }
  return {};
}

Status WantAxis(const Planning& plan, const Rule& rule) {
  Rule axis;
  axis.params[0] = rule.params[1];
  axis.params[1] = rule.params[0];
  return DimInRange(plan, axis);
}
int Axis(const Planning& plan, const Rule& rule) {
  return WrapDim(plan.args[IntIn{{rule.params[1]}}], plan.args.Maybe(At(rule, 0))->rank);
}

}  // namespace

Status GatherShape(const Planning& plan, const Rule& rule) {
  NPU_TRY(WantAxis(plan, rule));
  const Tensor* index = plan.args.Maybe(At(rule, 2));
  if (index->Numel() != 0) {
    NPU_TRY(SameRank(plan, At(rule, 0), At(rule, 2)));
    NPU_TRY(Fits(plan, At(rule, 2), At(rule, 0), Axis(plan, rule)));
  }
  return WantShape(plan, At(rule, 3), DimsOf(*index), fmt::format("index has shape {}", ShapeText(index->Shape())));
}

Status ScatterShape(const Planning& plan, const Rule& rule) {
  NPU_TRY(WantAxis(plan, rule));
  if (plan.args.Maybe(At(rule, 2))->Numel() == 0) return {};
  NPU_TRY(SameRank(plan, At(rule, 0), At(rule, 2)));
  NPU_TRY(Fits(plan, At(rule, 2), At(rule, 0), Axis(plan, rule)));
  if (rule.params[3] == 0xff) return {};
  NPU_TRY(SameRank(plan, At(rule, 0), At(rule, 3)));
  return Fits(plan, At(rule, 2), At(rule, 3), -1);
}

Status SelectShape(const Planning& plan, const Rule& rule) {
  NPU_TRY(WantAxis(plan, rule));
  const Tensor *self = plan.args.Maybe(At(rule, 0)), *index = plan.args.Maybe(At(rule, 2));
  if (index->rank > 1) {
    return plan.Refuse("{} has shape {}, but must be a vector.", plan.ParamName(At(rule, 2)), ShapeText(index->Shape()))
        .Remedy("Flatten it.");
  }
  Dims wanted = DimsOf(*self);
  if (self->rank > 0) wanted.size[static_cast<size_t>(Axis(plan, rule))] = index->Numel();
  return WantShape(plan, At(rule, 3), wanted, fmt::format("{} elements are selected", index->Numel()));
}

Status IndexVector(const Planning& plan, const Rule& rule) {
  NPU_TRY(WantAxis(plan, rule));
  const Tensor *self = plan.args.Maybe(At(rule, 0)), *index = plan.args.Maybe(At(rule, 2));
  if (index->rank > 1) {
    return plan.Refuse("{} has shape {}, but must be a vector.", plan.ParamName(At(rule, 2)), ShapeText(index->Shape()))
        .Remedy("Flatten it.");
  }
  if (rule.params[3] == 0xff) return {};
  Dims wanted = DimsOf(*self);
  if (self->rank > 0) wanted.size[static_cast<size_t>(Axis(plan, rule))] = index->Numel();
  const Tensor* source = plan.args.Maybe(At(rule, 3));
  if (source->Numel() == wanted.Numel() && source->Numel() == 1) return {};
  return WantShape(plan, At(rule, 3), wanted, fmt::format("index has {} elements", index->Numel()));
}

}  // namespace rule::check
}  // namespace npu::ops
