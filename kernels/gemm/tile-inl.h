// The register tile: MR rows times NV vectors of accumulators, one pass over k, for operands in panels or where they
// lie. Each element of C is one chain of fused multiply-adds in the order of k, whatever MR and NV are: edges and
// interior, and any split of C over threads, give the same bits.
#if defined(NPU_GEMM_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NPU_GEMM_TILE_INL_H_
#undef NPU_GEMM_TILE_INL_H_
#else
#define NPU_GEMM_TILE_INL_H_
#endif

#include <utility>

#include "kernels/gemm/half-inl.h"
#include "kernels/gemm/micro.h"

HWY_BEFORE_NAMESPACE();
namespace npu::gemm::HWY_NAMESPACE {

// Registers: accumulators + NV vectors of B + one broadcast of A must fit (32 on AVX-512 and NEON, 16 else).
#if HWY_TARGET == HWY_AVX3
inline constexpr int kMr = 14;
inline constexpr int64_t kKc = 256;
#elif HWY_TARGET == HWY_NEON
inline constexpr int kMr = 12;
inline constexpr int64_t kKc = 512;
#else
inline constexpr int kMr = 6;
inline constexpr int64_t kKc = 384;
#endif

// Row I of A as address arithmetic that needs few registers: one of five bases, three rows apart, plus 0, 1, 2, 4 or 8
// strides.
template <int I>
HWY_INLINE float RowOfA(const char* const (&base)[5], int64_t stride) {
  constexpr int kSteps[] = {0, 1, 2, 0, 4, 2, 0, 4, 8, 0, 4, 8, 0, 4},
                kBase[] = {0, 0, 0, 1, 0, 1, 2, 1, 0, 3, 2, 1, 4, 3};
  static_assert(I < 14 && 3 * kBase[I] + kSteps[I] == I);
  return *reinterpret_cast<const float*>(base[kBase[I]] + kSteps[I] * stride);
}

template <int NV, int... kRow>
HWY_INLINE void AddProducts(const char* const (&base)[5], int64_t stride, const V (&b)[NV],
                            V (&acc)[sizeof...(kRow)][NV], std::integer_sequence<int, kRow...>) {
  const auto row = [&](V(&sum)[NV], float x) {
    const V av = hn::Set(D(), x);
    HWY_UNROLL(2) for (int j = 0; j < NV; ++j) sum[j] = hn::MulAdd(av, b[j], sum[j]);
  };
  (row(acc[kRow], RowOfA<kRow>(base, stride)), ...);
}

template <int MR, int NV, bool kAdd>
void Tile(int64_t k, const Strip& a, const float* HWY_RESTRICT b, int64_t b_step, float* HWY_RESTRICT c, int64_t ldc,
          int64_t second) {
  const D d;
  V acc[MR][NV];
  HWY_UNROLL(16) for (int i = 0; i < MR; ++i) { HWY_UNROLL(2) for (int j = 0; j < NV; ++j) acc[i][j] = hn::Zero(d); }
  const int64_t stride = a.stride * static_cast<int64_t>(sizeof(float)),
                step = a.step * static_cast<int64_t>(sizeof(float));
  const char* base[5];
  HWY_UNROLL(5) for (int g = 0; g < 5; ++g) base[g] = reinterpret_cast<const char*>(a.data) + 3 * g * stride;
  // C is asked for row by row along the way: all at once its misses would hold every line buffer while A and B wait.
  const float* row = c;
  const float* const end = c + MR * ldc;
  for (int64_t p = 0; p < k; ++p) {
    if (p % 4 == 0 && row != end) {
      hwy::Prefetch(row);
      if (NV > 1) hwy::Prefetch(row + second + kLanes - 1);
      row += ldc;
    }
    V bv[NV];
    HWY_UNROLL(2) for (int j = 0; j < NV; ++j) bv[j] = hn::LoadU(d, b + j * kLanes);
    AddProducts<NV>(base, stride, bv, acc, std::make_integer_sequence<int, MR>());
    HWY_UNROLL(5) for (int g = 0; g < 5; ++g) {
      base[g] += step;
      // Otherwise the compiler keeps a pointer for each row, more than there are registers.
      if (3 * g < MR) asm("" : "+r"(base[g]));
    }
    b += b_step;
  }
  HWY_UNROLL(16) for (int i = 0; i < MR; ++i) {
    HWY_UNROLL(2) for (int j = 0; j < NV; ++j) {
      float* p = c + i * ldc + j * second;
      hn::StoreU(kAdd ? hn::Add(hn::LoadU(d, p), acc[i][j]) : acc[i][j], d, p);
    }
  }
}

}  // namespace npu::gemm::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
