// Scalar conversions between f32 and the half types. The wrappers keep f16 and bf16 apart in overloads; both are 16
// bits.
#pragma once

#include <bit>
#include <cstdint>

namespace npu::gemm {

struct F16 {
  uint16_t bits;
};
struct Bf16 {
  uint16_t bits;
};

inline float ToF32(float v) { return v; }
inline float ToF32(Bf16 v) { return std::bit_cast<float>(static_cast<uint32_t>(v.bits) << 16); }
inline float ToF32(F16 v) {
  const uint32_t sign = static_cast<uint32_t>(v.bits & 0x8000u) << 16;
  const uint32_t magnitude = v.bits & 0x7FFFu;
  if (magnitude >= 0x7C00u) return std::bit_cast<float>(sign | 0x7F800000u | ((magnitude & 0x3FFu) << 13));
  if (magnitude >= 0x400u) return std::bit_cast<float>(sign | ((magnitude << 13) + (112u << 23)));
  const float small = static_cast<float>(magnitude) * 0x1p-24f;  // zero or subnormal: exact
  return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(small));
}

// Round to nearest, ties to even; NaN stays NaN.
template <class T>
T RoundTo(float v);

template <>
inline float RoundTo<float>(float v) {
  return v;
}
template <>
inline Bf16 RoundTo<Bf16>(float v) {
  const uint32_t bits = std::bit_cast<uint32_t>(v);
  if (v != v) return {static_cast<uint16_t>((bits >> 16) | 0x40u)};
  return {static_cast<uint16_t>((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16)};
}
template <>
inline F16 RoundTo<F16>(float v) {
  const uint32_t bits = std::bit_cast<uint32_t>(v);
  const uint16_t sign = static_cast<uint16_t>((bits >> 16) & 0x8000u);
  const uint32_t magnitude = bits & 0x7FFFFFFFu;
  if (magnitude > 0x7F800000u) return {static_cast<uint16_t>(sign | 0x7E00u | ((magnitude >> 13) & 0x1FFu))};
  if (magnitude >= 0x477FF000u) return {static_cast<uint16_t>(sign | 0x7C00u)};  // rounds to 65520 or more
  if (magnitude < 0x38800000u) {
    // Below the smallest normal: adding 0.5 leaves the wanted bits at the bottom of the significand, rounded.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return {static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) - 0x3F000000u))};
  }
  const uint32_t rounded = magnitude + 0xFFFu + ((magnitude >> 13) & 1u);
  return {static_cast<uint16_t>(sign | ((rounded - (112u << 23)) >> 13))};
}

}  // namespace npu::gemm
