// Between stored element types and the lanes that kernels compute in. All pointers without gaps.
#pragma once

#include <cstdint>

#include "kernels/simd/pointwise.h"

namespace npu::simd {

using ConvertFn = void (*)(const void* from, void* to, int64_t n);

// Exact: every stored type fits its lane; also converts to a wider one (int32 into f32 rounds).
ConvertFn LoadTo(DType from, Lane to);
// As C++ converts, with halves rounded to nearest even once and small integers wrapped.
ConvertFn StoreFrom(Lane from, DType to);

// n elements of 1, 2, 4, 8 or 16 bytes, `stride` bytes apart (0: one element repeated).
void Gather(int item_bytes, const void* from, int64_t stride, void* to, int64_t n);
void Scatter(int item_bytes, const void* from, void* to, int64_t stride, int64_t n);

}  // namespace npu::simd
