// Reductions of strided tensors over any set of dimensions.
//
//   Sum(x, Dims(1) | Dims(2), out, parallel);
//
// `dims` has bit d set when dimension d is reduced; `out` has the remaining dimensions, with or without the reduced ones as
// size 1. f16, bf16 and f32 are added up in f32 within a chunk and in f64 between chunks, and rounded once; integers are
// exact (64 bit, wrapping). The result does not depend on the number of workers: work is cut by shape alone and pieces
// are combined in order. Nothing to reduce gives the identity: 0, 1, NaN for a mean, false and true for any and all; the
// caller refuses what has none (maximum of nothing).
#pragma once

#include <cstdint>

#include "base/task/parallel.h"
#include "kernels/simd/rows/rows.h"
#include "tensor/tensor.h"

namespace npu::simd {

constexpr uint32_t Dims(int d) { return 1u << d; }

// Elements are converted to out's type before they are combined, as torch does, where that can be seen: halves and bool.
bool ConvertsFirst(DType from, DType to);

void Sum(const Tensor& x, uint32_t dims, const Tensor& out, Parallel& parallel);
void NanSum(const Tensor& x, uint32_t dims, const Tensor& out, Parallel& parallel);
void Mean(const Tensor& x, uint32_t dims, const Tensor& out, Parallel& parallel);
void Prod(const Tensor& x, uint32_t dims, const Tensor& out, Parallel& parallel);
void Max(const Tensor& x, uint32_t dims, const Tensor& out, Parallel& parallel);
void Min(const Tensor& x, uint32_t dims, const Tensor& out, Parallel& parallel);
void Any(const Tensor& x, uint32_t dims, const Tensor& out, Parallel& parallel);
void All(const Tensor& x, uint32_t dims, const Tensor& out, Parallel& parallel);
void CountNonZero(const Tensor& x, uint32_t dims, const Tensor& out, Parallel& parallel);
// (Σ|x|^p)^(1/p); p = 0 counts what is not zero, ±inf are largest and smallest absolute value.
void Norm(const Tensor& x, uint32_t dims, double p, const Tensor& out, Parallel& parallel);
// log Σ exp(x), safe against overflow.
void LogSumExp(const Tensor& x, uint32_t dims, const Tensor& out, Parallel& parallel);
// Variance with n − correction in the denominator, two passes. `var` and `mean` may be null; `root` gives the deviation.
void Variance(const Tensor& x, uint32_t dims, double correction, bool root, const Tensor* var, const Tensor* mean,
              Parallel& parallel);

// Largest or smallest element along one dimension and where it is first; NaN wins. `values` and `indices` may be null.
void Extreme(const Tensor& x, int dim, bool largest, const Tensor* values, const Tensor* indices, Parallel& parallel);

// The engine: acc[k] for each kept position in row-major order, accumulated in f64 (i64 for C = int64_t). `centers` has one
// value for each kept position, or is null (0).
template <class C>
struct AccumulatorOf { using Type = double; };
template <>
struct AccumulatorOf<int64_t> { using Type = int64_t; };
template <class C>
void FoldTo(const Tensor& x, uint32_t dims, Fold fold, const typename AccumulatorOf<C>::Type* centers,
            typename AccumulatorOf<C>::Type* acc, Parallel& parallel);

int64_t KeptCount(const Tensor& x, uint32_t dims);
int64_t ReducedCount(const Tensor& x, uint32_t dims);

}  // namespace npu::simd
