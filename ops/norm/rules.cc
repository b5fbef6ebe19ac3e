#include "ops/norm/rules.h"

namespace npu::ops::rule::check {
namespace {

TensorToken At(const Rule& rule, size_t i) { return TensorToken{{rule.params[i]}}; }

int64_t Product(std::span<const int64_t> v) {
  int64_t n = 1;
  for (const int64_t e : v) n *= e;
  return n;
}

Status WantCount(const Planning& plan, TensorToken token, int64_t count, std::string_view why) {
  const Tensor* t = plan.args.Maybe(token);
  if (t == nullptr || t->Numel() == count) return {};
  return plan.Refuse("{} has shape {}, which is {} elements, but there must be {}: {}.", plan.ParamName(token),
                     ShapeText(t->Shape()), t->Numel(), count, why)
      .Remedy("Give {} {} elements.", plan.ParamName(token), count);
}

}  // namespace

Status Suffix(const Planning& plan, const Rule& rule) {
  const Tensor* input = plan.args.Maybe(At(rule, 0));
  const auto shape = plan.args[IntsToken{{rule.params[1]}}];
  if (input == nullptr) return {};
  const auto all = input->Shape();
  if (!shape.empty() && shape.size() <= all.size() && npu::SameShape(all.last(shape.size()), shape)) return {};
  return plan.Refuse("{} is {}, but the shape of {} is {}.", plan.ParamName(Token{rule.params[1]}), ShapeText(shape),
                     plan.ParamName(At(rule, 0)), ShapeText(all))
      .Remedy("It must be the last dimensions of {}.", plan.ParamName(At(rule, 0)));
}

Status AffineOf(const Planning& plan, const Rule& rule) {
  return WantCount(plan, At(rule, 0), Product(plan.args[IntsToken{{rule.params[1]}}]), "one for each normalised element");
}

Status RowStat(const Planning& plan, const Rule& rule) {
  const Tensor* input = plan.args.Maybe(At(rule, 0));
  const int64_t width = Product(plan.args[IntsToken{{rule.params[1]}}]);
  if (input == nullptr || width == 0) return {};
  return WantCount(plan, At(rule, 2), input->Numel() / width, "one for each normalised row");
}

Status SuffixOf(const Planning& plan, const Rule& rule) {
  const Tensor* t = plan.args.Maybe(At(rule, 0));
  const Tensor* input = plan.args.Maybe(At(rule, 1));
  if (t == nullptr || input == nullptr) return {};
  const auto all = input->Shape();
  const auto own = t->Shape();
  if (!own.empty() && own.size() <= all.size() && npu::SameShape(all.last(own.size()), own)) return {};
  return plan.Refuse("{} has shape {}, but {} has shape {}.", plan.ParamName(At(rule, 0)), ShapeText(own),
                     plan.ParamName(At(rule, 1)), ShapeText(all))
      .Remedy("It must be the last dimensions of {}.", plan.ParamName(At(rule, 1)));
}

Status PerChannel(const Planning& plan, const Rule& rule) {
  const Tensor* input = plan.args.Maybe(At(rule, 0));
  if (input == nullptr || input->rank < 2) return {};
  return WantCount(plan, At(rule, 1), input->shape[1], "one for each channel");
}

Status HasChannels(const Planning& plan, const Rule& rule) {
  const Tensor* input = plan.args.Maybe(At(rule, 0));
  if (input == nullptr || input->rank >= 2) return {};
  return plan.Refuse("{} has shape {}, but needs a batch and a channel dimension.", plan.ParamName(At(rule, 0)),
                     ShapeText(input->Shape()))
      .Remedy("Give it at least two dimensions.");
}

}  // namespace npu::ops::rule::check
