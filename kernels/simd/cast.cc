#include "kernels/simd/cast.h"

#include <cmath>
#include <complex>
#include <cstring>

#include "tensor/scalar.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/simd/cast.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace npu::simd::HWY_NAMESPACE {

struct Half { uint16_t bits; };
struct Bf16 { uint16_t bits; };
struct Bool { uint8_t v; };
using C64 = std::complex<float>;
using C128 = std::complex<double>;

// One element, as C++ converts; the vectoriser of the compiler makes the rest.
template <class To, class From>
struct Conv {
  static HWY_INLINE To Do(From v) { return static_cast<To>(v); }
};
// Out of range floats go through int64, so that negative values wrap in unsigned types on every machine.
template <class To>
HWY_INLINE To FloatToInt(double v) {
  if (!(v > -9223372036854775808.0 && v < 9223372036854775808.0)) return static_cast<To>(INT64_MIN);
  return static_cast<To>(static_cast<int64_t>(v));
}
template <class To>
HWY_INLINE To FloatToSmall(float v) {
  const bool fits = v > -2147483648.0f && v < 2147483648.0f;
  return static_cast<To>(static_cast<int32_t>(fits ? v : -2147483648.0f));
}
template <>
struct Conv<float, Bf16> {
  static HWY_INLINE float Do(Bf16 v) {
    const uint32_t bits = static_cast<uint32_t>(v.bits) << 16;
    float f;
    __builtin_memcpy(&f, &bits, 4);
    return f;
  }
};
template <>
struct Conv<Bf16, float> {
  static HWY_INLINE Bf16 Do(float v) {
    uint32_t bits;
    __builtin_memcpy(&bits, &v, 4);
    const uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    const uint32_t quiet = (bits >> 16) | 0x40u;
    return {static_cast<uint16_t>((bits & 0x7fffffffu) > 0x7f800000u ? quiet : rounded)};
  }
};

template <class To, class From>
void Loop(const void* from, void* to, int64_t n) {
  const From* HWY_RESTRICT s = static_cast<const From*>(from);
  To* HWY_RESTRICT d = static_cast<To*>(to);
  for (int64_t i = 0; i < n; ++i) d[i] = Conv<To, From>::Do(s[i]);
}

#if HWY_TARGET == HWY_SSE4
constexpr bool kHardwareHalf = false;
#else
constexpr bool kHardwareHalf = true;
#endif

void HalfToF32(const void* from, void* to, int64_t n) {
  namespace hn = hwy::HWY_NAMESPACE;
  const auto* s = static_cast<const uint16_t*>(from);
  auto* d = static_cast<float*>(to);
  int64_t i = 0;
  if constexpr (kHardwareHalf) {
    const hn::ScalableTag<float> df;
    const hn::Rebind<hwy::float16_t, decltype(df)> dh;
    const hn::Rebind<uint16_t, decltype(df)> du;
    const auto lanes = static_cast<int64_t>(hn::Lanes(df));
    for (; i + lanes <= n; i += lanes)
      hn::StoreU(hn::PromoteTo(df, hn::BitCast(dh, hn::LoadU(du, s + i))), df, d + i);
  }
  for (; i < n; ++i) d[i] = HalfToFloat(s[i]);
}

void F32ToHalf(const void* from, void* to, int64_t n) {
  namespace hn = hwy::HWY_NAMESPACE;
  const auto* s = static_cast<const float*>(from);
  auto* d = static_cast<uint16_t*>(to);
  int64_t i = 0;
  if constexpr (kHardwareHalf) {
    const hn::ScalableTag<float> df;
    const hn::Rebind<hwy::float16_t, decltype(df)> dh;
    const hn::Rebind<uint16_t, decltype(df)> du;
    const auto lanes = static_cast<int64_t>(hn::Lanes(df));
    for (; i + lanes <= n; i += lanes)
      hn::StoreU(hn::BitCast(du, hn::DemoteTo(dh, hn::LoadU(df, s + i))), du, d + i);
  }
  for (; i < n; ++i) d[i] = FloatToHalf(s[i]);
}

// Through float: as torch does for double and integers.
template <class From>
void ToHalf(const void* from, void* to, int64_t n) {
  const From* s = static_cast<const From*>(from);
  for (int64_t i = 0; i < n; ++i) static_cast<uint16_t*>(to)[i] = FloatToHalf(static_cast<float>(s[i]));
}
template <class From>
void ToBf16(const void* from, void* to, int64_t n) {
  const From* s = static_cast<const From*>(from);
  for (int64_t i = 0; i < n; ++i) static_cast<Bf16*>(to)[i] = Conv<Bf16, float>::Do(static_cast<float>(s[i]));
}
template <class To>
void HalfTo(const void* from, void* to, int64_t n) {
  const auto* s = static_cast<const uint16_t*>(from);
  for (int64_t i = 0; i < n; ++i) static_cast<To*>(to)[i] = static_cast<To>(HalfToFloat(s[i]));
}
template <class To>
void Bf16To(const void* from, void* to, int64_t n) {
  const auto* s = static_cast<const uint16_t*>(from);
  for (int64_t i = 0; i < n; ++i) static_cast<To*>(to)[i] = static_cast<To>(Bf16ToFloat(s[i]));
}
template <class From>
void ToBool(const void* from, void* to, int64_t n) {
  const From* HWY_RESTRICT s = static_cast<const From*>(from);
  uint8_t* HWY_RESTRICT d = static_cast<uint8_t*>(to);
  for (int64_t i = 0; i < n; ++i) d[i] = s[i] != From(0) ? 1 : 0;
}
template <class To, class From>
void FloatInt(const void* from, void* to, int64_t n) {
  const From* HWY_RESTRICT s = static_cast<const From*>(from);
  To* HWY_RESTRICT d = static_cast<To*>(to);
  if constexpr (sizeof(To) <= 4 && sizeof(From) == 4 && To(-1) < To(0)) {
    for (int64_t i = 0; i < n; ++i) d[i] = FloatToSmall<To>(s[i]);
  } else {
    for (int64_t i = 0; i < n; ++i) d[i] = FloatToInt<To>(static_cast<double>(s[i]));
  }
}
template <class To, class From>
void ComplexReal(const void* from, void* to, int64_t n) {
  const From* s = static_cast<const From*>(from);
  for (int64_t i = 0; i < n; ++i) static_cast<To*>(to)[i] = static_cast<To>(s[i].real());
}
void ComplexBool(const void* from, void* to, int64_t n) {
  const auto* s = static_cast<const C128*>(from);
  for (int64_t i = 0; i < n; ++i) static_cast<uint8_t*>(to)[i] = s[i] != C128(0) ? 1 : 0;
}
template <class From>
void RealComplex(const void* from, void* to, int64_t n) {
  const From* s = static_cast<const From*>(from);
  for (int64_t i = 0; i < n; ++i) static_cast<C128*>(to)[i] = C128(static_cast<double>(s[i]), 0);
}
void HalfComplexTo(const void* from, void* to, int64_t n) {
  const auto* s = static_cast<const uint16_t*>(from);
  for (int64_t i = 0; i < n; ++i)
    static_cast<C128*>(to)[i] = C128(static_cast<double>(HalfToFloat(s[2 * i])), static_cast<double>(HalfToFloat(s[2 * i + 1])));
}
void ToHalfComplex(const void* from, void* to, int64_t n) {
  const auto* s = static_cast<const C128*>(from);
  for (int64_t i = 0; i < n; ++i) {
    static_cast<uint16_t*>(to)[2 * i] = FloatToHalf(static_cast<float>(s[i].real()));
    static_cast<uint16_t*>(to)[2 * i + 1] = FloatToHalf(static_cast<float>(s[i].imag()));
  }
}

template <float (*kWiden)(uint16_t)>
void HalfRealComplex(const void* from, void* to, int64_t n) {
  const auto* s = static_cast<const uint16_t*>(from);
  for (int64_t i = 0; i < n; ++i) static_cast<C128*>(to)[i] = C128(static_cast<double>(kWiden(s[i])), 0);
}
template <class To, class From>
void ToComplex(const void* from, void* to, int64_t n) {
  const From* s = static_cast<const From*>(from);
  using Part = typename To::value_type;
  for (int64_t i = 0; i < n; ++i) static_cast<To*>(to)[i] = To(static_cast<Part>(s[i]), 0);
}

ConvertFn Load(DType from, Lane to) {
  switch (to) {
    case Lane::f32:
      switch (from) {
        case DType::f32: return Loop<float, float>;
        case DType::f16: return HalfToF32;
        case DType::bf16: return Loop<float, Bf16>;
        case DType::f64: return Loop<float, double>;
        case DType::i8: return Loop<float, int8_t>;
        case DType::u8:
        case DType::b8: return Loop<float, uint8_t>;
        case DType::i16: return Loop<float, int16_t>;
        case DType::u16: return Loop<float, uint16_t>;
        case DType::i32: return Loop<float, int32_t>;
        case DType::u32: return Loop<float, uint32_t>;
        case DType::i64: return Loop<float, int64_t>;
        case DType::u64: return Loop<float, uint64_t>;
        default: return nullptr;
      }
    case Lane::f64:
      switch (from) {
        case DType::f32: return Loop<double, float>;
        case DType::f64: return Loop<double, double>;
        case DType::f16: return HalfTo<double>;
        case DType::bf16: return Bf16To<double>;
        case DType::i8: return Loop<double, int8_t>;
        case DType::u8:
        case DType::b8: return Loop<double, uint8_t>;
        case DType::i16: return Loop<double, int16_t>;
        case DType::u16: return Loop<double, uint16_t>;
        case DType::i32: return Loop<double, int32_t>;
        case DType::u32: return Loop<double, uint32_t>;
        case DType::i64: return Loop<double, int64_t>;
        case DType::u64: return Loop<double, uint64_t>;
        default: return nullptr;
      }
    case Lane::i32:
      switch (from) {
        case DType::f32: return FloatInt<int32_t, float>;
        case DType::f64: return FloatInt<int32_t, double>;
        case DType::i8: return Loop<int32_t, int8_t>;
        case DType::u8:
        case DType::b8: return Loop<int32_t, uint8_t>;
        case DType::i16: return Loop<int32_t, int16_t>;
        case DType::u16: return Loop<int32_t, uint16_t>;
        case DType::i32: return Loop<int32_t, int32_t>;
        case DType::u32: return Loop<int32_t, uint32_t>;
        case DType::i64: return Loop<int32_t, int64_t>;
        case DType::u64: return Loop<int32_t, uint64_t>;
        default: return nullptr;
      }
    case Lane::i64:
      switch (from) {
        case DType::f32: return FloatInt<int64_t, float>;
        case DType::f64: return FloatInt<int64_t, double>;
        case DType::i8: return Loop<int64_t, int8_t>;
        case DType::u8:
        case DType::b8: return Loop<int64_t, uint8_t>;
        case DType::i16: return Loop<int64_t, int16_t>;
        case DType::u16: return Loop<int64_t, uint16_t>;
        case DType::i32: return Loop<int64_t, int32_t>;
        case DType::u32: return Loop<int64_t, uint32_t>;
        case DType::i64: return Loop<int64_t, int64_t>;
        case DType::u64: return Loop<int64_t, uint64_t>;
        default: return nullptr;
      }
    case Lane::c128:
      switch (from) {
        case DType::c128: return Loop<C128, C128>;
        case DType::c64: return Loop<C128, C64>;
        case DType::c32: return HalfComplexTo;
        case DType::f16: return HalfRealComplex<HalfToFloat>;
        case DType::bf16: return HalfRealComplex<Bf16ToFloat>;
        case DType::f32: return RealComplex<float>;
        case DType::f64: return RealComplex<double>;
        case DType::i8: return RealComplex<int8_t>;
        case DType::u8:
        case DType::b8: return RealComplex<uint8_t>;
        case DType::i16: return RealComplex<int16_t>;
        case DType::i32: return RealComplex<int32_t>;
        case DType::i64: return RealComplex<int64_t>;
        case DType::u16: return RealComplex<uint16_t>;
        case DType::u32: return RealComplex<uint32_t>;
        case DType::u64: return RealComplex<uint64_t>;
        default: return nullptr;
      }
    case Lane::b8:
      switch (from) {
        case DType::b8: return ToBool<uint8_t>;
        case DType::u8:
        case DType::i8: return ToBool<uint8_t>;
        case DType::i16:
        case DType::u16: return ToBool<uint16_t>;
        case DType::i32:
        case DType::u32: return ToBool<uint32_t>;
        case DType::i64:
        case DType::u64: return ToBool<uint64_t>;
        case DType::f32: return ToBool<float>;
        case DType::f64: return ToBool<double>;
        default: return nullptr;
      }
  }
  return nullptr;
}

template <class From>
ConvertFn StoreInt(DType to) {
  switch (to) {
    case DType::f32: return Loop<float, From>;
    case DType::f64: return Loop<double, From>;
    case DType::f16: return ToHalf<From>;
    case DType::bf16: return ToBf16<From>;
    case DType::i8: return Loop<int8_t, From>;
    case DType::u8: return Loop<uint8_t, From>;
    case DType::i16: return Loop<int16_t, From>;
    case DType::u16: return Loop<uint16_t, From>;
    case DType::i32: return Loop<int32_t, From>;
    case DType::u32: return Loop<uint32_t, From>;
    case DType::i64: return Loop<int64_t, From>;
    case DType::u64: return Loop<uint64_t, From>;
    case DType::b8: return ToBool<From>;
    case DType::c64: return ToComplex<C64, From>;
    case DType::c128: return ToComplex<C128, From>;
    default: return nullptr;
  }
}
template <class From>
ConvertFn StoreFloat(DType to) {
  switch (to) {
    case DType::f32: return Loop<float, From>;
    case DType::f64: return Loop<double, From>;
    case DType::f16: return ToHalf<From>;
    case DType::bf16: return ToBf16<From>;
    case DType::i8: return FloatInt<int8_t, From>;
    case DType::u8: return FloatInt<uint8_t, From>;
    case DType::i16: return FloatInt<int16_t, From>;
    case DType::u16: return FloatInt<uint16_t, From>;
    case DType::i32: return FloatInt<int32_t, From>;
    case DType::u32: return FloatInt<uint32_t, From>;
    case DType::i64: return FloatInt<int64_t, From>;
    case DType::u64: return FloatInt<uint64_t, From>;
    case DType::b8: return ToBool<From>;
    case DType::c64: return ToComplex<C64, From>;
    case DType::c128: return ToComplex<C128, From>;
    default: return nullptr;
  }
}

ConvertFn Store(Lane from, DType to) {
  switch (from) {
    case Lane::f32:
      if (to == DType::f16) return F32ToHalf;
      if (to == DType::bf16) return Loop<Bf16, float>;
      return StoreFloat<float>(to);
    case Lane::f64: return StoreFloat<double>(to);
    case Lane::i32: return StoreInt<int32_t>(to);
    case Lane::i64: return StoreInt<int64_t>(to);
    case Lane::b8: return StoreInt<uint8_t>(to);
    case Lane::c128:
      switch (to) {
        case DType::c128: return Loop<C128, C128>;
        case DType::c64: return Loop<C64, C128>;
        case DType::c32: return ToHalfComplex;
        case DType::f32: return ComplexReal<float, C128>;
        case DType::f64: return ComplexReal<double, C128>;
        case DType::i32: return ComplexReal<int32_t, C128>;
        case DType::i64: return ComplexReal<int64_t, C128>;
        case DType::b8: return ComplexBool;
        default: return nullptr;
      }
  }
  return nullptr;
}

}  // namespace npu::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace npu::simd {
HWY_EXPORT(Load);
HWY_EXPORT(Store);

// c32 and complex into halves take two steps in CopyTensor; here null means there is no single step.
ConvertFn LoadTo(DType from, Lane to) { return HWY_DYNAMIC_DISPATCH(Load)(from, to); }
ConvertFn StoreFrom(Lane from, DType to) { return HWY_DYNAMIC_DISPATCH(Store)(from, to); }

namespace {
struct Item16 { uint64_t a, b; };
template <class T>
void GatherAs(const char* from, int64_t stride, T* to, int64_t n) {
  if (stride == 0) {
    T v;
    std::memcpy(&v, from, sizeof v);
    for (int64_t i = 0; i < n; ++i) to[i] = v;
    return;
  }
  for (int64_t i = 0; i < n; ++i) std::memcpy(&to[i], from + i * stride, sizeof(T));
}
template <class T>
void ScatterAs(const T* from, char* to, int64_t stride, int64_t n) {
  for (int64_t i = 0; i < n; ++i) std::memcpy(to + i * stride, &from[i], sizeof(T));
}
}  // namespace

void Gather(int item_bytes, const void* from, int64_t stride, void* to, int64_t n) {
  const auto* s = static_cast<const char*>(from);
  if (stride == item_bytes) {
    std::memcpy(to, from, static_cast<size_t>(n * stride));
    return;
  }
  switch (item_bytes) {
    case 1: return GatherAs(s, stride, static_cast<uint8_t*>(to), n);
    case 2: return GatherAs(s, stride, static_cast<uint16_t*>(to), n);
    case 4: return GatherAs(s, stride, static_cast<uint32_t*>(to), n);
    case 8: return GatherAs(s, stride, static_cast<uint64_t*>(to), n);
    case 16: return GatherAs(s, stride, static_cast<Item16*>(to), n);
  }
}

void Scatter(int item_bytes, const void* from, void* to, int64_t stride, int64_t n) {
  auto* d = static_cast<char*>(to);
  if (stride == item_bytes) {
    std::memcpy(to, from, static_cast<size_t>(n * stride));
    return;
  }
  switch (item_bytes) {
    case 1: return ScatterAs(static_cast<const uint8_t*>(from), d, stride, n);
    case 2: return ScatterAs(static_cast<const uint16_t*>(from), d, stride, n);
    case 4: return ScatterAs(static_cast<const uint32_t*>(from), d, stride, n);
    case 8: return ScatterAs(static_cast<const uint64_t*>(from), d, stride, n);
    case 16: return ScatterAs(static_cast<const Item16*>(from), d, stride, n);
  }
}
}  // namespace npu::simd
#endif
