// All operators of this build, as generated from the NPU_OP( lines.
#pragma once

#include <cstddef>

#include "ops/core/op_def.h"

namespace npu::ops {

extern const OpDef* const kOperators[];
extern const size_t kOperatorCount;

}  // namespace npu::ops
