// The unary pack: kAbs, kExp, … as in unary_ops.inc.
#pragma once

#include "kernels/simd/pointwise.h"

namespace npu::simd {
#define NPU_UNARY(name, types, cost, tolerance, expr) extern const PointwiseKernel k##name;
#define NPU_UNARY_VEC(name, types, cost, tolerance, expr, vec) extern const PointwiseKernel k##name;
#define NPU_TEST(name, types, cost, expr) extern const PointwiseKernel k##name;
#include "kernels/simd/unary_ops.inc"
#undef NPU_UNARY
#undef NPU_UNARY_VEC
#undef NPU_TEST
}  // namespace npu::simd
