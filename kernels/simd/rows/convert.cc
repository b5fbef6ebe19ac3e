#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/simd/rows/convert.cc"
#include <hwy/foreach_target.h>  // NOLINT: must come first
#include <hwy/highway.h>

#include "kernels/simd/rows/convert.h"
#include "kernels/simd/rows/half.h"

HWY_BEFORE_NAMESPACE();
namespace npu::simd::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Targets with a correctly rounding conversion instruction; the others use integer arithmetic.
#undef NPU_HAVE_F16_CONVERSION
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL || HWY_TARGET == HWY_NEON
#define NPU_HAVE_F16_CONVERSION 1
#else
#define NPU_HAVE_F16_CONVERSION 0
#endif

void LoadBf16(const uint16_t* src, int64_t n, float* dst) {
  const hn::ScalableTag<float> df;
  const hn::Rebind<uint32_t, decltype(df)> du;
  const hn::Rebind<uint16_t, decltype(df)> dh;
  const auto lanes = static_cast<int64_t>(hn::Lanes(df));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    hn::StoreU(hn::BitCast(df, hn::ShiftLeft<16>(hn::PromoteTo(du, hn::LoadU(dh, src + i)))), df, dst + i);
  }
  for (; i < n; ++i) dst[i] = F32FromBf16(src[i]);
}

void StoreBf16(const float* src, int64_t n, uint16_t* dst) {
  const hn::ScalableTag<float> df;
  const hn::Rebind<uint32_t, decltype(df)> du;
  const hn::Rebind<int32_t, decltype(df)> di;
  const hn::Rebind<uint16_t, decltype(df)> dh;
  const auto lanes = static_cast<int64_t>(hn::Lanes(df));
  const auto half = hn::Set(du, 0x7fffu);
  const auto one = hn::Set(du, 1u);
  const auto quiet = hn::Set(du, 0x400000u);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto f = hn::LoadU(df, src + i);
    const auto u = hn::BitCast(du, f);
    const auto rounded = hn::Add(u, hn::Add(half, hn::And(hn::ShiftRight<16>(u), one)));
    const auto bits = hn::IfThenElse(hn::RebindMask(du, hn::IsNaN(f)), hn::Or(u, quiet), rounded);
    hn::StoreU(hn::DemoteTo(dh, hn::BitCast(di, hn::ShiftRight<16>(bits))), dh, dst + i);
  }
  for (; i < n; ++i) dst[i] = Bf16FromF32(src[i]);
}

void LoadF16(const uint16_t* src, int64_t n, float* dst) {
  const hn::ScalableTag<float> df;
  const auto lanes = static_cast<int64_t>(hn::Lanes(df));
  int64_t i = 0;
#if NPU_HAVE_F16_CONVERSION
  const hn::Rebind<hwy::float16_t, decltype(df)> dh;
  for (; i + lanes <= n; i += lanes) {
    hn::StoreU(hn::PromoteTo(df, hn::LoadU(dh, reinterpret_cast<const hwy::float16_t*>(src) + i)), df, dst + i);
  }
#else
  const hn::Rebind<uint32_t, decltype(df)> du;
  const hn::Rebind<uint16_t, decltype(df)> dh;
  for (; i + lanes <= n; i += lanes) {
    const auto h = hn::PromoteTo(du, hn::LoadU(dh, src + i));
    const auto sign = hn::ShiftLeft<16>(hn::And(h, hn::Set(du, 0x8000u)));
    const auto em = hn::ShiftLeft<13>(hn::And(h, hn::Set(du, 0x7fffu)));
    const auto finite = hn::BitCast(du, hn::Mul(hn::BitCast(df, em), hn::Set(df, 0x1p112f)));
    const auto special = hn::Or(em, hn::Set(du, 0x7f800000u));
    const auto value = hn::IfThenElse(hn::Gt(em, hn::Set(du, 0x0f7fffffu)), special, finite);
    hn::StoreU(hn::BitCast(df, hn::Or(sign, value)), df, dst + i);
  }
#endif
  for (; i < n; ++i) dst[i] = F32FromF16(src[i]);
}

void StoreF16(const float* src, int64_t n, uint16_t* dst) {
  const hn::ScalableTag<float> df;
  const auto lanes = static_cast<int64_t>(hn::Lanes(df));
  int64_t i = 0;
#if NPU_HAVE_F16_CONVERSION
  const hn::Rebind<hwy::float16_t, decltype(df)> dh;
  for (; i + lanes <= n; i += lanes) {
    hn::StoreU(hn::DemoteTo(dh, hn::LoadU(df, src + i)), dh, reinterpret_cast<hwy::float16_t*>(dst) + i);
  }
#else
  const hn::Rebind<uint32_t, decltype(df)> du;
  const hn::Rebind<int32_t, decltype(df)> di;
  const hn::Rebind<uint16_t, decltype(df)> dh;
  for (; i + lanes <= n; i += lanes) {
    const auto u = hn::BitCast(du, hn::LoadU(df, src + i));
    const auto sign = hn::And(hn::ShiftRight<16>(u), hn::Set(du, 0x8000u));
    const auto a = hn::And(u, hn::Set(du, 0x7fffffffu));
    const auto small = hn::Sub(hn::BitCast(du, hn::Add(hn::BitCast(df, a), hn::Set(df, 0.5f))), hn::Set(du, 0x3f000000u));
    const auto odd = hn::And(hn::ShiftRight<13>(a), hn::Set(du, 1u));
    const auto normal = hn::ShiftRight<13>(hn::Add(a, hn::Add(odd, hn::Set(du, 0xfffu - (112u << 23)))));
    const auto nan = hn::Gt(a, hn::Set(du, 0x7f800000u));
    const auto big = hn::IfThenElse(nan, hn::Set(du, 0x7e00u), hn::Set(du, 0x7c00u));
    auto r = hn::IfThenElse(hn::Lt(a, hn::Set(du, 0x38800000u)), small, normal);
    r = hn::IfThenElse(hn::Gt(a, hn::Set(du, 0x477fffffu)), big, r);
    hn::StoreU(hn::DemoteTo(dh, hn::BitCast(di, hn::Or(sign, r))), dh, dst + i);
  }
#endif
  for (; i < n; ++i) dst[i] = F16FromF32(src[i]);
}

}  // namespace npu::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <cmath>
#include <limits>

namespace npu::simd {
namespace {

HWY_EXPORT(LoadBf16);
HWY_EXPORT(StoreBf16);
HWY_EXPORT(LoadF16);
HWY_EXPORT(StoreF16);

template <class To, class From>
To Cast(From v) {
  if constexpr (std::is_same_v<To, bool>) {
    return v != 0;
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    // Truncates; what does not fit saturates (C++ leaves it undefined), NaN is zero.
    constexpr auto low = static_cast<From>(std::numeric_limits<To>::lowest());
    constexpr auto high = static_cast<From>(std::numeric_limits<To>::max());
    if (std::isnan(v)) return 0;
    if (v <= low) return std::numeric_limits<To>::lowest();
    if (v >= high) return std::numeric_limits<To>::max();
    return static_cast<To>(v);
  } else {
    return static_cast<To>(v);
  }
}

template <class C, class T>
void LoadAs(const void* src, int64_t stride, int64_t n, C* dst) {
  const T* p = static_cast<const T*>(src);
  if (stride == 1) {
    for (int64_t i = 0; i < n; ++i) dst[i] = Cast<C>(p[i]);
  } else {
    for (int64_t i = 0; i < n; ++i) dst[i] = Cast<C>(p[i * stride]);
  }
}

template <class C, float (*kWiden)(uint16_t)>
void LoadHalf(const void* src, int64_t stride, int64_t n, C* dst) {
  const uint16_t* p = static_cast<const uint16_t*>(src);
  for (int64_t i = 0; i < n; ++i) dst[i] = Cast<C>(kWiden(p[i * stride]));
}

template <class C>
void LoadAny(const void* src, DType type, int64_t stride, int64_t n, C* dst) {
  switch (type) {
    case DType::f32: return LoadAs<C, float>(src, stride, n, dst);
    case DType::f64: return LoadAs<C, double>(src, stride, n, dst);
    case DType::i8: return LoadAs<C, int8_t>(src, stride, n, dst);
    case DType::i16: return LoadAs<C, int16_t>(src, stride, n, dst);
    case DType::i32: return LoadAs<C, int32_t>(src, stride, n, dst);
    case DType::i64: return LoadAs<C, int64_t>(src, stride, n, dst);
    case DType::u8: return LoadAs<C, uint8_t>(src, stride, n, dst);
    case DType::u16: return LoadAs<C, uint16_t>(src, stride, n, dst);
    case DType::u32: return LoadAs<C, uint32_t>(src, stride, n, dst);
    case DType::u64: return LoadAs<C, uint64_t>(src, stride, n, dst);
    case DType::b8: return LoadAs<C, uint8_t>(src, stride, n, dst);
    case DType::f16: return LoadHalf<C, F32FromF16>(src, stride, n, dst);
    case DType::bf16: return LoadHalf<C, F32FromBf16>(src, stride, n, dst);
    default: return;
  }
}

template <class C, class T>
void WriteAs(const C* src, int64_t n, void* dst, int64_t stride) {
  T* p = static_cast<T*>(dst);
  if (stride == 1) {
    for (int64_t i = 0; i < n; ++i) p[i] = Cast<T>(src[i]);
  } else {
    for (int64_t i = 0; i < n; ++i) p[i * stride] = Cast<T>(src[i]);
  }
}

template <class C, uint16_t (*kNarrow)(float)>
void WriteHalf(const C* src, int64_t n, void* dst, int64_t stride) {
  uint16_t* p = static_cast<uint16_t*>(dst);
  for (int64_t i = 0; i < n; ++i) p[i * stride] = kNarrow(static_cast<float>(src[i]));
}

template <class C>
void WriteAny(const C* src, int64_t n, void* dst, DType type, int64_t stride) {
  switch (type) {
    case DType::f32: return WriteAs<C, float>(src, n, dst, stride);
    case DType::f64: return WriteAs<C, double>(src, n, dst, stride);
    case DType::i8: return WriteAs<C, int8_t>(src, n, dst, stride);
    case DType::i16: return WriteAs<C, int16_t>(src, n, dst, stride);
    case DType::i32: return WriteAs<C, int32_t>(src, n, dst, stride);
    case DType::i64: return WriteAs<C, int64_t>(src, n, dst, stride);
    case DType::u8: return WriteAs<C, uint8_t>(src, n, dst, stride);
    case DType::u16: return WriteAs<C, uint16_t>(src, n, dst, stride);
    case DType::u32: return WriteAs<C, uint32_t>(src, n, dst, stride);
    case DType::u64: return WriteAs<C, uint64_t>(src, n, dst, stride);
    case DType::b8: return WriteAs<C, bool>(src, n, dst, stride);
    case DType::f16: return WriteHalf<C, F16FromF32>(src, n, dst, stride);
    case DType::bf16: return WriteHalf<C, Bf16FromF32>(src, n, dst, stride);
    default: return;
  }
}

}  // namespace

void Load(const void* src, DType type, int64_t stride, int64_t n, float* dst) {
  if (stride == 1 && type == DType::bf16) return HWY_DYNAMIC_DISPATCH(LoadBf16)(static_cast<const uint16_t*>(src), n, dst);
  if (stride == 1 && type == DType::f16) return HWY_DYNAMIC_DISPATCH(LoadF16)(static_cast<const uint16_t*>(src), n, dst);
  LoadAny(src, type, stride, n, dst);
}
void Load(const void* src, DType type, int64_t stride, int64_t n, double* dst) { LoadAny(src, type, stride, n, dst); }
void Load(const void* src, DType type, int64_t stride, int64_t n, int64_t* dst) { LoadAny(src, type, stride, n, dst); }

void Write(const float* src, int64_t n, void* dst, DType type, int64_t stride) {
  if (stride == 1 && type == DType::bf16) return HWY_DYNAMIC_DISPATCH(StoreBf16)(src, n, static_cast<uint16_t*>(dst));
  if (stride == 1 && type == DType::f16) return HWY_DYNAMIC_DISPATCH(StoreF16)(src, n, static_cast<uint16_t*>(dst));
  WriteAny(src, n, dst, type, stride);
}
void Write(const double* src, int64_t n, void* dst, DType type, int64_t stride) { WriteAny(src, n, dst, type, stride); }
void Write(const int64_t* src, int64_t n, void* dst, DType type, int64_t stride) { WriteAny(src, n, dst, type, stride); }

double LoadDouble(const void* src, DType type) {
  double v = 0;
  Load(src, type, 1, 1, &v);
  return v;
}
int64_t LoadInt(const void* src, DType type) {
  int64_t v = 0;
  Load(src, type, 1, 1, &v);
  return v;
}

}  // namespace npu::simd
#endif  // HWY_ONCE
