// Stable sort of positions by an integer key.
#pragma once

#include <cstdint>

namespace npu::simd {

// Rearranges order[0, n), which holds positions into key, so that key[order[i]] ascends; equal keys keep their order.
void RadixSortIndices(const int64_t* key, int64_t n, int64_t* order);

}  // namespace npu::simd
