// Kernels for few rows of A: B is read once, where it lies.
#if defined(NPU_GEMM_SKINNY_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NPU_GEMM_SKINNY_INL_H_
#undef NPU_GEMM_SKINNY_INL_H_
#else
#define NPU_GEMM_SKINNY_INL_H_
#endif

#include "kernels/gemm/half-inl.h"

HWY_BEFORE_NAMESPACE();
namespace npu::gemm::HWY_NAMESPACE {

#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_NEON
inline constexpr int kManyRegisters = 1;
#else
inline constexpr int kManyRegisters = 0;
#endif

// Vectors of columns (stream) or columns (dot) for a tile of `rows` rows.
constexpr int TileWidth(int rows) {
  if (kManyRegisters) return rows <= 2 ? 8 : rows == 3 ? 6 : rows == 4 ? 5 : rows <= 5 ? 4 : 3;
  return rows == 1 ? 8 : rows == 2 ? 4 : rows == 3 ? 3 : rows == 4 ? 2 : 1;
}

template <class T, int MR, int NV>
HWY_INLINE void StreamTile(int64_t k, const float* HWY_RESTRICT a, const T* HWY_RESTRICT b, int64_t ldb,
                           float* HWY_RESTRICT c, int64_t ldc) {
  const D d;
  V acc[MR][NV];
  HWY_UNROLL(8) for (int i = 0; i < MR; ++i) {
    HWY_UNROLL(8) for (int j = 0; j < NV; ++j) acc[i][j] = hn::Load(d, c + i * ldc + j * kLanes);
  }
  for (int64_t p = 0; p < k; ++p) {
    // The columns to the right come next; rows may lie on a page each, where the hardware does not look ahead.
    HWY_UNROLL(8)
    for (int j = 0; j<NV; j += static_cast<int>(64 / sizeof(T) / kLanes)> 0 ? 64 / sizeof(T) / kLanes : 1) {
      hwy::Prefetch(b + (NV + j) * kLanes);
    }
    V bv[NV];
    HWY_UNROLL(8) for (int j = 0; j < NV; ++j) bv[j] = LoadF32(d, b + j * kLanes);
    HWY_UNROLL(8) for (int i = 0; i < MR; ++i) {
      const V av = hn::Set(d, a[i]);
      HWY_UNROLL(8) for (int j = 0; j < NV; ++j) acc[i][j] = hn::MulAdd(av, bv[j], acc[i][j]);
    }
    a += MR;
    b += ldb;
  }
  HWY_UNROLL(8) for (int i = 0; i < MR; ++i) {
    HWY_UNROLL(8) for (int j = 0; j < NV; ++j) hn::Store(acc[i][j], d, c + i * ldc + j * kLanes);
  }
}

// Terms taken at once when sweeping along rows of B: their factors of A stay in registers.
constexpr int SweepTerms(int rows) { return kManyRegisters ? (rows <= 2 ? 8 : rows == 3 ? 5 : 4) : 8 / rows; }

// Few rows of A: sweeps along KR rows of B at once, long contiguous runs at the speed of memory, with C in L1.
template <class T, int MR, int KR>
HWY_INLINE void Sweep(int64_t cols, const float* HWY_RESTRICT a, const T* HWY_RESTRICT b, int64_t ldb,
                      float* HWY_RESTRICT c, int64_t ldc) {
  const D d;
  V av[KR][MR];
  HWY_UNROLL(8) for (int q = 0; q < KR; ++q) {
    HWY_UNROLL(4) for (int i = 0; i < MR; ++i) av[q][i] = hn::Set(d, a[q * MR + i]);
  }
  for (int64_t j = 0; j < cols; j += kLanes) {
    V acc[MR];
    HWY_UNROLL(4) for (int i = 0; i < MR; ++i) acc[i] = hn::Load(d, c + i * ldc + j);
    if (j + kLanes <= cols) {
      HWY_UNROLL(8) for (int q = 0; q < KR; ++q) {
        const V bv = LoadF32(d, b + q * ldb + j);
        HWY_UNROLL(4) for (int i = 0; i < MR; ++i) acc[i] = hn::MulAdd(av[q][i], bv, acc[i]);
      }
    } else {
      HWY_UNROLL(8) for (int q = 0; q < KR; ++q) {
        const V bv = LoadF32N(d, b + q * ldb + j, static_cast<int>(cols - j));
        HWY_UNROLL(4) for (int i = 0; i < MR; ++i) acc[i] = hn::MulAdd(av[q][i], bv, acc[i]);
      }
    }
    HWY_UNROLL(4) for (int i = 0; i < MR; ++i) hn::Store(acc[i], d, c + i * ldc + j);
  }
}

template <class T, int MR>
void Stream(int64_t k, int64_t cols, const float* a, const void* source, int64_t ldb, float* c, int64_t ldc) {
  const D d;
  const T* b = static_cast<const T*>(source);
  if constexpr (MR <= 4) {
    constexpr int kKr = SweepTerms(MR);
    int64_t p = 0;
    for (; p + kKr <= k; p += kKr) Sweep<T, MR, kKr>(cols, a + p * MR, b + p * ldb, ldb, c, ldc);
    for (; p < k; ++p) Sweep<T, MR, 1>(cols, a + p * MR, b + p * ldb, ldb, c, ldc);
    return;
  }
  constexpr int kNv = TileWidth(MR);
  int64_t j = 0;
  for (; j + kNv * kLanes <= cols; j += kNv * kLanes) StreamTile<T, MR, kNv>(k, a, b + j, ldb, c + j, ldc);
  for (; j + kLanes <= cols; j += kLanes) StreamTile<T, MR, 1>(k, a, b + j, ldb, c + j, ldc);
  const int rest = static_cast<int>(cols - j);
  if (rest == 0) return;
  V acc[MR];
  HWY_UNROLL(8) for (int i = 0; i < MR; ++i) acc[i] = hn::Load(d, c + i * ldc + j);
  const T* row = b + j;
  for (int64_t p = 0; p < k; ++p, row += ldb) {
    const V bv = LoadF32N(d, row, rest);
    HWY_UNROLL(8) for (int i = 0; i < MR; ++i) acc[i] = hn::MulAdd(hn::Set(d, a[p * MR + i]), bv, acc[i]);
  }
  HWY_UNROLL(8) for (int i = 0; i < MR; ++i) hn::Store(acc[i], d, c + i * ldc + j);
}

template <class T, int MR, int NB>
HWY_INLINE void DotTile(int64_t k, const float* HWY_RESTRICT a, int64_t lda, const T* HWY_RESTRICT b, int64_t ldb,
                        float* HWY_RESTRICT c, int64_t ldc) {
  const D d;
  V acc[MR][NB];
  HWY_UNROLL(8) for (int i = 0; i < MR; ++i) { HWY_UNROLL(8) for (int j = 0; j < NB; ++j) acc[i][j] = hn::Zero(d); }
  int64_t p = 0;
  for (; p + kLanes <= k; p += kLanes) {
    V bv[NB];
    HWY_UNROLL(8) for (int j = 0; j < NB; ++j) bv[j] = LoadF32(d, b + j * ldb + p);
    HWY_UNROLL(8) for (int i = 0; i < MR; ++i) {
      const V av = hn::LoadU(d, a + i * lda + p);
      HWY_UNROLL(8) for (int j = 0; j < NB; ++j) acc[i][j] = hn::MulAdd(av, bv[j], acc[i][j]);
    }
  }
  if (const int rest = static_cast<int>(k - p); rest > 0) {
    V bv[NB];
    HWY_UNROLL(8) for (int j = 0; j < NB; ++j) bv[j] = LoadF32N(d, b + j * ldb + p, rest);
    HWY_UNROLL(8) for (int i = 0; i < MR; ++i) {
      const V av = LoadF32N(d, a + i * lda + p, rest);
      HWY_UNROLL(8) for (int j = 0; j < NB; ++j) acc[i][j] = hn::MulAdd(av, bv[j], acc[i][j]);
    }
  }
  HWY_UNROLL(8) for (int i = 0; i < MR; ++i) {
    HWY_UNROLL(8) for (int j = 0; j < NB; ++j) c[i * ldc + j] += hn::GetLane(hn::SumOfLanes(d, acc[i][j]));
  }
}

template <class T, int MR>
void Dot(int64_t k, int64_t cols, const float* a, int64_t lda, const void* source, int64_t ldb, float* c, int64_t ldc) {
  constexpr int kNb = TileWidth(MR);
  const T* b = static_cast<const T*>(source);
  int64_t j = 0;
  for (; j + kNb <= cols; j += kNb) DotTile<T, MR, kNb>(k, a, lda, b + j * ldb, ldb, c + j, ldc);
  for (; j < cols; ++j) DotTile<T, MR, 1>(k, a, lda, b + j * ldb, ldb, c + j, ldc);
}

}  // namespace npu::gemm::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
