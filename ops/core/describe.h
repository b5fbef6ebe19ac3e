// Definitions as JSON: what the generated tests, the reference pages and the coverage read.
#pragma once

#include <string>

#include "ops/core/op_def.h"

namespace npu::ops {

std::string Describe(const OpDef& op);

}  // namespace npu::ops
