// Loops of the elementwise packs, compiled once for each instruction set. Include after hwy/highway.h.
//
// An operation is a struct with `template <class T> static T Do(T a, …)`; the compiler vectorises the loop for the target.
// What needs a vector math function has `V Vec(D d, V a, …)` for f32 as well, and Do only for the other lanes and the tail.
#if defined(NPU_POINTWISE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NPU_POINTWISE_INL_H_
#undef NPU_POINTWISE_INL_H_
#else
#define NPU_POINTWISE_INL_H_
#endif

#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "hwy/highway.h"
#include "kernels/simd/pointwise.h"

#if defined(__clang__)
#define NPU_VECTORIZE _Pragma("clang loop vectorize(assume_safety)")
#else
#define NPU_VECTORIZE _Pragma("GCC ivdep")
#endif

HWY_BEFORE_NAMESPACE();
namespace npu::simd::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The operation's numbers in the lane's type.
template <class T>
struct Numbers {
  T k0, k1, k2, k3;
  HWY_INLINE explicit Numbers(const Imm& m) : k0(Get(m, 0)), k1(Get(m, 1)), k2(Get(m, 2)), k3(Get(m, 3)) {}
  static HWY_INLINE T Get(const Imm& m, size_t k) {
    if constexpr (std::is_integral_v<T>) return static_cast<T>(m.i[k]);
    else if constexpr (std::is_floating_point_v<T>) return static_cast<T>(m.d[k]);
    else return T(m.d[k], m.im[k]);
  }
};

template <class T>
inline constexpr bool kIsFloat = std::is_floating_point_v<T>;
template <class T>
inline constexpr bool kIsInt = std::is_integral_v<T>;

// Signed overflow wraps, as torch's integers do.
template <class T>
HWY_INLINE T WrapAdd(T a, T b) {
  if constexpr (kIsInt<T>) return static_cast<T>(static_cast<std::make_unsigned_t<T>>(a) + static_cast<std::make_unsigned_t<T>>(b));
  else return a + b;
}
template <class T>
HWY_INLINE T WrapSub(T a, T b) {
  if constexpr (kIsInt<T>) return static_cast<T>(static_cast<std::make_unsigned_t<T>>(a) - static_cast<std::make_unsigned_t<T>>(b));
  else return a - b;
}
template <class T>
HWY_INLINE T WrapMul(T a, T b) {
  if constexpr (kIsInt<T>) return static_cast<T>(static_cast<std::make_unsigned_t<T>>(a) * static_cast<std::make_unsigned_t<T>>(b));
  else return a * b;
}
template <class T>
HWY_INLINE bool IsNan(T a) {
  if constexpr (kIsFloat<T>) return a != a;
  else return false;
}

// How many operands Do takes is the pack's business; K is the number of operands, R the result's lane.
template <class Op, class T, class R, int K>
void Tile(const void* const* in, void* out, int64_t n, const Imm& imm) {
  const Numbers<T> k(imm);
  R* d = static_cast<R*>(out);
  if constexpr (K == 1) {
    const T* a = static_cast<const T*>(in[0]);
    NPU_VECTORIZE
    for (int64_t i = 0; i < n; ++i) d[i] = static_cast<R>(Op::template Do<T>(a[i], k));
  } else if constexpr (K == 2) {
    const T* a = static_cast<const T*>(in[0]);
    const T* b = static_cast<const T*>(in[1]);
    NPU_VECTORIZE
    for (int64_t i = 0; i < n; ++i) d[i] = static_cast<R>(Op::template Do<T>(a[i], b[i], k));
  } else {
    const T* a = static_cast<const T*>(in[0]);
    const T* b = static_cast<const T*>(in[1]);
    const T* c = static_cast<const T*>(in[2]);
    NPU_VECTORIZE
    for (int64_t i = 0; i < n; ++i) d[i] = static_cast<R>(Op::template Do<T>(a[i], b[i], c[i], k));
  }
}

// f32 through vectors. The tail is computed on a padded copy, so every element takes the same path.
template <class Op, int K>
void VecTile(const void* const* in, void* out, int64_t n, const Imm& imm) {
  const hn::ScalableTag<float> d;
  const Numbers<float> k(imm);
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto run = [&](const float* a, const float* b, float* to) HWY_ATTR {
    if constexpr (K == 1) hn::StoreU(Op::Vec(d, hn::LoadU(d, a), k), d, to);
    else hn::StoreU(Op::Vec(d, hn::LoadU(d, a), hn::LoadU(d, b), k), d, to);
  };
  const float* a = static_cast<const float*>(in[0]);
  const float* b = K > 1 ? static_cast<const float*>(in[1]) : a;
  float* to = static_cast<float*>(out);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) run(a + i, b + i, to + i);
  if (i < n) {
    HWY_ALIGN float pa[HWY_MAX_BYTES / 4] = {}, pb[HWY_MAX_BYTES / 4] = {};
    const size_t rest = static_cast<size_t>(n - i) * sizeof(float);
    __builtin_memcpy(pa, a + i, rest);
    __builtin_memcpy(pb, b + i, rest);
    run(pa, pb, pa);
    __builtin_memcpy(to + i, pa, rest);
  }
}

}  // namespace npu::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
