#include "kernels/simd/rows/rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/simd/rows/rows.cc"
#include <hwy/foreach_target.h>  // NOLINT: must come before highway.h
#include <hwy/highway.h>

#include "kernels/simd/rows/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace npu::simd::HWY_NAMESPACE {

struct Adds {
  template <class V>
  static HWY_INLINE V Combine(V a, V b) { return hn::Add(a, b); }
  static constexpr double kIdentity = 0;
  template <class D>
  static HWY_INLINE hn::TFromD<D> Lane(D d, hn::Vec<D> v) { return hn::GetLane(hn::SumOfLanes(d, v)); }
};
// The larger one, or NaN once there was one.
struct Maxes {
  template <class V>
  static HWY_INLINE V Combine(V a, V b) { return hn::IfThenElse(hn::Or(hn::Gt(b, a), hn::IsNaN(b)), b, a); }
  static constexpr double kIdentity = -std::numeric_limits<double>::infinity();
  template <class D>
  static HWY_INLINE hn::TFromD<D> Lane(D d, hn::Vec<D> v) {
    const auto nan = hn::IsNaN(v);
    if (!hn::AllFalse(d, nan)) return std::numeric_limits<hn::TFromD<D>>::quiet_NaN();
    return hn::GetLane(hn::MaxOfLanes(d, v));
  }
};
struct Mins {
  template <class V>
  static HWY_INLINE V Combine(V a, V b) { return hn::IfThenElse(hn::Or(hn::Lt(b, a), hn::IsNaN(b)), b, a); }
  static constexpr double kIdentity = std::numeric_limits<double>::infinity();
  template <class D>
  static HWY_INLINE hn::TFromD<D> Lane(D d, hn::Vec<D> v) {
    const auto nan = hn::IsNaN(v);
    if (!hn::AllFalse(d, nan)) return std::numeric_limits<hn::TFromD<D>>::quiet_NaN();
    return hn::GetLane(hn::MinOfLanes(d, v));
  }
};
struct Muls {
  template <class V>
  static HWY_INLINE V Combine(V a, V b) { return hn::Mul(a, b); }
  static constexpr double kIdentity = 1;
  template <class D>
  static HWY_INLINE hn::TFromD<D> Lane(D d, hn::Vec<D> v) {
    HWY_ALIGN hn::TFromD<D> lanes[HWY_MAX_BYTES / sizeof(hn::TFromD<D>)];
    hn::Store(v, d, lanes);
    auto p = lanes[0];
    for (size_t i = 1; i < hn::Lanes(d); ++i) p *= lanes[i];
    return p;
  }
};

#define NPU_FOLD(NAME, BASE, EXPR)                                \
  struct NAME : BASE {                                            \
    template <class D, class V>                                   \
    static HWY_INLINE V Of(D d, V x, V c) {                       \
      (void)d, (void)c;                                           \
      return EXPR;                                                \
    }                                                             \
  };
NPU_FOLD(FoldSum, Adds, x)
NPU_FOLD(FoldSquare, Adds, hn::Mul(x, x))
NPU_FOLD(FoldAbs, Adds, hn::Abs(x))
NPU_FOLD(FoldCentered, Adds, hn::Mul(hn::Sub(x, c), hn::Sub(x, c)))
NPU_FOLD(FoldExp, Adds, ExpOf(d, hn::Sub(x, c)))
NPU_FOLD(FoldNanSum, Adds, hn::IfThenElseZero(hn::Eq(x, x), x))
NPU_FOLD(FoldNonZero, Adds, hn::IfThenElseZero(hn::Not(hn::Eq(x, hn::Zero(d))), hn::Set(d, hn::TFromD<D>{1})))
NPU_FOLD(FoldNotNan, Adds, hn::IfThenElseZero(hn::Eq(x, x), hn::Set(d, hn::TFromD<D>{1})))
NPU_FOLD(FoldProd, Muls, x)
NPU_FOLD(FoldMax, Maxes, x)
NPU_FOLD(FoldMin, Mins, x)
NPU_FOLD(FoldMaxAbs, Maxes, hn::Abs(x))
NPU_FOLD(FoldMinAbs, Mins, hn::Abs(x))
#undef NPU_FOLD

template <class T, class Op>
T FoldRow(const T* x, int64_t n, T c) {
  const hn::ScalableTag<T> d;
  const auto cv = hn::Set(d, c);
  const auto of = [cv](auto dd, auto v) HWY_ATTR { return Op::Of(dd, v, cv); };
  const auto combine = [](auto a, auto b) HWY_ATTR { return Op::Combine(a, b); };
  return Op::Lane(d, Accumulate<T>(n, static_cast<T>(Op::kIdentity), of, combine, x));
}

template <class T, class Op>
void FoldInto(T* acc, const T* x, const T* c, int64_t n) {
  if (c == nullptr) c = x;
  Map(acc, n, [](auto d, auto a, auto v, auto cv) HWY_ATTR { return Op::Combine(a, Op::Of(d, v, cv)); }, acc, x, c);
}

template <class T>
T Dot(const T* x, const T* y, int64_t n) {
  return SumOf<T>(n, [](auto, auto a, auto b) HWY_ATTR { return hn::Mul(a, b); }, x, y);
}
template <class T>
T DotCentered(const T* x, const T* y, T c, int64_t n) {
  const auto cv = hn::Set(hn::ScalableTag<T>(), c);
  return SumOf<T>(n, [cv](auto, auto a, auto b) HWY_ATTR { return hn::Mul(a, hn::Sub(b, cv)); }, x, y);
}

template <class T>
void DotCenteredInto(T* acc, const T* x, const T* y, const T* c, int64_t n) {
  Map(acc, n, [](auto, auto a, auto xv, auto yv, auto cv) HWY_ATTR { return hn::MulAdd(xv, hn::Sub(yv, cv), a); }, acc, x, y, c);
}

template <class T>
int64_t Find(const T* x, T v, int64_t n) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const bool nan = v != v;
  const auto vv = hn::Set(d, v);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto e = hn::LoadU(d, x + i);
    const auto hit = nan ? hn::IsNaN(e) : hn::Eq(e, vv);
    const auto at = hn::FindFirstTrue(d, hit);
    if (at >= 0) return i + static_cast<int64_t>(at);
  }
  for (; i < n; ++i) {
    if (nan ? x[i] != x[i] : x[i] == v) return i;
  }
  return n;
}

template <class T>
T ExpSub(const T* x, T c, T* out, int64_t n) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto cv = hn::Set(d, c);
  auto s0 = hn::Zero(d), s1 = s0;
  int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    const auto a = ExpOf(d, hn::Sub(hn::LoadU(d, x + i), cv));
    const auto b = ExpOf(d, hn::Sub(hn::LoadU(d, x + i + lanes), cv));
    hn::StoreU(a, d, out + i);
    hn::StoreU(b, d, out + i + lanes);
    s0 = hn::Add(s0, a);
    s1 = hn::Add(s1, b);
  }
  for (; i < n; i += lanes) {
    const int64_t rest = n - i < lanes ? n - i : lanes;
    const auto e = ExpOf(d, hn::Sub(LoadTail(d, x + i, rest), cv));
    StoreTail(e, d, out + i, rest);
    s0 = hn::Add(s0, hn::IfThenElseZero(hn::FirstN(d, static_cast<size_t>(rest)), e));
  }
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(s0, s1)));
}

template <class T>
void Scale(const T* x, T k, T* out, int64_t n) {
  const auto kv = hn::Set(hn::ScalableTag<T>(), k);
  Map(out, n, [kv](auto, auto a) HWY_ATTR { return hn::Mul(a, kv); }, x);
}
template <class T>
void Shift(const T* x, T c, T* out, int64_t n) {
  const auto cv = hn::Set(hn::ScalableTag<T>(), c);
  Map(out, n, [cv](auto, auto a) HWY_ATTR { return hn::Sub(a, cv); }, x);
}
template <class T>
void Affine(const T* x, T a, T b, T* out, int64_t n) {
  const auto av = hn::Set(hn::ScalableTag<T>(), a);
  const auto bv = hn::Set(hn::ScalableTag<T>(), b);
  Map(out, n, [av, bv](auto, auto v) HWY_ATTR { return hn::MulAdd(v, av, bv); }, x);
}
template <class T>
void AffineCols(const T* x, const T* a, const T* b, T* out, int64_t n) {
  Map(out, n, [](auto, auto v, auto av, auto bv) HWY_ATTR { return hn::MulAdd(v, av, bv); }, x, a, b);
}
template <class T>
void Multiply(const T* x, const T* y, T* out, int64_t n) {
  Map(out, n, [](auto, auto a, auto b) HWY_ATTR { return hn::Mul(a, b); }, x, y);
}
template <class T>
void Sum2(const T* x, const T* y, T* out, int64_t n) {
  Map(out, n, [](auto, auto a, auto b) HWY_ATTR { return hn::Add(a, b); }, x, y);
}
template <class T>
void Axpy(const T* x, T a, const T* y, T* out, int64_t n) {
  const auto av = hn::Set(hn::ScalableTag<T>(), a);
  Map(out, n, [av](auto, auto v, auto w) HWY_ATTR { return hn::MulAdd(v, av, w); }, x, y);
}
template <class T>
void Mix(const T* g, T a, const T* x, T b, T c, T* out, int64_t n) {
  const hn::ScalableTag<T> t;
  const auto av = hn::Set(t, a), bv = hn::Set(t, b), cv = hn::Set(t, c);
  Map(out, n, [av, bv, cv](auto, auto gv, auto xv) HWY_ATTR { return hn::MulAdd(gv, av, hn::MulAdd(xv, bv, cv)); }, g, x);
}
template <class T>
void MixCols(const T* g, const T* a, const T* x, const T* b, const T* c, T* out, int64_t n) {
  Map(out, n, [](auto, auto gv, auto av, auto xv, auto bv, auto cv) HWY_ATTR {
    return hn::MulAdd(gv, av, hn::MulAdd(xv, bv, cv));
  }, g, a, x, b, c);
}

template <class T>
void Normalize(const T* x, T mean, T rstd, const T* w, const T* b, T* out, int64_t n) {
  const hn::ScalableTag<T> t;
  const auto m = hn::Set(t, mean), r = hn::Set(t, rstd);
  if (w != nullptr && b != nullptr) {
    Map(out, n, [m, r](auto, auto v, auto wv, auto bv) HWY_ATTR {
      return hn::MulAdd(hn::Mul(hn::Sub(v, m), r), wv, bv);
    }, x, w, b);
  } else if (w != nullptr) {
    Map(out, n, [m, r](auto, auto v, auto wv) HWY_ATTR { return hn::Mul(hn::Mul(hn::Sub(v, m), r), wv); }, x, w);
  } else if (b != nullptr) {
    Map(out, n, [m, r](auto, auto v, auto bv) HWY_ATTR { return hn::MulAdd(hn::Sub(v, m), r, bv); }, x, b);
  } else {
    Map(out, n, [m, r](auto, auto v) HWY_ATTR { return hn::Mul(hn::Sub(v, m), r); }, x);
  }
}

template <class T>
void NormalizeSums(const T* g, const T* x, T mean, T rstd, const T* w, T* dw, T* db, T sums[2], int64_t n) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto m = hn::Set(d, mean), r = hn::Set(d, rstd);
  const auto one = hn::Set(d, T{1});
  auto s0 = hn::Zero(d), s1 = s0;
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto gv = hn::LoadU(d, g + i);
    const auto h = hn::Mul(hn::Sub(hn::LoadU(d, x + i), m), r);
    const auto gw = hn::Mul(gv, w != nullptr ? hn::LoadU(d, w + i) : one);
    s0 = hn::Add(s0, gw);
    s1 = hn::MulAdd(gw, h, s1);
    if (dw != nullptr) hn::StoreU(hn::MulAdd(gv, h, hn::LoadU(d, dw + i)), d, dw + i);
    if (db != nullptr) hn::StoreU(hn::Add(gv, hn::LoadU(d, db + i)), d, db + i);
  }
  T t0 = hn::GetLane(hn::SumOfLanes(d, s0)), t1 = hn::GetLane(hn::SumOfLanes(d, s1));
  for (; i < n; ++i) {
    const T h = (x[i] - mean) * rstd;
    const T gw = g[i] * (w != nullptr ? w[i] : T{1});
    t0 += gw;
    t1 += gw * h;
    if (dw != nullptr) dw[i] += g[i] * h;
    if (db != nullptr) db[i] += g[i];
  }
  sums[0] = t0;
  sums[1] = t1;
}

template <class T>
void NormalizeGrad(const T* g, const T* x, T mean, T rstd, const T* w, T a, T b, T* out, int64_t n) {
  const hn::ScalableTag<T> t;
  const auto m = hn::Set(t, mean), r = hn::Set(t, rstd), av = hn::Set(t, a), bv = hn::Set(t, b);
  if (w != nullptr) {
    Map(out, n, [=](auto, auto gv, auto xv, auto wv) HWY_ATTR {
      const auto h = hn::Mul(hn::Sub(xv, m), r);
      return hn::Mul(r, hn::NegMulAdd(h, bv, hn::Sub(hn::Mul(gv, wv), av)));
    }, g, x, w);
  } else {
    Map(out, n, [=](auto, auto gv, auto xv) HWY_ATTR {
      const auto h = hn::Mul(hn::Sub(xv, m), r);
      return hn::Mul(r, hn::NegMulAdd(h, bv, hn::Sub(gv, av)));
    }, g, x);
  }
}

template <class T>
void SoftmaxGrad(const T* g, const T* y, T dot, T* out, int64_t n) {
  const auto dv = hn::Set(hn::ScalableTag<T>(), dot);
  Map(out, n, [dv](auto, auto gv, auto yv) HWY_ATTR { return hn::Mul(hn::Sub(gv, dv), yv); }, g, y);
}
template <class T>
void LogSoftmaxGrad(const T* g, const T* y, T sum, T* out, int64_t n) {
  const auto sv = hn::Set(hn::ScalableTag<T>(), sum);
  Map(out, n, [sv](auto d, auto gv, auto yv) HWY_ATTR { return hn::NegMulAdd(ExpOf(d, yv), sv, gv); }, g, y);
}

#define NPU_EACH_FOLD(F) \
  {F<T, FoldSum>,    F<T, FoldSquare>, F<T, FoldAbs>, F<T, FoldCentered>, F<T, FoldExp>,    F<T, FoldNanSum>, \
   F<T, FoldNonZero>, F<T, FoldNotNan>, F<T, FoldProd>, F<T, FoldMax>, F<T, FoldMin>, F<T, FoldMaxAbs>, F<T, FoldMinAbs>}

template <class T>
const RowTable<T>* Table() {
  static constexpr RowTable<T> kTable = {
      {NPU_EACH_FOLD(FoldRow), NPU_EACH_FOLD(FoldInto), Find<T>},
      Dot<T>, DotCentered<T>, DotCenteredInto<T>,
      ExpSub<T>, Scale<T>, Shift<T>, Affine<T>, AffineCols<T>, Multiply<T>, Sum2<T>, Axpy<T>, Mix<T>, MixCols<T>,
      Normalize<T>, NormalizeSums<T>, NormalizeGrad<T>, SoftmaxGrad<T>, LogSoftmaxGrad<T>};
  return &kTable;
}
#undef NPU_EACH_FOLD

const RowTable<float>* TableF32() { return Table<float>(); }
const RowTable<double>* TableF64() { return Table<double>(); }

}  // namespace npu::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace npu::simd {
HWY_EXPORT(TableF32);
HWY_EXPORT(TableF64);

template <>
const RowTable<float>& Rows<float>() {
  static const RowTable<float>& table = *HWY_DYNAMIC_DISPATCH(TableF32)();
  return table;
}
template <>
const RowTable<double>& Rows<double>() {
  static const RowTable<double>& table = *HWY_DYNAMIC_DISPATCH(TableF64)();
  return table;
}
}  // namespace npu::simd
#endif  // HWY_ONCE
