// Definitions as JSON: what the generated tests, the reference pages and the coverage read.
#pragma once

#include <string>
#include <string_view>

#include "ops/core/op_def.h"

namespace npu::ops {

std::string Describe(const OpDef& op);
// The pieces that other lists of calls share: names of kinds and roles as in abi/aclnn.tsv, a text as a JSON string.
std::string_view KindName(Kind kind);
std::string_view RoleName(Role role);
std::string Quoted(std::string_view text);

}  // namespace npu::ops
