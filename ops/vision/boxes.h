// Tokens of the choice among boxes, which torch_npu sends by type name. Limits arrive as tensors on the device or as
// numbers.
#pragma once

#include <string_view>

#include "ops/core/builder.h"

namespace npu::ops {

struct NonMaxSuppression {
  static constexpr std::string_view kName = "NonMaxSuppressionV4";
  static constexpr Param kParams[] = {
      {"boxes", Kind::tensor, Role::in, false},         {"scores", Kind::tensor, Role::in, false},
      {"maxOutputSize", Kind::tensor, Role::in, true},  {"iouThreshold", Kind::tensor, Role::in, true},
      {"scoreThreshold", Kind::tensor, Role::in, true}, {"maxOutputSizeNumber", Kind::real64, Role::in, false},
      {"iouNumber", Kind::real64, Role::in, false},     {"scoreNumber", Kind::real64, Role::in, false},
      {"selected", Kind::tensor, Role::out, false},     {"valid", Kind::tensor, Role::out, false}};
  static constexpr TensorIn boxes{0}, scores{1};
  static constexpr MaybeIn maxOutputSize{2}, iouThreshold{3}, scoreThreshold{4};
  static constexpr RealIn maxOutputSizeNumber{5}, iouNumber{6}, scoreNumber{7};
  static constexpr TensorOut selected{8}, valid{9};
};

extern const OpDef op_named_NonMaxSuppression;

}  // namespace npu::ops
