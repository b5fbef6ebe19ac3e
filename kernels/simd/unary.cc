#include "kernels/simd/unary.h"

#include "kernels/simd/scalar_math.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/simd/unary.cc"
#include "hwy/foreach_target.h"
#include "kernels/simd/math-inl.h"
#include "kernels/simd/pointwise-inl.h"

HWY_BEFORE_NAMESPACE();
namespace npu::simd::HWY_NAMESPACE {

template <class T>
HWY_INLINE T AbsOf(T a) {
  if constexpr (!kIsInt<T>) return T(std::abs(a));
  else return a < 0 ? WrapSub(T(0), a) : a;
}
// The direction: for complex numbers on the unit circle.
template <class T>
HWY_INLINE T SignOf(T a) {
  if constexpr (kIsFloat<T> || kIsInt<T>) return T((T(0) < a) - (a < T(0)));
  else return a == T(0) ? T(0) : a / std::abs(a);
}
template <class T>
HWY_INLINE T Negate(T a) {
  if constexpr (kIsInt<T>) return WrapSub(T(0), a);
  else return -a;
}
template <class T>
HWY_INLINE T NotOf(T a) {
  if constexpr (kIsInt<T>) return ~a;
  else return a;
}
// Integers are whole already.
template <class T, class F>
HWY_INLINE T RoundWith(T a, F f) {
  if constexpr (kIsFloat<T>) return f(a);
  else return a;
}
template <class T>
HWY_INLINE T ClampOf(T a, T lo, T hi) {
  const T raised = (a < lo || IsNan(lo)) ? lo : a;
  return (raised > hi || IsNan(hi)) ? hi : raised;
}
template <class T>
HWY_INLINE T NanToNumOf(T a, const Numbers<T>& k) {
  if constexpr (kIsFloat<T>) {
    const T finite = a > std::numeric_limits<T>::max() ? k.k1 : a < std::numeric_limits<T>::lowest() ? k.k2 : a;
    return IsNan(a) ? k.k0 : finite;
  } else {
    return a;
  }
}
// k0 is eps; below 0 means the argument is not clamped.
template <class T>
HWY_INLINE T LogitOf(T a, const Numbers<T>& k) {
  const T x = k.k0 < T(0) ? a : ClampOf(a, k.k0, T(1) - k.k0);
  return std::log(x / (T(1) - x));
}
template <class T>
HWY_INLINE T Log2Of(T a) {
  if constexpr (kIsFloat<T>) return std::log2(a);
  else return std::log(a) / 0.693147180559945309417;
}
template <class T>
HWY_INLINE bool FiniteOf(T a) {
  if constexpr (kIsFloat<T>) return std::abs(a) <= std::numeric_limits<T>::max();
  else if constexpr (kIsInt<T>) return true;
  else return FiniteOf(a.real()) && FiniteOf(a.imag());
}
template <class T>
HWY_INLINE bool InfOf(T a) {
  if constexpr (kIsFloat<T>) return std::abs(a) > std::numeric_limits<T>::max();
  else return false;
}
template <class T>
HWY_INLINE bool SignbitOf(T a) {
  if constexpr (kIsFloat<T>) return std::signbit(a);
  else return a < 0;
}

#define NPU_UNARY(name, types, cost, tolerance, expr)                                                       \
  struct name##Op {                                                                                         \
    static constexpr bool kVector = false, kTest = false;                                                   \
    template <class T>                                                                                      \
    static HWY_INLINE T Do(T a, [[maybe_unused]] const Numbers<T>& k) { return static_cast<T>(expr); }      \
  };
#define NPU_UNARY_VEC(name, types, cost, tolerance, expr, vec)                                              \
  struct name##Op {                                                                                         \
    static constexpr bool kVector = true, kTest = false;                                                    \
    template <class T>                                                                                      \
    static HWY_INLINE T Do(T a, [[maybe_unused]] const Numbers<T>& k) { return static_cast<T>(expr); }      \
    template <class D, class V>                                                                             \
    static HWY_INLINE V Vec(D d, V v, [[maybe_unused]] const Numbers<float>& k) { return vec; }             \
  };
#define NPU_TEST(name, types, cost, expr)                                                                   \
  struct name##Op {                                                                                         \
    static constexpr bool kVector = false, kTest = true;                                                    \
    template <class T>                                                                                      \
    static HWY_INLINE bool Do(T a, const Numbers<T>&) { return expr; }                                      \
  };
#include "kernels/simd/unary_ops.inc"
#undef NPU_UNARY
#undef NPU_UNARY_VEC
#undef NPU_TEST

template <class Op, class T>
TileFn Scalar1() {
  if constexpr (Op::kTest) return Tile<Op, T, uint8_t, 1>;
  else return Tile<Op, T, T, 1>;
}

template <class Op, uint64_t kTypes>
TileFn Select(Lane lane) {
  constexpr auto has = [](DType t) { return (kTypes >> static_cast<unsigned>(t) & 1) != 0; };
  if (lane == Lane::f32) {
    if constexpr (Op::kVector) return VecTile<Op, 1>;
    else if constexpr (has(DType::f32)) return Scalar1<Op, float>();
  }
  if constexpr (has(DType::f64)) {
    if (lane == Lane::f64) return Scalar1<Op, double>();
  }
  if constexpr (has(DType::i32)) {
    if (lane == Lane::i32) return Scalar1<Op, int32_t>();
    if (lane == Lane::i64) return Scalar1<Op, int64_t>();
  }
  if constexpr (has(DType::c64)) {
    if (lane == Lane::c128) return Scalar1<Op, std::complex<double>>();
  }
  return nullptr;
}

TileFn FindUnary(int which, Lane lane) {
  using Fn = TileFn (*)(Lane);
  static constexpr Fn kTable[] = {
#define NPU_UNARY(name, types, cost, tolerance, expr) Select<name##Op, (types).bits>,
#define NPU_UNARY_VEC(name, types, cost, tolerance, expr, vec) Select<name##Op, (types).bits>,
#define NPU_TEST(name, types, cost, expr) Select<name##Op, (types).bits>,
#include "kernels/simd/unary_ops.inc"
#undef NPU_UNARY
#undef NPU_UNARY_VEC
#undef NPU_TEST
  };
  return kTable[which](lane);
}

}  // namespace npu::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace npu::simd {
HWY_EXPORT(FindUnary);

namespace {
enum Which : int {
#define NPU_UNARY(name, types, cost, tolerance, expr) i##name,
#define NPU_UNARY_VEC(name, types, cost, tolerance, expr, vec) i##name,
#define NPU_TEST(name, types, cost, expr) i##name,
#include "kernels/simd/unary_ops.inc"
#undef NPU_UNARY
#undef NPU_UNARY_VEC
#undef NPU_TEST
};
}  // namespace

#define NPU_UNARY(name, types, cost, tolerance, expr)                                      \
  constinit const PointwiseKernel k##name{#name, 1, types, false, 0xff, cost, tolerance,   \
                                          [](Lane lane) { return HWY_DYNAMIC_DISPATCH(FindUnary)(i##name, lane); }};
#define NPU_UNARY_VEC(name, types, cost, tolerance, expr, vec) NPU_UNARY(name, types, cost, tolerance, expr)
#define NPU_TEST(name, types, cost, expr)                                                  \
  constinit const PointwiseKernel k##name{#name, 1, types, true, 0xff, cost, "exact",      \
                                          [](Lane lane) { return HWY_DYNAMIC_DISPATCH(FindUnary)(i##name, lane); }};
#include "kernels/simd/unary_ops.inc"
#undef NPU_UNARY
#undef NPU_UNARY_VEC
#undef NPU_TEST
}  // namespace npu::simd
#endif
