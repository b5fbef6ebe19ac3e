#include "kernels/simd/compare.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/simd/compare.cc"
#include "hwy/foreach_target.h"
#include "kernels/simd/pointwise-inl.h"

HWY_BEFORE_NAMESPACE();
namespace npu::simd::HWY_NAMESPACE {

// k0 is rtol, k1 atol, k2 whether NaN equals NaN.
template <class T>
HWY_INLINE bool CloseOf(T a, T b, const Numbers<double>& k) {
  const auto x = static_cast<double>(a), y = static_cast<double>(b);
  const bool both_nan = (x != x) & (y != y);
  const double allowed = k.k1 + k.k0 * std::abs(y), gap = std::abs(x - y);
  return (a == b) | (both_nan & (k.k2 != 0)) | ((gap <= allowed) & (gap < std::numeric_limits<double>::infinity()) & (std::abs(y) < std::numeric_limits<double>::infinity()));
}

#define NPU_COMPARE(name, types, expr)                                                                        \
  struct name##Op {                                                                                           \
    template <class T, class K>                                                                               \
    static HWY_INLINE bool Do(T a, T b, [[maybe_unused]] const K& k) { return expr; }                         \
  };
#include "kernels/simd/compare_ops.inc"
#undef NPU_COMPARE

template <class Op, class T, class K>
void TestTile(const void* const* in, void* out, int64_t n, const Imm& imm) {
  const Numbers<K> k(imm);
  const T* a = static_cast<const T*>(in[0]);
  const T* b = static_cast<const T*>(in[1]);
  auto* d = static_cast<uint8_t*>(out);
  NPU_VECTORIZE
  for (int64_t i = 0; i < n; ++i) d[i] = Op::template Do<T>(a[i], b[i], k) ? 1 : 0;
}

template <class Op, bool kComplex>
TileFn Select(Lane lane) {
  switch (lane) {
    case Lane::f32: return TestTile<Op, float, double>;
    case Lane::f64: return TestTile<Op, double, double>;
    case Lane::i32: return TestTile<Op, int32_t, double>;
    case Lane::i64: return TestTile<Op, int64_t, double>;
    case Lane::c128:
      if constexpr (kComplex) return TestTile<Op, std::complex<double>, double>;
      return nullptr;
    case Lane::b8: return nullptr;
  }
  return nullptr;
}

TileFn FindCompare(int which, Lane lane) {
  using Fn = TileFn (*)(Lane);
  static constexpr Fn kTable[] = {
#define NPU_COMPARE(name, types, expr) Select<name##Op, (types).Has(DType::c64)>,
#include "kernels/simd/compare_ops.inc"
#undef NPU_COMPARE
  };
  return kTable[which](lane);
}

}  // namespace npu::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace npu::simd {
HWY_EXPORT(FindCompare);
namespace {
enum Which : int {
#define NPU_COMPARE(name, types, expr) i##name,
#include "kernels/simd/compare_ops.inc"
#undef NPU_COMPARE
};
}  // namespace
#define NPU_COMPARE(name, types, expr)                                            \
  constinit const PointwiseKernel k##name{#name, 2, types, true, 0xff, 2, "exact", \
                                          [](Lane lane) { return HWY_DYNAMIC_DISPATCH(FindCompare)(i##name, lane); }};
#include "kernels/simd/compare_ops.inc"
#undef NPU_COMPARE
}  // namespace npu::simd
#endif
