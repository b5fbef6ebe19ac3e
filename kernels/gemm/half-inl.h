// Loads of f32, f16 and bf16 as f32 vectors and rounding stores, for the Highway target being compiled.
// Half types travel as uint16_t wrapped in a tag type, so that one template serves all three.
#if defined(NPU_GEMM_HALF_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NPU_GEMM_HALF_INL_H_
#undef NPU_GEMM_HALF_INL_H_
#else
#define NPU_GEMM_HALF_INL_H_
#endif

#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "kernels/gemm/half.h"

HWY_BEFORE_NAMESPACE();
namespace npu::gemm::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;
inline constexpr int kLanes = HWY_LANES(float);

template <class DF>
HWY_INLINE hn::Vec<DF> LoadF32(DF d, const float* p) {
  return hn::LoadU(d, p);
}
template <class DF>
HWY_INLINE hn::Vec<DF> LoadF32(DF d, const Bf16* p) {
  const hn::Rebind<uint16_t, DF> du16;
  const hn::RebindToUnsigned<DF> du32;
  return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(du32, hn::LoadU(du16, reinterpret_cast<const uint16_t*>(p)))));
}
template <class DF>
HWY_INLINE hn::Vec<DF> LoadF32(DF d, const F16* p) {
  const hn::Rebind<uint16_t, DF> du16;
  const hn::Rebind<hwy::float16_t, DF> df16;
  return hn::PromoteTo(d, hn::BitCast(df16, hn::LoadU(du16, reinterpret_cast<const uint16_t*>(p))));
}

// The first n < lanes elements, zero in the others; reads nothing else.
template <class T>
HWY_INLINE V LoadF32N(D d, const T* p, int n) {
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
  if constexpr (sizeof(T) == 4) return hn::MaskedLoad(hn::FirstN(d, static_cast<size_t>(n)), d, p);
#endif
  HWY_ALIGN T staged[kLanes] = {};
  for (int i = 0; i < n; ++i) staged[i] = p[i];
  return LoadF32(d, staged);
}

HWY_INLINE void StoreRounded(V v, float* p) { hn::StoreU(v, D(), p); }
HWY_INLINE void StoreRounded(V v, Bf16* p) {
  const hn::RebindToUnsigned<D> du32;
  const hn::RebindToSigned<D> di32;
  const hn::Rebind<uint16_t, D> du16;
  const auto bits = hn::BitCast(du32, v);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(du32, 1u));
  const auto rounded = hn::ShiftRight<16>(hn::Add(bits, hn::Add(odd, hn::Set(du32, 0x7FFFu))));
  const auto quiet = hn::Or(hn::ShiftRight<16>(bits), hn::Set(du32, 0x40u));
  const auto nan = hn::RebindMask(du32, hn::IsNaN(v));
  const auto half = hn::IfThenElse(nan, quiet, rounded);
  hn::StoreU(hn::DemoteTo(du16, hn::BitCast(di32, half)), du16, reinterpret_cast<uint16_t*>(p));
}
HWY_INLINE void StoreRounded(V v, F16* p) {
#if HWY_TARGET == HWY_SSE4
  HWY_ALIGN float staged[kLanes];
  hn::Store(v, D(), staged);
  for (int i = 0; i < kLanes; ++i) p[i] = RoundTo<F16>(staged[i]);
#else
  const hn::Rebind<uint16_t, D> du16;
  const hn::Rebind<hwy::float16_t, D> df16;
  hn::StoreU(hn::BitCast(du16, hn::DemoteTo(df16, v)), du16, reinterpret_cast<uint16_t*>(p));
#endif
}

template <class T>
void LoadRow(const void* src, int64_t stride, int64_t n, float* dst) {
  const D d;
  const T* s = static_cast<const T*>(src);
  int64_t j = 0;
  if (stride == 1) {
    for (; j + kLanes <= n; j += kLanes) hn::StoreU(LoadF32(d, s + j), d, dst + j);
  }
  for (; j < n; ++j) dst[j] = ToF32(s[j * stride]);
}

template <class T>
void StoreRow(const float* src, int64_t n, void* dst, int64_t stride) {
  const D d;
  T* out = static_cast<T*>(dst);
  int64_t j = 0;
  if (stride == 1) {
    for (; j + kLanes <= n; j += kLanes) StoreRounded(hn::LoadU(d, src + j), out + j);
  }
  for (; j < n; ++j) out[j * stride] = RoundTo<T>(src[j]);
}

}  // namespace npu::gemm::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
