// The register tile: MR rows times NV vectors of accumulators, one pass over k, for packed panels.
// Each element of C is one chain of fused multiply-adds in the order of k, whatever MR and NV are: edges and interior,
// and any split of C over threads, give the same bits.
#if defined(NPU_GEMM_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NPU_GEMM_TILE_INL_H_
#undef NPU_GEMM_TILE_INL_H_
#else
#define NPU_GEMM_TILE_INL_H_
#endif

#include "kernels/gemm/half-inl.h"

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

template <int MR, int NV, bool kAdd>
void Tile(int64_t k, const float* HWY_RESTRICT a, const float* HWY_RESTRICT b, float* HWY_RESTRICT c, int64_t ldc,
          int64_t second) {
  const D d;
  V acc[MR][NV];
  HWY_UNROLL(16) for (int i = 0; i < MR; ++i) {
    HWY_UNROLL(2) for (int j = 0; j < NV; ++j) acc[i][j] = hn::Zero(d);
    hwy::Prefetch(c + i * ldc);
    if (NV > 1) hwy::Prefetch(c + i * ldc + second + kLanes - 1);
  }
  for (int64_t p = 0; p < k; ++p) {
    V bv[NV];
    HWY_UNROLL(2) for (int j = 0; j < NV; ++j) bv[j] = hn::Load(d, b + j * kLanes);
    HWY_UNROLL(16) for (int i = 0; i < MR; ++i) {
      const V av = hn::Set(d, a[i]);
      HWY_UNROLL(2) for (int j = 0; j < NV; ++j) acc[i][j] = hn::MulAdd(av, bv[j], acc[i][j]);
    }
    a += MR;
    b += NV * kLanes;
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
