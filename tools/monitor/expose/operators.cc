#include "tools/monitor/expose/operators.h"

#include <array>
#include <utility>

namespace npu::monitor {
namespace {

constexpr std::pair<std::string_view, std::string_view> kNames[] = {
    {"Mm", "MatMul"},
    {"Matmul", "MatMul"},
    {"Addmm", "MatMul"},
    {"Mv", "MatMul"},
    {"Addmv", "MatMul"},
    {"Dot", "MatMul"},
    {"Gemm", "MatMul"},
    {"MatmulWeightNz", "MatMul"},
    {"BatchMatMul", "BatchMatMul"},
    {"Bmm", "BatchMatMul"},
    {"Baddbmm", "BatchMatMul"},
    {"Addbmm", "BatchMatMul"},
    {"SoftmaxBackward", "SoftmaxGrad"},
    {"LayerNormBackward", "LayerNormGrad"},
    {"LayerNormWithImplMode", "LayerNorm"},
};

}  // namespace

std::string OperatorName(std::string_view call) {
  if (call.starts_with("aclnn")) call.remove_prefix(5);
  // The in-place form and the tensor or scalar forms are one operator.
  if (call.starts_with("Inplace") && call.size() > 7) call.remove_prefix(7);
  for (const auto& [from, to] : kNames) {
    if (call == from) return std::string(to);
  }
  return std::string(call);
}

}  // namespace npu::monitor
