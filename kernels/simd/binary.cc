#include "kernels/simd/binary.h"

#include "kernels/simd/scalar_math.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/simd/binary.cc"
#include "hwy/foreach_target.h"
#include "kernels/simd/math-inl.h"
#include "kernels/simd/pointwise-inl.h"

HWY_BEFORE_NAMESPACE();
namespace npu::simd::HWY_NAMESPACE {

template <class T>
HWY_INLINE auto BitsOf(T v) {
  return v;
}
template <class T>
HWY_INLINE T ConjOf(T v) {
  if constexpr (kIsFloat<T>) return v;
  else return std::conj(v);
}
template <class T>
HWY_INLINE T ReluOf(T v) {
  return v < T(0) ? T(0) : v;
}
// k0 is the width of the compute type in bits: shifts by it or more, or by less than 0, leave no bit of the value.
template <class T>
HWY_INLINE T ShiftLeftOf(T a, T b, const Numbers<T>& k) {
  const bool out = b < 0 || b >= k.k0;
  return out ? T(0) : static_cast<T>(static_cast<std::make_unsigned_t<T>>(a) << (out ? 0 : b));
}
template <class T>
HWY_INLINE T ShiftRightOf(T a, T b, const Numbers<T>& k) {
  const bool out = b < 0 || b >= k.k0;
  return a >> (out ? static_cast<T>(sizeof(T) * 8 - 1) : b);
}
// The clamp of the forward has no slope outside [eps, 1 - eps]; k0 < 0 means no clamp.
template <class T>
HWY_INLINE T LogitGradOf(T grad, T x, const Numbers<T>& k) {
  const bool clamp = k.k0 >= T(0);
  const T lo = clamp ? k.k0 : T(0), hi = T(1) - lo;
  if (x < lo || x > hi) return clamp ? T(0) : std::numeric_limits<T>::quiet_NaN();
  return grad / (x * (T(1) - x));
}

// One struct for each line; the lanes of its compute types become rows of the table.
#define NPU_BINARY(name, types, cost, tolerance, expr)                  \
  struct name##Op {                                                     \
    static constexpr bool kVector = false;                              \
    template <class T>                                                  \
    static HWY_INLINE T Do(T a, T b, [[maybe_unused]] const Numbers<T>& k) { return static_cast<T>(expr); } \
  };
#define NPU_BINARY_VEC(name, types, cost, tolerance, expr, vec)         \
  struct name##Op {                                                     \
    static constexpr bool kVector = true;                               \
    template <class T>                                                  \
    static HWY_INLINE T Do(T a, T b, [[maybe_unused]] const Numbers<T>& k) { return static_cast<T>(expr); } \
    template <class D, class V>                                         \
    static HWY_INLINE V Vec(D d, V u, V v, const Numbers<float>&) { return vec; } \
  };
#include "kernels/simd/binary_ops.inc"
#undef NPU_BINARY
#undef NPU_BINARY_VEC

template <class Op, uint64_t kTypes>
TileFn Select(Lane lane) {
  constexpr TypeSet kSmall = {DType::i8, DType::i16, DType::i32, DType::u8, DType::u16, DType::b8};
  constexpr auto has = [](TypeSet s) { return (s.bits & kTypes) != 0; };
  if constexpr (has({DType::f32})) {
    if constexpr (Op::kVector) {
      if (lane == Lane::f32) return VecTile<Op, 2>;
    } else {
      if (lane == Lane::f32) return Tile<Op, float, float, 2>;
    }
    if (lane == Lane::f64) return Tile<Op, double, double, 2>;
  }
  if constexpr (has(kSmall)) {
    if (lane == Lane::i32) return Tile<Op, int32_t, int32_t, 2>;
    if (lane == Lane::i64) return Tile<Op, int64_t, int64_t, 2>;
  }
  if constexpr (has({DType::c64})) {
    if (lane == Lane::c128) return Tile<Op, std::complex<double>, std::complex<double>, 2>;
  }
  return nullptr;
}

TileFn FindBinary(int which, Lane lane) {
  using Fn = TileFn (*)(Lane);
  static constexpr Fn kTable[] = {
#define NPU_BINARY(name, types, cost, tolerance, expr) Select<name##Op, (types).bits>,
#define NPU_BINARY_VEC(name, types, cost, tolerance, expr, vec) Select<name##Op, (types).bits>,
#include "kernels/simd/binary_ops.inc"
#undef NPU_BINARY
#undef NPU_BINARY_VEC
  };
  return kTable[which](lane);
}

}  // namespace npu::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace npu::simd {
HWY_EXPORT(FindBinary);

namespace {
enum Which : int {
#define NPU_BINARY(name, types, cost, tolerance, expr) i##name,
#define NPU_BINARY_VEC(name, types, cost, tolerance, expr, vec) i##name,
#include "kernels/simd/binary_ops.inc"
#undef NPU_BINARY
#undef NPU_BINARY_VEC
};
}  // namespace

#define NPU_BINARY(name, types, cost, tolerance, expr)                                           \
  constinit const PointwiseKernel k##name{#name, 2, types, false, 0xff, cost, tolerance,         \
                                          [](Lane lane) { return HWY_DYNAMIC_DISPATCH(FindBinary)(i##name, lane); }};
#define NPU_BINARY_VEC(name, types, cost, tolerance, expr, vec) NPU_BINARY(name, types, cost, tolerance, expr)
#include "kernels/simd/binary_ops.inc"
#undef NPU_BINARY
#undef NPU_BINARY_VEC
}  // namespace npu::simd
#endif
