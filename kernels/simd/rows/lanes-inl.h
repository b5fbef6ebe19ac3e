// Loops over dense rows for kernels written once for every instruction set. Included once for each Highway target.
//
//   Map(out, n, [](auto d, auto x, auto y) HWY_ATTR { return hn::Add(x, y); }, a, b);
//
// Mind that hn::Ne(x, x) is false for NaN on x86 (an ordered compare): use IsNaN, or Not(Eq(…)).
//
// Tails go through a small stack buffer, so nothing is touched past n.
#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#include <cstring>
#include <limits>

#if defined(NPU_SIMD_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NPU_SIMD_LANES_INL_H_
#undef NPU_SIMD_LANES_INL_H_
#else
#define NPU_SIMD_LANES_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace npu::simd::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class D, class T = hn::TFromD<D>>
HWY_INLINE hn::Vec<D> LoadTail(D d, const T* p, int64_t n) {
  HWY_ALIGN T buffer[HWY_MAX_BYTES / sizeof(T)] = {};
  std::memcpy(buffer, p, static_cast<size_t>(n) * sizeof(T));
  return hn::Load(d, buffer);
}
template <class D, class T = hn::TFromD<D>>
HWY_INLINE void StoreTail(hn::Vec<D> v, D d, T* p, int64_t n) {
  HWY_ALIGN T buffer[HWY_MAX_BYTES / sizeof(T)];
  hn::Store(v, d, buffer);
  std::memcpy(p, buffer, static_cast<size_t>(n) * sizeof(T));
}

template <class T, class F, class... In>
HWY_INLINE void Map(T* out, int64_t n, const F& f, const In*... in) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(f(d, hn::LoadU(d, in + i)...), d, out + i);
  if (i < n) StoreTail(f(d, LoadTail(d, in + i, n - i)...), d, out + i, n - i);
}

// Combines f(d, in...) over the row with four accumulators. `identity` is neutral for combine.
template <class T, class F, class G, class... In>
HWY_INLINE hn::Vec<hn::ScalableTag<T>> Accumulate(int64_t n, T identity, const F& f, const G& combine, const In*... in) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  auto a0 = hn::Set(d, identity), a1 = a0, a2 = a0, a3 = a0;
  int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    a0 = combine(a0, f(d, hn::LoadU(d, in + i)...));
    a1 = combine(a1, f(d, hn::LoadU(d, in + i + lanes)...));
    a2 = combine(a2, f(d, hn::LoadU(d, in + i + 2 * lanes)...));
    a3 = combine(a3, f(d, hn::LoadU(d, in + i + 3 * lanes)...));
  }
  for (; i + lanes <= n; i += lanes) a0 = combine(a0, f(d, hn::LoadU(d, in + i)...));
  if (i < n) {
    const auto mask = hn::FirstN(d, static_cast<size_t>(n - i));
    a1 = combine(a1, hn::IfThenElse(mask, f(d, LoadTail(d, in + i, n - i)...), hn::Set(d, identity)));
  }
  return combine(combine(a0, a1), combine(a2, a3));
}

template <class T, class F, class... In>
HWY_INLINE T SumOf(int64_t n, const F& f, const In*... in) {
  const hn::ScalableTag<T> d;
  const auto add = [](auto a, auto b) HWY_ATTR { return hn::Add(a, b); };
  return hn::GetLane(hn::SumOfLanes(d, Accumulate<T>(n, T{0}, f, add, in...)));
}

// Highway's exp flushes NaN to 0 and is not defined for large arguments.
template <class D>
HWY_INLINE hn::Vec<D> ExpOf(D d, hn::Vec<D> x) {
  using T = hn::TFromD<D>;
  const auto high = hn::Set(d, static_cast<T>(sizeof(T) == 4 ? 88.722839 : 709.782712893384));
  auto y = hn::Exp(d, hn::Min(x, high));
  y = hn::IfThenElse(hn::Gt(x, high), hn::Set(d, std::numeric_limits<T>::infinity()), y);
  return hn::IfThenElse(hn::Eq(x, x), y, x);
}

// log with log(0) = −inf, log(negative) = NaN, log(inf) = inf, NaN kept.
template <class D>
HWY_INLINE hn::Vec<D> LogOf(D d, hn::Vec<D> x) {
  using T = hn::TFromD<D>;
  constexpr T kInf = std::numeric_limits<T>::infinity();
  const auto inf = hn::Set(d, kInf);
  auto y = hn::Log(d, x);
  y = hn::IfThenElse(hn::Eq(x, hn::Zero(d)), hn::Set(d, -kInf), y);
  y = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Set(d, std::numeric_limits<T>::quiet_NaN()), y);
  return hn::IfThenElse(hn::And(hn::Eq(x, x), hn::Lt(x, inf)), y, x);
}

}  // namespace npu::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // include guard of a target
