#include "kernels/simd/ternary.h"

#include "kernels/simd/scalar_math.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/simd/ternary.cc"
#include "hwy/foreach_target.h"
#include "kernels/simd/pointwise-inl.h"

HWY_BEFORE_NAMESPACE();
namespace npu::simd::HWY_NAMESPACE {

// NaN in any of the three wins, as torch.clamp with tensors.
template <class T>
HWY_INLINE T ClampOf(T a, T lo, T hi) {
  const T raised = IsNan(a) ? a : (a < lo || IsNan(lo)) ? lo : a;
  return IsNan(raised) ? raised : (raised > hi || IsNan(hi)) ? hi : raised;
}

#define NPU_TERNARY(name, types, cost, tolerance, expr)                                                             \
  struct name##Op {                                                                                                 \
    template <class T>                                                                                              \
    static HWY_INLINE T Do(T a, T b, T c, [[maybe_unused]] const Numbers<T>& k) { return static_cast<T>(expr); }    \
  };
#include "kernels/simd/ternary_ops.inc"
#undef NPU_TERNARY

template <class Op, uint64_t kTypes>
TileFn Select(Lane lane) {
  constexpr auto has = [](DType t) { return (kTypes >> static_cast<unsigned>(t) & 1) != 0; };
  if (lane == Lane::f32) return Tile<Op, float, float, 3>;
  if (lane == Lane::f64) return Tile<Op, double, double, 3>;
  if constexpr (has(DType::i32)) {
    if (lane == Lane::i32) return Tile<Op, int32_t, int32_t, 3>;
    if (lane == Lane::i64) return Tile<Op, int64_t, int64_t, 3>;
  }
  if constexpr (has(DType::c64)) {
    if (lane == Lane::c128) return Tile<Op, std::complex<double>, std::complex<double>, 3>;
  }
  return nullptr;
}

TileFn FindTernary(int which, Lane lane) {
  using Fn = TileFn (*)(Lane);
  static constexpr Fn kTable[] = {
#define NPU_TERNARY(name, types, cost, tolerance, expr) Select<name##Op, (types).bits>,
#include "kernels/simd/ternary_ops.inc"
#undef NPU_TERNARY
  };
  return kTable[which](lane);
}

template <class T>
void WhereTile(const void* const* in, void* out, int64_t n, const Imm&) {
  const auto* c = static_cast<const uint8_t*>(in[0]);
  const T* a = static_cast<const T*>(in[1]);
  const T* b = static_cast<const T*>(in[2]);
  T* d = static_cast<T*>(out);
  NPU_VECTORIZE
  for (int64_t i = 0; i < n; ++i) d[i] = c[i] != 0 ? a[i] : b[i];
}

// Values only move, so lanes of one size share a function.
TileFn FindWhere(Lane lane) {
  switch (lane) {
    case Lane::f32:
    case Lane::i32: return WhereTile<uint32_t>;
    case Lane::f64:
    case Lane::i64: return WhereTile<uint64_t>;
    case Lane::c128: return WhereTile<std::complex<double>>;
    case Lane::b8: return WhereTile<uint8_t>;
  }
  return nullptr;
}

}  // namespace npu::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace npu::simd {
HWY_EXPORT(FindTernary);
HWY_EXPORT(FindWhere);
namespace {
enum Which : int {
#define NPU_TERNARY(name, types, cost, tolerance, expr) i##name,
#include "kernels/simd/ternary_ops.inc"
#undef NPU_TERNARY
};
}  // namespace
#define NPU_TERNARY(name, types, cost, tolerance, expr)                                    \
  constinit const PointwiseKernel k##name{#name, 3, types, false, 0xff, cost, tolerance,   \
                                          [](Lane lane) { return HWY_DYNAMIC_DISPATCH(FindTernary)(i##name, lane); }};
#include "kernels/simd/ternary_ops.inc"
#undef NPU_TERNARY
constinit const PointwiseKernel kWhere{"Where", 3, kAnyType, false, 0, 3, "exact",
                                       [](Lane lane) { return HWY_DYNAMIC_DISPATCH(FindWhere)(lane); }};
}  // namespace npu::simd
#endif
