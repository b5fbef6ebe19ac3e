#pragma once

#include <cstdint>

namespace npu::simd {

struct PhiloxTable {
  void (*words)(uint64_t seed, uint64_t offset, uint64_t first_block, int64_t blocks, uint32_t* out);
  void (*uniform)(const uint32_t* words, float scale, float shift, float* out, int64_t n);  // u·scale + shift, u in [0, 1)
  void (*normal)(const uint32_t* words, float* out, int64_t n);                             // n even
};
const PhiloxTable& PhiloxRows();

}  // namespace npu::simd
