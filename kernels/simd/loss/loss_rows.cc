#include "kernels/simd/loss/loss_rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/simd/loss/loss_rows.cc"
#include <hwy/foreach_target.h>  // NOLINT: must come before highway.h
#include <hwy/highway.h>

#include "kernels/simd/rows/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace npu::simd::HWY_NAMESPACE {

template <class D, class V>
HWY_INLINE V SignOf(D d, V x) {
  const auto one = hn::Set(d, hn::TFromD<D>{1});
  const auto positive = hn::IfThenElseZero(hn::Gt(x, hn::Zero(d)), one);
  const auto s = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Neg(one), positive);
  return hn::IfThenElse(hn::Eq(x, x), s, x);
}
template <class D, class V>
HWY_INLINE V SigmoidOf(D d, V x) {
  const auto one = hn::Set(d, hn::TFromD<D>{1});
  return hn::Div(one, hn::Add(one, ExpOf(d, hn::Neg(x))));
}
template <class D, class V>
HWY_INLINE V ClampedLog(D d, V x) {
  // max(log x, −100), NaN kept.
  const auto l = LogOf(d, x);
  return hn::IfThenElse(hn::Lt(l, hn::Set(d, hn::TFromD<D>{-100})), hn::Set(d, hn::TFromD<D>{-100}), l);
}

// One struct for each loss: Of and Grad see x, y and the positive weight (1 when absent) and beta.
#define NPU_LOSS_FN(NAME) \
  template <class D, class V> static HWY_INLINE V NAME([[maybe_unused]] D d, [[maybe_unused]] V x, [[maybe_unused]] V y, \
                                                       [[maybe_unused]] V pw, [[maybe_unused]] V beta)

struct Mse {
  NPU_LOSS_FN(Of) { const auto e = hn::Sub(x, y); return hn::Mul(e, e); }
  NPU_LOSS_FN(Grad) { const auto e = hn::Sub(x, y); return hn::Add(e, e); }
};
struct L1 {
  NPU_LOSS_FN(Of) { return hn::Abs(hn::Sub(x, y)); }
  NPU_LOSS_FN(Grad) { return SignOf(d, hn::Sub(x, y)); }
};
struct SmoothL1 {
  NPU_LOSS_FN(Of) {
    const auto half = hn::Set(d, static_cast<hn::TFromD<D>>(0.5));
    const auto e = hn::Abs(hn::Sub(x, y));
    return hn::IfThenElse(hn::Lt(e, beta), hn::Div(hn::Mul(half, hn::Mul(e, e)), beta), hn::NegMulAdd(half, beta, e));
  }
  NPU_LOSS_FN(Grad) {
    const auto e = hn::Sub(x, y);
    return hn::IfThenElse(hn::Lt(hn::Abs(e), beta), hn::Div(e, beta), SignOf(d, e));
  }
};
struct Bce {
  NPU_LOSS_FN(Of) {
    const auto one = hn::Set(d, hn::TFromD<D>{1});
    // (y − 1)·log(1 − x) − y·log(x)
    return hn::Sub(hn::Mul(hn::Sub(y, one), ClampedLog(d, hn::Sub(one, x))), hn::Mul(y, ClampedLog(d, x)));
  }
  NPU_LOSS_FN(Grad) {
    const auto one = hn::Set(d, hn::TFromD<D>{1});
    const auto spread = hn::Max(hn::Mul(hn::Sub(one, x), x), hn::Set(d, static_cast<hn::TFromD<D>>(1e-12)));
    return hn::Div(hn::Sub(x, y), spread);
  }
};
struct BceLogits {
  NPU_LOSS_FN(Of) {
    const auto one = hn::Set(d, hn::TFromD<D>{1});
    const auto soft = hn::Add(hn::Log1p(d, ExpOf(d, hn::Neg(hn::Abs(x)))), hn::Max(hn::Neg(x), hn::Zero(d)));
    const auto scale = hn::MulAdd(hn::Sub(pw, one), y, one);
    const auto loss = hn::MulAdd(hn::Sub(one, y), x, hn::Mul(scale, soft));
    return hn::IfThenElse(hn::Eq(x, x), loss, x);
  }
  NPU_LOSS_FN(Grad) {
    const auto one = hn::Set(d, hn::TFromD<D>{1});
    const auto t = hn::Mul(pw, y);
    return hn::Sub(hn::Mul(hn::Sub(hn::Add(t, one), y), SigmoidOf(d, x)), t);
  }
};
struct KlDiv {
  NPU_LOSS_FN(Of) {
    const auto v = hn::Mul(y, hn::Sub(LogOf(d, y), x));
    return hn::IfThenElse(hn::Eq(y, hn::Zero(d)), hn::Neg(hn::Mul(y, x)), v);
  }
  NPU_LOSS_FN(Grad) { return hn::Neg(y); }
  NPU_LOSS_FN(TargetGrad) {
    const auto one = hn::Set(d, hn::TFromD<D>{1});
    return hn::IfThenElseZero(hn::Not(hn::Eq(y, hn::Zero(d))), hn::Sub(hn::Add(LogOf(d, y), one), x));
  }
};
struct KlDivLog {
  NPU_LOSS_FN(Of) { return hn::Mul(ExpOf(d, y), hn::Sub(y, x)); }
  NPU_LOSS_FN(Grad) { return hn::Neg(ExpOf(d, y)); }
  NPU_LOSS_FN(TargetGrad) {
    const auto one = hn::Set(d, hn::TFromD<D>{1});
    return hn::Mul(ExpOf(d, y), hn::Sub(hn::Add(y, one), x));
  }
};
#undef NPU_LOSS_FN

template <class T, class F>
HWY_INLINE void Weighted(const T* x, const T* y, const T* w, const T* pw, T beta, T* out, int64_t n, const F& f) {
  const hn::ScalableTag<T> t;
  const auto bv = hn::Set(t, beta), one = hn::Set(t, T{1});
  if (pw != nullptr) {
    Map(out, n, [=](auto d, auto xv, auto yv, auto pv) HWY_ATTR { return f(d, xv, yv, pv, bv); }, x, y, pw);
  } else {
    Map(out, n, [=](auto d, auto xv, auto yv) HWY_ATTR { return f(d, xv, yv, one, bv); }, x, y);
  }
  if (w != nullptr) Map(out, n, [](auto, auto a, auto b) HWY_ATTR { return hn::Mul(a, b); }, out, w);
}
template <class T, class L>
void LossRow(const T* x, const T* y, const T* w, const T* pw, T beta, T* out, int64_t n) {
  Weighted(x, y, w, pw, beta, out, n, [](auto d, auto xv, auto yv, auto pv, auto bv) HWY_ATTR { return L::Of(d, xv, yv, pv, bv); });
}
template <class T, class L>
void GradRow(const T* x, const T* y, const T* w, const T* pw, T beta, T* out, int64_t n) {
  Weighted(x, y, w, pw, beta, out, n, [](auto d, auto xv, auto yv, auto pv, auto bv) HWY_ATTR { return L::Grad(d, xv, yv, pv, bv); });
}
template <class T, class L>
void TargetGradRow(const T* x, const T* y, const T* w, const T* pw, T beta, T* out, int64_t n) {
  Weighted(x, y, w, pw, beta, out, n,
           [](auto d, auto xv, auto yv, auto pv, auto bv) HWY_ATTR { return L::TargetGrad(d, xv, yv, pv, bv); });
}

template <class T>
const LossTable<T>* LossTableOf() {
  static constexpr LossTable<T> kTable = {
      {LossRow<T, Mse>, LossRow<T, L1>, LossRow<T, SmoothL1>, LossRow<T, Bce>, LossRow<T, BceLogits>, LossRow<T, KlDiv>,
       LossRow<T, KlDivLog>},
      {GradRow<T, Mse>, GradRow<T, L1>, GradRow<T, SmoothL1>, GradRow<T, Bce>, GradRow<T, BceLogits>, GradRow<T, KlDiv>,
       GradRow<T, KlDivLog>},
      {TargetGradRow<T, KlDiv>, TargetGradRow<T, KlDivLog>}};
  return &kTable;
}
const LossTable<float>* LossTableF32() { return LossTableOf<float>(); }
const LossTable<double>* LossTableF64() { return LossTableOf<double>(); }

}  // namespace npu::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace npu::simd {
HWY_EXPORT(LossTableF32);
HWY_EXPORT(LossTableF64);
template <>
const LossTable<float>& LossRows<float>() {
  static const LossTable<float>& table = *HWY_DYNAMIC_DISPATCH(LossTableF32)();
  return table;
}
template <>
const LossTable<double>& LossRows<double>() {
  static const LossTable<double>& table = *HWY_DYNAMIC_DISPATCH(LossTableF64)();
  return table;
}
}  // namespace npu::simd
#endif  // HWY_ONCE
