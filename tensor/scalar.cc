#include "tensor/scalar.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace npu {
namespace {
int64_t Saturate(double v) {
  if (std::isnan(v)) return 0;
  if (v >= 9223372036854775808.0) return std::numeric_limits<int64_t>::max();
  if (v <= -9223372036854775808.0) return std::numeric_limits<int64_t>::min();
  return static_cast<int64_t>(v);
}
template <class T>
T ReadAs(const void* p) {
  T v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
Scalar Float(double v, DType t) { return {t, v, 0, Saturate(v)}; }
Scalar Int(int64_t v, DType t) { return {t, static_cast<double>(v), 0, v}; }
}  // namespace

Scalar Scalar::Of(double v) { return Float(v, DType::f64); }
Scalar Scalar::Of(int64_t v) { return Int(v, DType::i64); }
Scalar Scalar::Of(bool v) { return Int(v ? 1 : 0, DType::b8); }

bool Scalar::Read(const void* p, DType t, Scalar* out) {
  switch (t) {
    case DType::f32: *out = Float(static_cast<double>(ReadAs<float>(p)), t); return true;
    case DType::f64: *out = Float(ReadAs<double>(p), t); return true;
    case DType::f16: *out = Float(static_cast<double>(HalfToFloat(ReadAs<uint16_t>(p))), t); return true;
    case DType::bf16: *out = Float(static_cast<double>(Bf16ToFloat(ReadAs<uint16_t>(p))), t); return true;
    case DType::i8: *out = Int(ReadAs<int8_t>(p), t); return true;
    case DType::u8: *out = Int(ReadAs<uint8_t>(p), t); return true;
    case DType::i16: *out = Int(ReadAs<int16_t>(p), t); return true;
    case DType::u16: *out = Int(ReadAs<uint16_t>(p), t); return true;
    case DType::i32: *out = Int(ReadAs<int32_t>(p), t); return true;
    case DType::u32: *out = Int(ReadAs<uint32_t>(p), t); return true;
    case DType::i64: *out = Int(ReadAs<int64_t>(p), t); return true;
    case DType::u64: *out = Int(static_cast<int64_t>(ReadAs<uint64_t>(p)), t); return true;
    case DType::b8: *out = Int(ReadAs<uint8_t>(p) != 0, t); return true;
    case DType::c64: {
      *out = Float(static_cast<double>(ReadAs<float>(p)), t);
      out->im = static_cast<double>(ReadAs<float>(static_cast<const char*>(p) + 4));
      return true;
    }
    case DType::c128: {
      *out = Float(ReadAs<double>(p), t);
      out->im = ReadAs<double>(static_cast<const char*>(p) + 8);
      return true;
    }
    case DType::c32:
    case DType::none: return false;
  }
  return false;
}

float HalfToFloat(uint16_t h) {
  const uint32_t sign = static_cast<uint32_t>(h & 0x8000u) << 16;
  const uint32_t rest = h & 0x7fffu;
  if (rest >= 0x7c00u) return std::bit_cast<float>(sign | 0x7f800000u | ((rest & 0x3ffu) << 13));
  // Scaling by 2^112 moves the exponent bias and normalises subnormals at once.
  const float magnitude = std::bit_cast<float>(rest << 13) * 0x1p112f;
  return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(magnitude));
}

uint16_t FloatToHalf(float v) {
  const uint32_t bits = std::bit_cast<uint32_t>(v);
  const auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000u);
  const uint32_t mag = bits & 0x7fffffffu;
  if (mag > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u);
  if (mag >= 0x47800000u) return static_cast<uint16_t>(sign | 0x7c00u);  // 65536 and up
  if (mag < 0x38800000u) {  // below 2^-14: adding 0.5 rounds at the bit of the smallest subnormal, 2^-24
    const float shifted = std::bit_cast<float>(mag) + 0.5f;
    return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) - std::bit_cast<uint32_t>(0.5f)));
  }
  const uint32_t rounded = mag + 0xfffu + ((mag >> 13) & 1u) - 0x38000000u;
  return static_cast<uint16_t>(sign | (rounded >> 13));
}

float Bf16ToFloat(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

uint16_t FloatToBf16(float v) {
  const uint32_t bits = std::bit_cast<uint32_t>(v);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((bits >> 16) | 0x40u);
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

}  // namespace npu
