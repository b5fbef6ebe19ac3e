// One 16-bit float at a time, for strided tensors and tails. Narrowing rounds to nearest even; NaN stays NaN.
#pragma once

#include <bit>
#include <cstdint>

namespace npu::simd {

inline float F32FromBf16(uint16_t h) { return std::bit_cast<float>(static_cast<uint32_t>(h) << 16); }

inline uint16_t Bf16FromF32(float f) {
  const uint32_t u = std::bit_cast<uint32_t>(f);
  if ((u & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((u >> 16) | 0x40u);
  return static_cast<uint16_t>((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
}

inline float F32FromF16(uint16_t h) {
  const uint32_t sign = static_cast<uint32_t>(h & 0x8000u) << 16;
  const uint32_t em = static_cast<uint32_t>(h & 0x7fffu) << 13;
  if (em >= 0x0f800000u) return std::bit_cast<float>(sign | em | 0x7f800000u);  // infinity and NaN
  // The exponent bias differs by 112; a multiplication also makes subnormals right.
  return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(std::bit_cast<float>(em) * 0x1p112f));
}

inline uint16_t F16FromF32(float f) {
  const uint32_t u = std::bit_cast<uint32_t>(f);
  const uint32_t sign = (u >> 16) & 0x8000u;
  const uint32_t a = u & 0x7fffffffu;
  if (a > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u);
  if (a >= 0x47800000u) return static_cast<uint16_t>(sign | 0x7c00u);
  if (a < 0x38800000u) {  // subnormal result: adding 0.5 rounds to multiples of 2^-24 in hardware
    const float rounded = std::bit_cast<float>(a) + 0.5f;
    return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(rounded) - 0x3f000000u));
  }
  return static_cast<uint16_t>(sign | ((a + 0xfffu + ((a >> 13) & 1u) - (112u << 23)) >> 13));
}

}  // namespace npu::simd
