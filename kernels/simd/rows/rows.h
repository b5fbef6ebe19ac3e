// Arithmetic on dense rows of one compute type (f32 or f64), chosen once for the instruction set of the machine.
//
//   const RowTable<float>& row = Rows<float>();
//   const float top = row.fold[kMax](x, n, 0);
//   const float sum = row.exp_sub(x, top, y, n);        // y = exp(x - top)
//   row.scale(y, 1 / sum, y, n);
//
// Everything that works on tensors of floats is written in terms of these; other element types and strides pass through
// rows/convert.h. `out` may be equal to an input. Nothing is read or written past n elements. Sums run in a few vector
// accumulators in the compute type: callers bound n (kChunk) and add up pieces in double.
#pragma once

#include <cstdint>

namespace npu::simd {

// out = Combine over i of Map(x[i], c). Maximum and minimum are NaN if any element is.
enum Fold : uint8_t {
  kSum,          // x
  kSumSquare,    // x²
  kSumAbs,       // |x|
  kSumCentered,  // (x − c)²
  kSumExp,       // exp(x − c)
  kNanSum,       // x, NaN counting as 0
  kNonZero,      // number of elements that are not zero, NaN included
  kNotNan,       // number of elements that are not NaN
  kProd,
  kMax,
  kMin,
  kMaxAbs,
  kMinAbs,
  kFolds
};

// Also for i64, where sums and products wrap.
template <class T>
struct FoldTable {
  T (*fold[kFolds])(const T* x, int64_t n, T c);
  // acc[i] = Combine(acc[i], Map(x[i], c[i])); c may be null where Map has no c.
  void (*fold_into[kFolds])(T* acc, const T* x, const T* c, int64_t n);
  // Index of the first element equal to v, or first NaN when v is NaN; n when there is none.
  int64_t (*find)(const T* x, T v, int64_t n);
};

template <class T>
struct RowTable : FoldTable<T> {
  T (*dot)(const T* x, const T* y, int64_t n);                        // Σ x·y
  T (*dot_centered)(const T* x, const T* y, T c, int64_t n);          // Σ x·(y − c)
  void (*dot_centered_into)(T* acc, const T* x, const T* y, const T* c, int64_t n);  // acc += x·(y − c)

  T (*exp_sub)(const T* x, T c, T* out, int64_t n);                   // out = exp(x − c), returns Σ out
  void (*scale)(const T* x, T k, T* out, int64_t n);                  // x·k
  void (*shift)(const T* x, T c, T* out, int64_t n);                  // x − c
  void (*affine)(const T* x, T a, T b, T* out, int64_t n);            // x·a + b
  void (*affine_cols)(const T* x, const T* a, const T* b, T* out, int64_t n);  // x·a[i] + b[i]
  void (*mul)(const T* x, const T* y, T* out, int64_t n);
  void (*add)(const T* x, const T* y, T* out, int64_t n);
  void (*axpy)(const T* x, T a, const T* y, T* out, int64_t n);       // a·x + y
  void (*mix)(const T* g, T a, const T* x, T b, T c, T* out, int64_t n);       // a·g + b·x + c
  void (*mix_cols)(const T* g, const T* a, const T* x, const T* b, const T* c, T* out, int64_t n);

  // (x − mean)·rstd·w + b; w and b may be null.
  void (*normalize)(const T* x, T mean, T rstd, const T* w, const T* b, T* out, int64_t n);
  // With h = (x − mean)·rstd and gw = g·w: sums[0] = Σ gw, sums[1] = Σ gw·h; dw += g·h, db += g. w, dw, db may be null.
  void (*normalize_sums)(const T* g, const T* x, T mean, T rstd, const T* w, T* dw, T* db, T sums[2], int64_t n);
  // out = rstd·(g·w − a − h·b)
  void (*normalize_grad)(const T* g, const T* x, T mean, T rstd, const T* w, T a, T b, T* out, int64_t n);

  void (*softmax_grad)(const T* g, const T* y, T dot, T* out, int64_t n);      // (g − dot)·y
  void (*log_softmax_grad)(const T* g, const T* y, T sum, T* out, int64_t n);  // g − exp(y)·sum
};

template <class T>
const RowTable<T>& Rows();
template <>
const RowTable<float>& Rows<float>();
template <>
const RowTable<double>& Rows<double>();

// Rows<T>() for floats, and the table of plain loops for i64.
template <class T>
const FoldTable<T>& Folds() { return Rows<T>(); }
template <>
const FoldTable<int64_t>& Folds<int64_t>();

}  // namespace npu::simd
