// The comparison pack: kEq, kLogicalAnd, … as in compare_ops.inc; results are bool.
#pragma once

#include "kernels/simd/pointwise.h"

namespace npu::simd {
#define NPU_COMPARE(name, types, expr) extern const PointwiseKernel k##name;
#include "kernels/simd/compare_ops.inc"
#undef NPU_COMPARE
}  // namespace npu::simd
