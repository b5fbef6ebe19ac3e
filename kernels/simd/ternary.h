// The ternary pack: kAddcmul, … as in ternary_ops.inc, and kWhere, whose first operand is a bool mask.
#pragma once

#include "kernels/simd/pointwise.h"

namespace npu::simd {
#define NPU_TERNARY(name, types, cost, tolerance, expr) extern const PointwiseKernel k##name;
#include "kernels/simd/ternary_ops.inc"
#undef NPU_TERNARY
extern const PointwiseKernel kWhere;
}  // namespace npu::simd
