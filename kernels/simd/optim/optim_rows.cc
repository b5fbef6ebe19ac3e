#include "kernels/simd/optim/optim_rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/simd/optim/optim_rows.cc"
#include <hwy/foreach_target.h>  // NOLINT: must come before highway.h
#include <hwy/highway.h>

#include "kernels/simd/rows/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace npu::simd::HWY_NAMESPACE {

template <class T>
void AdamStepRow(const AdamRow<T>& p, T* w, const T* grad, T* m, T* v, T* max_v, int64_t n) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto beta1 = hn::Set(d, p.beta1), beta1c = hn::Set(d, p.beta1c), beta2 = hn::Set(d, p.beta2);
  const auto beta2c = hn::Set(d, p.beta2c), rate = hn::Set(d, p.rate), root = hn::Set(d, p.root), eps = hn::Set(d, p.eps);
  const auto shrink = hn::Set(d, p.shrink), l2 = hn::Set(d, p.l2), sign = hn::Set(d, p.sign_scale);
  for (int64_t i = 0; i < n; i += lanes) {
    const bool whole = i + lanes <= n;
    const int64_t rest = n - i;
    const auto load = [&](const T* from) HWY_ATTR { return whole ? hn::LoadU(d, from + i) : LoadTail(d, from + i, rest); };
    const auto store = [&](auto value, T* to) HWY_ATTR {
      if (whole) hn::StoreU(value, d, to + i);
      else StoreTail(value, d, to + i, rest);
    };
    const auto wv = load(w);
    const auto g = hn::MulAdd(load(grad), sign, hn::Mul(l2, wv));
    const auto mv = hn::MulAdd(beta1, load(m), hn::Mul(beta1c, g));
    const auto vv = hn::MulAdd(beta2, load(v), hn::Mul(beta2c, hn::Mul(g, g)));
    store(mv, m);
    store(vv, v);
    auto top = vv;
    if (max_v != nullptr) {
      top = hn::Max(load(max_v), vv);
      store(top, max_v);
    }
    const auto denominator = hn::MulAdd(hn::Sqrt(top), root, eps);
    store(hn::Sub(hn::Mul(wv, shrink), hn::Div(hn::Mul(rate, mv), denominator)), w);
  }
}

template <class T>
void SgdStepRow(const SgdRow<T>& p, T* w, const T* grad, T* buf, int64_t n) {
  const hn::ScalableTag<T> t;
  const auto sign = hn::Set(t, p.sign_scale), l2 = hn::Set(t, p.l2), keep = hn::Set(t, p.keep), take = hn::Set(t, p.take);
  const auto momentum = hn::Set(t, p.momentum), lr = hn::Set(t, p.lr);
  const auto gradient = [&](auto g, auto wv) HWY_ATTR { return hn::MulAdd(g, sign, hn::Mul(l2, wv)); };
  if (buf == nullptr) {
    Map(w, n, [&](auto, auto wv, auto g) HWY_ATTR { return hn::NegMulAdd(lr, gradient(g, wv), wv); }, w, grad);
    return;
  }
  Map(buf, n, [&](auto, auto b, auto wv, auto g) HWY_ATTR { return hn::MulAdd(keep, b, hn::Mul(take, gradient(g, wv))); }, buf,
      w, grad);
  if (p.nesterov) {
    Map(w, n, [&](auto, auto wv, auto b, auto g) HWY_ATTR {
      return hn::NegMulAdd(lr, hn::MulAdd(momentum, b, gradient(g, wv)), wv);
    }, w, buf, grad);
  } else {
    Map(w, n, [&](auto, auto wv, auto b) HWY_ATTR { return hn::NegMulAdd(lr, b, wv); }, w, buf);
  }
}

template <class T>
const OptimTable<T>* OptimTableOf() {
  static constexpr OptimTable<T> kTable = {AdamStepRow<T>, SgdStepRow<T>};
  return &kTable;
}
const OptimTable<float>* OptimTableF32() { return OptimTableOf<float>(); }
const OptimTable<double>* OptimTableF64() { return OptimTableOf<double>(); }

}  // namespace npu::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace npu::simd {
HWY_EXPORT(OptimTableF32);
HWY_EXPORT(OptimTableF64);
template <>
const OptimTable<float>& OptimRows<float>() {
  static const OptimTable<float>& table = *HWY_DYNAMIC_DISPATCH(OptimTableF32)();
  return table;
}
template <>
const OptimTable<double>& OptimRows<double>() {
  static const OptimTable<double>& table = *HWY_DYNAMIC_DISPATCH(OptimTableF64)();
  return table;
}
}  // namespace npu::simd
#endif  // HWY_ONCE
