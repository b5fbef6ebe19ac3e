// The SIMD side of GEMM as a table of functions, filled once for the best instruction set of the host.
//
// A *panel* is what a micro-kernel reads: `width` rows of A (or columns of B) interleaved along k in f32:
//   panel[k * width + i].
#pragma once

#include <cstdint>

#include "tensor/dtype.h"

namespace npu::gemm {

inline constexpr int kMaxMr = 16;             // rows of the largest register tile of any instruction set
inline constexpr int kSkinnyMr = 8;           // rows of the largest tile that reads B where it lies
inline constexpr int kPanelSlackFloats = 16;  // a panel of A may be written this far past its end

enum class Element : uint8_t { kF32, kF16, kBf16 };
inline constexpr int kElements = 3;

// The rows of A that a tile reads, in a panel or where they lie: element (i, k) at data[i * stride + k * step].
struct Strip {
  const float* data = nullptr;
  int64_t stride = 0, step = 0;
};

struct MicroKernels {
  int mr;         // rows of a register tile
  int nr;         // columns of a register tile: two vectors
  int lanes;      // floats in a vector
  int skinny_mr;  // rows of the largest tile worth using on B where it lies
  int64_t kc;     // terms summed before the tile is stored: nr * kc floats fit in L1

  // c[i * ldc + j] = or += sum over k of a(i, k) * b[k * b_step + j]; indexed [add][rows - 1][width / lanes - 1]. The
  // second vector of a row of c lies `second` floats behind the first.
  using Tile = void (*)(int64_t k, const Strip& a, const float* b, int64_t b_step, float* c, int64_t ldc,
                        int64_t second);
  Tile tile[2][kMaxMr][2];

  // Fills a panel from element (i, k) at src + i * stride_i + k * stride_k. Lanes from count to width become zero when
  // `pad`, otherwise count == width and up to kPanelSlackFloats past the end may be written.
  using Pack = void (*)(const void* src, int64_t stride_i, int64_t stride_k, int count, int width, int64_t k,
                        float* dst);
  Pack pack[kElements];

  // Fills `panels` panels, panel_floats apart, whose `width` rows lie one behind the other with stride 1 along i. Up to
  // kPanelSlackFloats past the end of each may be written.
  void (*pack_many[kElements])(const void* src, int64_t stride_k, int width, int64_t panels, int64_t k, float* dst,
                               int64_t panel_floats);

  // Fills a panel of `width` rows, a multiple of a vector, from f32 rows anywhere: dst[p * width + i] = rows[i][p] for
  // i < count, zero for the others.
  void (*pack_rows)(const float* const* rows, int count, int width, int64_t k, float* dst);

  // Fills a panel whose rows consist of runs: for each p, the runs lie one behind the other, run r being length[r]
  // floats at run[r] + offset[p]. With `overread`, up to a vector behind each run may be read. Writes kPanelSlackFloats
  // past the end at most; the floats of a panel row behind the last run hold anything finite.
  void (*pack_runs)(const float* const* run, const int* length, int runs, const int64_t* offset, bool overread,
                    int width, int64_t k, float* dst);

  // For few rows, B where it lies with unit stride along columns: c[i * ldc + j] += sum a[k * rows + i] * b[k * ldb +
  // j] for `cols` columns. Indexed [element of b][rows - 1].
  using Stream = void (*)(int64_t k, int64_t cols, const float* a, const void* b, int64_t ldb, float* c, int64_t ldc);
  Stream stream[kElements][kSkinnyMr];

  // For few rows, B where it lies with unit stride along k: c[i * ldc + j] += sum a[i * lda + k] * b[j * ldb + k].
  using Dot = void (*)(int64_t k, int64_t cols, const float* a, int64_t lda, const void* b, int64_t ldb, float* c,
                       int64_t ldc);
  Dot dot[kElements][kSkinnyMr];

  // dst[j] = src[j * stride], converted to f32; and back with one rounding to nearest even.
  void (*load_row[kElements])(const void* src, int64_t stride, int64_t n, float* dst);
  void (*store_row[kElements])(const float* src, int64_t n, void* dst, int64_t stride);
};

// The table for the best instruction set this process may use.
const MicroKernels& Kernels();

// Tests only: the table of one Highway target (HWY_AVX2, ...), 0 for the best again.
void UseTarget(int64_t hwy_target);

}  // namespace npu::gemm
