#include "kernels/gemm/pairs.h"

#include <algorithm>

#if defined(__x86_64__)

#if defined(__GNUC__) && !defined(__clang__)
// GCC 12 sees the deliberately undefined operands inside its own intrinsics.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

// Only functions marked so may hold these instructions: nothing of this file runs before the host was asked.
#define NPU_PAIRS __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16")))
#define NPU_PAIRS_INLINE NPU_PAIRS inline __attribute__((always_inline))
#define NPU_TILES __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16,amx-tile,amx-bf16")))

namespace npu::gemm {
namespace {

constexpr int64_t kBlock = kPairStep / 2;  // elements of 16 rows

// Row i, pair p of `v` becomes row p, pair i.
NPU_PAIRS_INLINE void Transpose(__m512i (&v)[16]) {
  __m512i w[16];
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) {
    w[2 * i] = _mm512_unpacklo_epi32(v[2 * i], v[2 * i + 1]);
    w[2 * i + 1] = _mm512_unpackhi_epi32(v[2 * i], v[2 * i + 1]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    v[4 * i] = _mm512_unpacklo_epi64(w[4 * i], w[4 * i + 2]);
    v[4 * i + 1] = _mm512_unpackhi_epi64(w[4 * i], w[4 * i + 2]);
    v[4 * i + 2] = _mm512_unpacklo_epi64(w[4 * i + 1], w[4 * i + 3]);
    v[4 * i + 3] = _mm512_unpackhi_epi64(w[4 * i + 1], w[4 * i + 3]);
  }
  // v[4 g + c] now holds, in its 128-bit lane l, column 4 l + c of rows 4 g ... 4 g + 3.
#pragma GCC unroll 4
  for (int c = 0; c < 4; ++c) {
    const __m512i low01 = _mm512_shuffle_i32x4(v[c], v[4 + c], 0x44), high01 = _mm512_shuffle_i32x4(v[c], v[4 + c], 0xEE);
    const __m512i low23 = _mm512_shuffle_i32x4(v[8 + c], v[12 + c], 0x44);
    const __m512i high23 = _mm512_shuffle_i32x4(v[8 + c], v[12 + c], 0xEE);
    w[c] = _mm512_shuffle_i32x4(low01, low23, 0x88);
    w[4 + c] = _mm512_shuffle_i32x4(low01, low23, 0xDD);
    w[8 + c] = _mm512_shuffle_i32x4(high01, high23, 0x88);
    w[12 + c] = _mm512_shuffle_i32x4(high01, high23, 0xDD);
  }
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) v[i] = w[i];
}

// 16 rows of 32 terms; what lies outside is zero.
NPU_PAIRS_INLINE void LoadRows(const PairOperand& from, int count, int terms, __m512i (&v)[16]) {
  const auto mask = static_cast<__mmask32>(terms >= 32 ? 0xFFFFFFFFu : (1u << terms) - 1);
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) {
    v[i] = i < count ? _mm512_maskz_loadu_epi16(mask, from.data + i * from.stride_i) : _mm512_setzero_si512();
  }
}

// Two terms of 16 neighbouring rows, interleaved, 16 times.
NPU_PAIRS_INLINE void LoadPairs(const PairOperand& from, int count, int terms, __m512i (&v)[16]) {
  const auto mask = static_cast<__mmask16>((1u << count) - 1);
#pragma GCC unroll 16
  for (int p = 0; p < 16; ++p) {
    const uint16_t* at = from.data + 2 * p * from.stride_k;
    __m512i even = _mm512_setzero_si512(), odd = even;
    if (2 * p < terms) even = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, at));
    if (2 * p + 1 < terms) odd = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, at + from.stride_k));
    v[p] = _mm512_or_si512(even, _mm512_slli_epi32(odd, 16));
  }
}

NPU_PAIRS_INLINE void StoreAll(const __m512i (&v)[16], uint16_t* dst) {
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) _mm512_store_si512(dst + i * 32, v[i]);
}

template <bool kPairForm>
NPU_PAIRS void Pack(const PairOperand& given, int count, int64_t k, uint16_t* dst) {
  PairOperand from = given;
  for (int64_t done = 0; done < k; done += kPairTerms, dst += kPairStep, from.data += kPairTerms * from.stride_k) {
    const int terms = static_cast<int>(std::min(kPairTerms, k - done));
    __m512i v[16];
    if (from.stride_k == 1) {
      LoadRows(from, count, terms, v);
      if (kPairForm) Transpose(v);
    } else if (from.stride_i == 1) {
      LoadPairs(from, count, terms, v);
      if (!kPairForm) Transpose(v);
    } else {
      alignas(64) uint16_t rows[kBlock] = {};
      for (int i = 0; i < count; ++i) {
        for (int q = 0; q < terms; ++q) rows[i * 32 + q] = from.data[i * from.stride_i + q * from.stride_k];
      }
      LoadRows({rows, 32, 1}, 16, 32, v);
      if (kPairForm) Transpose(v);
    }
    StoreAll(v, dst);
  }
}

// Eight rows times one or two blocks of columns in registers.
template <int kCols>
NPU_PAIRS void DotRows(int64_t steps, const uint16_t* a, const uint16_t* b, float* c, int64_t ldc, bool add) {
  __m512 sum[8][kCols];
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) {
#pragma GCC unroll 2
    for (int j = 0; j < kCols; ++j) sum[i][j] = add ? _mm512_loadu_ps(c + i * ldc + j * 16) : _mm512_setzero_ps();
  }
  for (int64_t s = 0; s < steps; ++s, a += kPairStep, b += kPairStep) {
    for (int p = 0; p < 16; ++p) {
      __m512i right[kCols];
#pragma GCC unroll 2
      for (int j = 0; j < kCols; ++j) right[j] = _mm512_load_si512(b + j * kBlock + p * 32);
#pragma GCC unroll 8
      for (int i = 0; i < 8; ++i) {
        int32_t pair;
        __builtin_memcpy(&pair, a + i * 32 + p * 2, sizeof pair);
        const __m512i left = _mm512_set1_epi32(pair);
#pragma GCC unroll 2
        for (int j = 0; j < kCols; ++j) {
          sum[i][j] = _mm512_dpbf16_ps(sum[i][j], reinterpret_cast<const __m512bh&>(left),
                                       reinterpret_cast<const __m512bh&>(right[j]));
        }
      }
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) {
#pragma GCC unroll 2
    for (int j = 0; j < kCols; ++j) _mm512_storeu_ps(c + i * ldc + j * 16, sum[i][j]);
  }
}

NPU_PAIRS void MultiplyByDots(int64_t steps, const uint16_t* a, const uint16_t* b, int row_blocks, int col_blocks,
                              float* c, int64_t ldc, bool add) {
  for (int i = 0; i < 2 * row_blocks; ++i) {
    const uint16_t* rows = a + i * 8 * 32;
    if (col_blocks == 2) {
      DotRows<2>(steps, rows, b, c + i * 8 * ldc, ldc, add);
    } else {
      DotRows<1>(steps, rows, b, c + i * 8 * ldc, ldc, add);
    }
  }
}

struct alignas(64) TileConfig {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t bytes_a_row[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

NPU_TILES void BeginTiles() {
  static const TileConfig config;
  _tile_loadconfig(&config);
}
NPU_TILES void EndTiles() { _tile_release(); }

// Registers 0 to 3 hold the result, 4 and 5 rows of A, 6 and 7 columns of B.
NPU_TILES void MultiplyByTiles(int64_t steps, const uint16_t* a, const uint16_t* b, int row_blocks, int col_blocks,
                               float* c, int64_t ldc, bool add) {
  const bool low = row_blocks == 2, right = col_blocks == 2;
  const int64_t stride = ldc * 4;
  float* c_low = c + 16 * ldc;
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  if (add) {
    _tile_loadd(0, c, stride);
    if (right) _tile_loadd(1, c + 16, stride);
    if (low) _tile_loadd(2, c_low, stride);
    if (low && right) _tile_loadd(3, c_low + 16, stride);
  }
  if (low && right) {
    for (int64_t s = 0; s < steps; ++s, a += kPairStep, b += kPairStep) {
      _tile_loadd(4, a, 64);
      _tile_loadd(6, b, 64);
      _tile_loadd(7, b + kBlock, 64);
      _tile_dpbf16ps(0, 4, 6);
      _tile_dpbf16ps(1, 4, 7);
      _tile_loadd(5, a + kBlock, 64);
      _tile_dpbf16ps(2, 5, 6);
      _tile_dpbf16ps(3, 5, 7);
    }
  } else {
    for (int64_t s = 0; s < steps; ++s, a += kPairStep, b += kPairStep) {
      _tile_loadd(4, a, 64);
      _tile_loadd(6, b, 64);
      _tile_dpbf16ps(0, 4, 6);
      if (right) {
        _tile_loadd(7, b + kBlock, 64);
        _tile_dpbf16ps(1, 4, 7);
      }
      if (low) {
        _tile_loadd(5, a + kBlock, 64);
        _tile_dpbf16ps(2, 5, 6);
      }
    }
  }
  _tile_stored(0, c, stride);
  if (right) _tile_stored(1, c + 16, stride);
  if (low) _tile_stored(2, c_low, stride);
  if (low && right) _tile_stored(3, c_low + 16, stride);
}

// Nearest even; NaN stays NaN, values below the normal range are kept.
NPU_PAIRS_INLINE __m256i RoundToBf16(__m512 v) {
  const __m512i bits = _mm512_castps_si512(v);
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  const __m512i rounded = _mm512_add_epi32(_mm512_add_epi32(bits, odd), _mm512_set1_epi32(0x7FFF));
  const __mmask16 nan = _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q);
  const __m512i kept = _mm512_mask_or_epi32(rounded, nan, bits, _mm512_set1_epi32(0x400000));
  return _mm512_cvtepi32_epi16(_mm512_srli_epi32(kept, 16));
}

NPU_PAIRS bool Store(const Sink& s, const float* tile, int64_t ldt, int64_t i0, int rows, int64_t j0, int cols) {
  const bool f32 = s.element == Element::kF32;
  if (s.columns.step != 1 || s.columns.run < j0 + cols || s.element == Element::kF16) return false;
  const void* self = nullptr;
  Element self_element = s.self_element;
  int64_t self_row = s.self_row, self_col = s.self_col;
  if (s.beta != 0) {
    self = s.in_place ? s.data : s.self;
    if (s.in_place) self_element = s.element, self_row = s.row, self_col = 1;
    if (self_col != 1 || self_element == Element::kF16) return false;
  }
  const __m512 alpha = _mm512_set1_ps(s.alpha), beta = _mm512_set1_ps(s.beta);
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < cols; j += 16) {
      const auto mask = static_cast<__mmask16>(cols - j >= 16 ? 0xFFFFu : (1u << (cols - j)) - 1);
      __m512 v = _mm512_mul_ps(alpha, _mm512_load_ps(tile + i * ldt + j));
      if (self != nullptr) {
        const int64_t at = (i0 + i) * self_row + j0 + j;
        __m512 add;
        if (self_element == Element::kF32) {
          add = _mm512_maskz_loadu_ps(mask, static_cast<const float*>(self) + at);
        } else {
          const __m256i half = _mm256_maskz_loadu_epi16(mask, static_cast<const uint16_t*>(self) + at);
          add = _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16));
        }
        v = _mm512_fmadd_ps(beta, add, v);
      }
      const int64_t to = (i0 + i) * s.row + j0 + j;
      if (f32) {
        _mm512_mask_storeu_ps(static_cast<float*>(s.data) + to, mask, v);
      } else {
        _mm256_mask_storeu_epi16(static_cast<uint16_t*>(s.data) + to, mask, RoundToBf16(v));
      }
    }
  }
  return true;
}

void Nothing() {}

PairUnit AskHost() {
  constexpr unsigned kPairsBit = 1u << 5, kTilesBits = 1u << 22 | 1u << 24;  // CPUID 7.1 EAX; 7.0 EDX
  constexpr uint64_t kXcr0Vectors = 0xE6, kXcr0Tiles = 3u << 17;
  constexpr int kRequestPermission = 0x1023, kTileData = 18;  // arch_prctl
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid_count(7, 1, &a, &b, &c, &d) == 0 || (a & kPairsBit) == 0) return PairUnit::kNone;
  uint32_t low = 0, high = 0;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  if ((low & kXcr0Vectors) != kXcr0Vectors) return PairUnit::kNone;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0 || (d & kTilesBits) != kTilesBits) return PairUnit::kDot;
  if ((low & kXcr0Tiles) != kXcr0Tiles) return PairUnit::kDot;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0 ? PairUnit::kTiles : PairUnit::kDot;
}

}  // namespace

PairUnit PairUnitOfHost() {
  static const PairUnit unit = AskHost();
  return Kernels().lanes == 16 ? unit : PairUnit::kNone;
}

const PairKernels* PairKernelsOf(PairUnit unit) {
  static const PairKernels dots{Pack<false>, Pack<true>, MultiplyByDots, Store, Nothing, Nothing};
  static const PairKernels tiles{Pack<false>, Pack<true>, MultiplyByTiles, Store, BeginTiles, EndTiles};
  return unit == PairUnit::kTiles ? &tiles : unit == PairUnit::kDot ? &dots : nullptr;
}

}  // namespace npu::gemm

#else

namespace npu::gemm {

PairUnit PairUnitOfHost() { return PairUnit::kNone; }
const PairKernels* PairKernelsOf(PairUnit) { return nullptr; }

}  // namespace npu::gemm

#endif
