// Vector math for f32: good to a few units in the last place over the whole range, special values as the C library has them.
//
// The functions of Highway's contrib hold on a part of the range; lanes outside it are computed one by one.
#if defined(NPU_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NPU_MATH_INL_H_
#undef NPU_MATH_INL_H_
#else
#define NPU_MATH_INL_H_
#endif

#include <cmath>

#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace npu::simd::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Replaces the lanes of `fast` that are not `good` by f(v).
template <class D, class V, class M>
HWY_NOINLINE V Patch(D d, V v, V fast, M good, float (*f)(float)) {
  HWY_ALIGN float x[HWY_MAX_BYTES / 4], y[HWY_MAX_BYTES / 4], ok[HWY_MAX_BYTES / 4];
  hn::Store(v, d, x);
  hn::Store(fast, d, y);
  hn::Store(hn::IfThenElseZero(good, hn::Set(d, 1.0f)), d, ok);
  for (size_t i = 0; i < hn::Lanes(d); ++i)
    if (ok[i] == 0.0f) y[i] = f(x[i]);
  return hn::Load(d, y);
}

// name, scalar function, lanes for which Highway's function holds
#define NPU_VECTOR_MATH(Name, scalar, good_lanes)                                      \
  template <class D, class V>                                                          \
  HWY_INLINE V V##Name(D d, V v) {                                                     \
    const auto good = good_lanes;                                                      \
    const V safe = hn::IfThenElse(good, v, hn::Set(d, kSafe##Name));                   \
    const V fast = hn::Name(d, safe);                                                  \
    if (HWY_LIKELY(hn::AllTrue(d, good))) return fast;                                 \
    return Patch(d, v, fast, good, [](float x) -> float { return scalar(x); });        \
  }
inline constexpr float kSafeLog = 1, kSafeLog2 = 1, kSafeLog10 = 1, kSafeLog1p = 0.5f, kSafeExpm1 = 0, kSafeSin = 0, kSafeCos = 0,
                       kSafeAsin = 0, kSafeAcos = 0, kSafeAtan = 0, kSafeSinh = 0, kSafeAsinh = 0, kSafeAcosh = 2,
                       kSafeAtanh = 0;
#define NPU_BETWEEN(lo, hi) hn::And(hn::Gt(v, hn::Set(d, lo)), hn::Lt(v, hn::Set(d, hi)))
NPU_VECTOR_MATH(Log, std::log, NPU_BETWEEN(1.2e-38f, 3.4e38f))
NPU_VECTOR_MATH(Log2, std::log2, NPU_BETWEEN(1.2e-38f, 3.4e38f))
NPU_VECTOR_MATH(Log10, std::log10, NPU_BETWEEN(1.2e-38f, 3.4e38f))
NPU_VECTOR_MATH(Log1p, std::log1p, hn::Or(NPU_BETWEEN(1e-5f, 3.0e38f), NPU_BETWEEN(-0.9f, -1e-5f)))
NPU_VECTOR_MATH(Expm1, std::expm1, NPU_BETWEEN(-80.0f, 88.0f))
NPU_VECTOR_MATH(Sin, std::sin, NPU_BETWEEN(-1000.0f, 1000.0f))
NPU_VECTOR_MATH(Cos, std::cos, NPU_BETWEEN(-1000.0f, 1000.0f))
NPU_VECTOR_MATH(Asin, std::asin, NPU_BETWEEN(-1.0f, 1.0f))
NPU_VECTOR_MATH(Acos, std::acos, NPU_BETWEEN(-1.0f, 1.0f))
NPU_VECTOR_MATH(Atan, std::atan, NPU_BETWEEN(-1e30f, 1e30f))
NPU_VECTOR_MATH(Sinh, std::sinh, NPU_BETWEEN(-80.0f, 80.0f))
NPU_VECTOR_MATH(Asinh, std::asinh, hn::Or(NPU_BETWEEN(0.01f, 1e10f), NPU_BETWEEN(-1e10f, -0.01f)))
NPU_VECTOR_MATH(Acosh, std::acosh, NPU_BETWEEN(1.01f, 1e10f))
NPU_VECTOR_MATH(Atanh, std::atanh, hn::Or(NPU_BETWEEN(0.01f, 0.99f), NPU_BETWEEN(-0.99f, -0.01f)))
#undef NPU_VECTOR_MATH

// Infinity above 88.72, 0 below -104, NaN passes.
template <class D, class V>
HWY_INLINE V VExp(D d, V v) {
  const V high = hn::Set(d, 88.72283f), low = hn::Set(d, -104.0f);
  const V clamped = hn::Max(hn::Min(v, high), low);
  V r = hn::Exp(d, clamped);
  r = hn::IfThenElse(hn::Gt(v, high), hn::Inf(d), r);
  r = hn::IfThenZeroElse(hn::Lt(v, low), r);
  return hn::IfThenElse(hn::IsNaN(v), v, r);
}

template <class D, class V>
HWY_INLINE V VExp2(D d, V v) {
  // 2^v = 2^n · e^(f ln 2) with v = n + f; n is moved into the exponent in two steps so that subnormals come out right.
  const V clamped = hn::Max(hn::Min(v, hn::Set(d, 129.0f)), hn::Set(d, -151.0f));
  const V n = hn::Round(clamped);
  const V e = hn::Exp(d, hn::Mul(hn::Sub(clamped, n), hn::Set(d, 0.693147180559945f)));
  const hn::RebindToSigned<D> di;
  const auto whole = hn::ConvertTo(di, n);
  const auto half = hn::ShiftRight<1>(whole);
  const auto power = [&](auto p) HWY_ATTR {
    return hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(p, hn::Set(di, 127))));
  };
  const V r = hn::Mul(hn::Mul(e, power(half)), power(hn::Sub(whole, half)));
  return hn::IfThenElse(hn::IsNaN(v), v, r);
}

// (1 - e^-2|x|) / (1 + e^-2|x|), and a polynomial near zero where the difference cancels.
template <class D, class V>
HWY_INLINE V VTanh(D d, V v) {
  const V a = hn::Abs(v), one = hn::Set(d, 1.0f);
  const V e = VExp(d, hn::Mul(a, hn::Set(d, -2.0f)));
  const V far = hn::Div(hn::Sub(one, e), hn::Add(one, e));
  const V s = hn::Mul(a, a);
  V p = hn::Set(d, -5.70498872745e-3f);
  p = hn::MulAdd(p, s, hn::Set(d, 2.06390887954e-2f));
  p = hn::MulAdd(p, s, hn::Set(d, -5.37397155531e-2f));
  p = hn::MulAdd(p, s, hn::Set(d, 1.33314422036e-1f));
  p = hn::MulAdd(p, s, hn::Set(d, -3.33332819422e-1f));
  const V near = hn::MulAdd(hn::Mul(p, s), a, a);
  return hn::CopySign(hn::IfThenElse(hn::Lt(a, hn::Set(d, 0.625f)), near, far), v);
}

// Odd polynomial up to 1, then 1 - e^(-x²) times a polynomial for e^(x²) erfc(x); Chebyshev fits in double.
// `e` gives e^(-x²) for x up to 4; beyond, anything that is not larger.
template <class D, class V, class E>
HWY_INLINE V VErf(D d, V v, E e) {
  const V a = hn::Abs(v), one = hn::Set(d, 1.0f);
  const V s = hn::Mul(a, a);
  V p = hn::Set(d, -9.673590170065557e-06f);
  p = hn::MulAdd(p, s, hn::Set(d, 0.00011268253668881237f));
  p = hn::MulAdd(p, s, hn::Set(d, -0.0008484396519194107f));
  p = hn::MulAdd(p, s, hn::Set(d, 0.005221053410333502f));
  p = hn::MulAdd(p, s, hn::Set(d, -0.026865438309701183f));
  p = hn::MulAdd(p, s, hn::Set(d, 0.11283782622047146f));
  p = hn::MulAdd(p, s, hn::Set(d, -0.3761263847599014f));
  p = hn::MulAdd(p, s, hn::Set(d, 1.128379167062361f));
  const V near = hn::Mul(a, p);
  const V c = hn::Min(a, hn::Set(d, 4.0f));
  const V u = hn::MulSub(c, hn::Set(d, 1.0f / 1.5f), hn::Set(d, 2.5f / 1.5f));
  V q = hn::Set(d, 9.640451524354728e-05f);
  q = hn::MulAdd(q, u, hn::Set(d, -0.0002455025877174446f));
  q = hn::MulAdd(q, u, hn::Set(d, 0.0003678686724082665f));
  q = hn::MulAdd(q, u, hn::Set(d, -0.0009155637844762929f));
  q = hn::MulAdd(q, u, hn::Set(d, 0.002425885101269358f));
  q = hn::MulAdd(q, u, hn::Set(d, -0.005611762780082693f));
  q = hn::MulAdd(q, u, hn::Set(d, 0.012484035685725065f));
  q = hn::MulAdd(q, u, hn::Set(d, -0.02699779138428234f));
  q = hn::MulAdd(q, u, hn::Set(d, 0.05611095841163691f));
  q = hn::MulAdd(q, u, hn::Set(d, -0.11152140139065492f));
  q = hn::MulAdd(q, u, hn::Set(d, 0.21080635752833904f));
  const V far = hn::Sub(one, hn::Mul(q, e(c)));
  const V r = hn::IfThenElse(hn::Lt(a, one), near, far);
  return hn::IfThenElse(hn::IsNaN(v), v, hn::CopySign(r, v));
}

template <class D, class V>
HWY_INLINE V VErf(D d, V v) {
  return VErf(d, v, [d](V x) HWY_ATTR { return hn::Exp(d, hn::Neg(hn::Mul(x, x))); });
}

template <class D, class V>
HWY_INLINE V VSigmoid(D d, V v) {
  const V one = hn::Set(d, 1.0f);
  return hn::Div(one, hn::Add(one, VExp(d, hn::Neg(v))));
}

template <class D, class V>
HWY_INLINE V VGelu(D d, V v) {
  const V half = hn::Mul(v, hn::Set(d, 0.5f));
  return hn::MulAdd(half, VErf(d, hn::Mul(v, hn::Set(d, 0.70710678118654752440f))), half);
}

template <class D, class V>
HWY_INLINE V VGeluTanh(D d, V v) {
  const V cube = hn::Mul(hn::Mul(v, v), v);
  const V inner = hn::Mul(hn::Set(d, 0.79788456080286535588f), hn::MulAdd(hn::Set(d, 0.044715f), cube, v));
  const V half = hn::Mul(v, hn::Set(d, 0.5f));
  return hn::MulAdd(half, VTanh(d, inner), half);
}

// Derivatives.
template <class D, class V>
HWY_INLINE V VSiluSlope(D d, V v) {
  const V s = VSigmoid(d, v), one = hn::Set(d, 1.0f);
  return hn::Mul(s, hn::MulAdd(v, hn::Sub(one, s), one));
}

template <class D, class V>
HWY_INLINE V VGeluSlope(D d, V v) {
  const V half = hn::Set(d, 0.5f);
  // The density and the error function share one exponential.
  const V e = VExp(d, hn::Mul(hn::Mul(v, v), hn::Set(d, -0.5f)));
  const V x = hn::Mul(v, hn::Set(d, 0.70710678118654752440f));
  const V cdf = hn::MulAdd(half, VErf(d, x, [e](V) HWY_ATTR { return e; }), half);
  return hn::MulAdd(v, hn::Mul(hn::Set(d, 0.39894228040143267794f), e), cdf);
}

template <class D, class V>
HWY_INLINE V VGeluTanhSlope(D d, V v) {
  const V beta = hn::Set(d, 0.79788456080286535588f), one = hn::Set(d, 1.0f), half = hn::Set(d, 0.5f);
  const V square = hn::Mul(v, v);
  const V t = VTanh(d, hn::Mul(hn::Mul(beta, v), hn::MulAdd(hn::Set(d, 0.044715f), square, one)));
  const V inner = hn::Mul(beta, hn::MulAdd(hn::Set(d, 3 * 0.044715f), square, one));
  const V slope = hn::Mul(hn::Mul(hn::Mul(half, v), hn::Sub(one, hn::Mul(t, t))), inner);
  return hn::Add(hn::MulAdd(half, t, half), slope);
}

template <class D, class V, class K>
HWY_INLINE V VElu(D d, V v, const K& k) {
  const V low = hn::Mul(hn::Mul(VExpm1(d, hn::Mul(v, hn::Set(d, k.k2))), hn::Set(d, k.k0)), hn::Set(d, k.k1));
  return hn::IfThenElse(hn::Gt(v, hn::Zero(d)), hn::Mul(v, hn::Set(d, k.k1)), low);
}

template <class D, class V, class K>
HWY_INLINE V VSoftplus(D d, V v, const K& k) {
  const V x = hn::Mul(v, hn::Set(d, k.k0));
  const V soft = hn::Div(VLog1p(d, VExp(d, x)), hn::Set(d, k.k0));
  return hn::IfThenElse(hn::Gt(x, hn::Set(d, k.k1)), v, soft);
}

template <class D, class V>
HWY_INLINE V VLogSigmoid(D d, V v) {
  const V low = hn::IfThenElse(hn::Lt(v, hn::Zero(d)), v, hn::Zero(d));
  return hn::Sub(hn::IfThenElse(hn::IsNaN(v), v, low), VLog1p(d, VExp(d, hn::Neg(hn::Abs(v)))));
}

template <class D, class V>
HWY_INLINE V VMish(D d, V v) {
  return hn::Mul(v, VTanh(d, VLog1p(d, VExp(d, v))));
}

}  // namespace npu::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
