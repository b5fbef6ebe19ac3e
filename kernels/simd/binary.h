// The binary pack: kAdd, kMul, … as in binary_ops.inc.
#pragma once

#include "kernels/simd/pointwise.h"

namespace npu::simd {
#define NPU_BINARY(name, types, cost, tolerance, expr) extern const PointwiseKernel k##name;
#define NPU_BINARY_VEC(name, types, cost, tolerance, expr, vec) extern const PointwiseKernel k##name;
#include "kernels/simd/binary_ops.inc"
#undef NPU_BINARY
#undef NPU_BINARY_VEC
}  // namespace npu::simd
