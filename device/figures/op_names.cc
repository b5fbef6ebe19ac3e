// What operators are, from the names of the functions that run them.
#include <algorithm>
#include <array>
#include <string_view>

#include "device/figures/meter.h"

namespace npu::device {
namespace {

// Parts of names whose work runs on the cube unit.
constexpr std::array<std::string_view, 20> kCube = {
    "Matmul", "MatMul",         "Addmm",          "Baddbmm",    "Bmm",  "Addbmm", "Addmv",
    "Conv",   "FlashAttention", "InferAttention", "FlashScore", "LSTM", "Lstm",   "GRU",
    "Gru",    "Gemm",           "Linalg",         "Mm",         "Mv",   "Einsum"};

// Beginnings of names that only the updates of optimisers have. Not ForeachZero and ForeachCopy, which come anywhere.
constexpr std::array<std::string_view, 7> kUpdates = {"ForeachAdd",  "ForeachSub", "ForeachMul", "ForeachDiv",
                                                      "ForeachLerp", "ApplyAdam",  "FusedAdam"};

std::string_view Bare(std::string_view function) {
  for (const std::string_view prefix : {"aclnn", "acl", "Inplace"}) {
    if (function.starts_with(prefix) && function.size() > prefix.size()) function.remove_prefix(prefix.size());
  }
  return function;
}

}  // namespace

Unit UnitOfFunction(std::string_view function) {
  const std::string_view name = Bare(function);
  const bool cube = std::any_of(kCube.begin(), kCube.end(), [&](std::string_view part) {
    const size_t at = name.find(part);
    if (at == std::string_view::npos) return false;
    // "Mm" and "Mv" only as a word of their own: not in "Comm", "Swimm".
    const size_t end = at + part.size();
    return part.size() > 2 || (at == 0 && (end == name.size() || name[end] < 'a' || name[end] > 'z'));
  });
  return cube ? Unit::kCube : Unit::kVector;
}

bool IsUpdate(std::string_view function) {
  const std::string_view name = Bare(function);
  return std::any_of(kUpdates.begin(), kUpdates.end(), [&](std::string_view start) { return name.starts_with(start); });
}

}  // namespace npu::device
