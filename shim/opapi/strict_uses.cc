#include "shim/opapi/strict_uses.h"

#include <algorithm>
#include <string_view>

#include "ops/core/args.h"

namespace npu::opapi {
namespace {

using strict::Does;

// Operators that write all of what the table calls in-out without looking at it …
constexpr std::string_view kFillers[] = {
    "aclnnInplaceFill",   "aclnnInplaceZero",   "aclnnInplaceOne",       "aclnnInplaceNormal",      "aclnnInplaceUniform",
    "aclnnInplaceRandom", "aclnnInplaceBernoulli", "aclnnForeachZeroInplace", "aclnnSimThreadExponential", "aclnnStatelessExponential",
};
// … and those that write a part and leave the rest as it is, written or not.
constexpr std::string_view kPatchers[] = {
    "aclnnInplaceFillDiagonal", "aclnnIndexPutImpl",        "aclnnInplaceIndexCopy",     "aclnnIndexCopy",          "aclnnInplaceIndexFill",
    "aclnnInplaceMaskedFill",   "aclnnInplaceMaskedScatter", "aclnnInplacePut",          "aclnnInplaceScatter",     "aclnnInplaceQuantScatter",
    "aclnnScatterNdUpdate",     "aclnnScatterList",         "aclnnScatterPa",            "aclnnKvRmsNormRopeCache", "aclnnQkvRmsNormRopeCache",
    "aclnnEmbeddingRenorm",     "aclnnDequantRopeQuantKvcache",
};
// Copies: what the source does not have, the copy does not have either.
constexpr std::string_view kCopies[] = {"aclnnInplaceCopy", "aclnnCast", "aclnnContiguous", "ViewCopy", "Identity", "Cast"};
// Moves: an input that was not written in part may go to where nobody reads it.
constexpr std::string_view kMovers[] = {"aclnnCat", "aclnnStack", "aclnnConstantPadNd", "aclnnPermute", "aclnnSlice", "aclnnSplitTensor", "aclnnSplitWithSize",
                                        "aclnnForeachCopy"};

bool Begins(std::string_view name, std::span<const std::string_view> with) {
  return std::any_of(with.begin(), with.end(), [&](std::string_view w) { return name.starts_with(w); });
}
bool Is(std::string_view name, std::span<const std::string_view> of) { return std::find(of.begin(), of.end(), name) != of.end(); }

// The table's inputs that are written.
struct Written {
  std::string_view op, param;
};
constexpr Written kWritten[] = {{"aclnnRReluWithNoise", "noise"}, {"aclnnInplaceRReluWithNoise", "noise"}};

Does DoesOf(std::string_view op, std::string_view param, ops::Role role) {
  for (const Written& w : kWritten) {
    if (w.op == op && w.param == param) return Does::kWrites;
  }
  if (role == ops::Role::out) return Does::kWrites;
  if (role == ops::Role::in) return Begins(op, kMovers) ? Does::kMoves : Does::kReads;
  if (Begins(op, kPatchers)) return Does::kPatches;
  return Begins(op, kFillers) || Is(op, kCopies) ? Does::kWrites : Does::kUpdates;
}

}  // namespace

StrictUses::StrictUses(ops::Executor& executor, const std::byte* scratch) {
  const ops::OpDef& op = *executor.op;
  const ops::Args args(executor.arguments.data());
  for (size_t p = 0; p < op.params.size(); ++p) {
    const ops::Param& param = op.params[p];
    if (param.kind != ops::Kind::tensor && param.kind != ops::Kind::tensor_list) continue;
    for (const Tensor& tensor : args.Many<const Tensor>(ops::Token{static_cast<uint8_t>(p)})) {
      if (tensor.data == nullptr) continue;
      uses_.push_back({{tensor.data, static_cast<uint64_t>(ItemSize(tensor.dtype)), tensor.Shape(), tensor.Strides()},
                       DoesOf(op.name, param.name, param.role),
                       param.name});
    }
  }
  if (Is(op.name, kCopies) && uses_.size() == 2) {
    if (uses_[0].does != Does::kReads) std::swap(uses_[0], uses_[1]);
    copy_ = uses_[0].view.item == uses_[1].view.item ? strict::Step::Copy::kWhole : strict::Step::Copy::kLoose;
  }
  if (scratch != nullptr && executor.scratch_bytes != 0) {
    uses_.push_back({{scratch, executor.scratch_bytes, {}, {}}, Does::kWrites, "workspace"});
  }
}

}  // namespace npu::opapi
