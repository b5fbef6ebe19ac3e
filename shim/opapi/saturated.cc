#include "shim/opapi/saturated.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "ops/common/saturate.h"
#include "ops/core/args.h"

namespace npu::opapi {
namespace {

// Operators that place values and compute none, without "aclnn" and "Inplace"; all whose names begin so …
constexpr std::string_view kCarriers[] = {
    "Amax", "Amin", "Aminmax", "Bernoulli", "Cat", "Clamp", "ConstantPad", "Contiguous", "Embedding", "Eye", "Fill", "Flip",
    "ForeachCopy", "Gather", "Index", "Kthvalue", "Masked", "Max", "Median", "Min", "NanMedian", "Permute", "Put", "ReflectionPad",
    "Relu", "Repeat", "ReplicationPad", "Roll", "SWhere", "Scatter", "Slice", "Sort", "Split", "Stack", "Take", "Topk",
    "Tril", "Triu", "Unique",
};
// … but for these, for gradients, and where a parameter asks for sums.
constexpr std::string_view kComputers[] = {"EmbeddingBag", "EmbeddingRenorm", "IndexAdd", "MaskedScale", "ScatterAdd", "ScatterReduce"};
constexpr std::string_view kAsksForSums[] = {"accumulate", "reduce"};

template <class T>
std::span<T> Of(const ops::Args& args, size_t param) {
  return args.Many<T>(ops::Token{static_cast<uint8_t>(param)});
}

bool Begins(std::string_view name, std::span<const std::string_view> with) {
  return std::any_of(with.begin(), with.end(), [&](std::string_view w) { return name.starts_with(w); });
}

bool Carries(const ops::OpDef& op, const ops::Args& args) {
  std::string_view name = op.name;
  for (const std::string_view prefix : {"aclnn", "Inplace"}) {
    if (name.starts_with(prefix)) name.remove_prefix(prefix.size());
  }
  if (!Begins(name, kCarriers) || Begins(name, kComputers)) return false;
  if (name.find("Backward") != name.npos || name.find("Grad") != name.npos) return false;
  for (size_t p = 0; p < op.params.size(); ++p) {
    const ops::Param& param = op.params[p];
    const bool number = param.kind == ops::Kind::boolean || param.kind == ops::Kind::int64;
    if (number && Begins(param.name, kAsksForSums) && args.slot(ops::Token{static_cast<uint8_t>(p)}).i != 0) return false;
  }
  return true;
}

// A copy of one type moves bytes, which need not even be numbers.
bool MovesBytes(const ops::OpDef& op, const ops::Args& args) {
  if (op.name != "aclnnInplaceCopy") return false;
  return Of<const Tensor>(args, 0)[0].dtype == Of<const Tensor>(args, 1)[0].dtype;
}

bool GivenInfinity(const ops::OpDef& op, const ops::Args& args) {
  for (size_t p = 0; p < op.params.size(); ++p) {
    if (op.params[p].kind != ops::Kind::scalar) continue;
    for (const Scalar& s : Of<const Scalar>(args, p)) {
      if (!std::isfinite(s.re) || !std::isfinite(s.im)) return true;
    }
  }
  return false;
}

}  // namespace

bool SaturateResults(ops::Executor& executor, Parallel& parallel) {
  const ops::OpDef& op = *executor.op;
  const ops::Args args(executor.arguments.data());
  if (MovesBytes(op, args)) return false;
  bool any = false;
  for (size_t p = 0; p < op.params.size(); ++p) {
    const ops::Param& param = op.params[p];
    if (param.role == ops::Role::in || (param.kind != ops::Kind::tensor && param.kind != ops::Kind::tensor_list)) continue;
    for (const Tensor& tensor : Of<const Tensor>(args, p)) any |= ops::Saturate(tensor, parallel);
  }
  return any && !Carries(op, args) && !GivenInfinity(op, args);
}

}  // namespace npu::opapi
