// Products of bf16 by instructions that multiply and sum pairs: AVX512-BF16, or AMX where the system grants its
// registers.
//
// Both operands are packed as they are, without becoming f32. A panel is 32 rows of A (columns of B); k is cut into
// steps of 32 terms, padded with zeros. One step of a panel is two blocks of 16 rows, each 1 KiB:
//   A: block[i * 32 + q]                    (i < 16 rows, q < 32 terms)
//   B: block[q / 2 * 32 + i * 2 + q % 2]    (pairs of terms lie together)
// Products are exact, sums are f32. The order of sums differs from that of the f32 tiles, and bf16 or f32 values below
// the normal range count as zero, so results are not those of other instruction sets bit by bit; they do not depend on
// the number of workers.
#pragma once

#include <cstdint>

#include "kernels/gemm/blocked.h"

namespace npu::gemm {

inline constexpr int kPairRows = 32;                          // rows or columns of a panel
inline constexpr int64_t kPairTerms = 32;                     // terms of a step
inline constexpr int64_t kPairStep = kPairRows * kPairTerms;  // elements of a panel's step

// Element (i, q) of an operand lies at data + i * stride_i + q * stride_k.
struct PairOperand {
  const uint16_t* data;
  int64_t stride_i, stride_k;
};

struct PairKernels {
  // Fills one block (16 rows or columns, of which `count` exist) of every step for terms [0, k).
  using Pack = void (*)(const PairOperand& from, int count, int64_t k, uint16_t* dst);
  Pack pack_a, pack_b;
  // c = or += a product of `steps` steps, 16 * row_blocks rows times 16 * col_blocks columns, ldc floats apart.
  void (*multiply)(int64_t steps, const uint16_t* a, const uint16_t* b, int row_blocks, int col_blocks, float* c,
                   int64_t ldc, bool add);
  // Writes a tile through a sink whose columns lie side by side; false when Finish must do it.
  bool (*store)(const Sink& sink, const float* tile, int64_t ldt, int64_t i0, int rows, int64_t j0, int cols);
  void (*begin)();  // around the calls of multiply of one task
  void (*end)();
};

enum class PairUnit : uint8_t { kNone, kDot, kTiles };
// What this process may use; kNone where the table of MicroKernels was restricted below AVX-512.
PairUnit PairUnitOfHost();
// Null for kNone.
const PairKernels* PairKernelsOf(PairUnit unit);
// Tests only: no better unit than this.
void LimitPairUnit(PairUnit unit);

// True when this path is the quicker one for bf16 operands.
bool IsForPairs(int64_t m, int64_t n, int64_t k);
Status Pairs(Parallel& parallel, int64_t m, int64_t n, int64_t k, const PairOperand& a, const PairOperand& b,
             const Sink& sink);

}  // namespace npu::gemm
