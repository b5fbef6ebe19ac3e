// Runs of operators on streams in saturation mode (docs/decisions/saturation.md).
#pragma once

#include "ops/core/executor.h"

namespace npu::opapi {

// Brings all that a run has written into the range of its type. Whether that is an overflow: something was not finite, and
// the operator computes (copies, masks and fills only carry what they were given).
bool SaturateResults(ops::Executor& executor, Parallel& parallel);

}  // namespace npu::opapi
