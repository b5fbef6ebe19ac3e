// The pieces of attention that forward and backward share: blocks of scores of one head.
#pragma once

#include <algorithm>

#include "kernels/attention/attention.h"
#include "kernels/attention/rows.h"
#include "kernels/gemm/gemm.h"

namespace npu::attention {

inline constexpr int64_t kQueryRows = 128;  // rows of q handled together, at most
inline constexpr int64_t kKeyRows = 1024;   // rows of k, v handled together

// Rows of q of an item that are handled together. Below the diagonal few rows leave out more of what nobody sees; with
// many rows of k, which are packed anew for each block of q, that costs more than it saves.
inline int64_t QueryRows(const Shape& s, const Item& item) {
  constexpr int64_t kShortRows = 512;
  return s.after != INT64_MAX && item.k_rows <= kShortRows ? kQueryRows / 2 : kQueryRows;
}

// A matrix of one head: rows from `row` of item `item`.
struct Matrix {
  char* data = nullptr;
  DType dtype = DType::none;
  int64_t row = 0, col = 0;
};
Matrix At(const Heads& h, int64_t item, int64_t head, int64_t row);
inline Matrix OfScratch(float* data, int64_t row) { return {reinterpret_cast<char*>(data), DType::f32, row, 1}; }
inline Matrix Transposed(const Matrix& m) { return {m.data, m.dtype, m.col, m.row}; }

// c = a b (+ c when `add`), on the calling thread.
Status Multiply(const Matrix& a, const Matrix& b, const Matrix& c, int64_t m, int64_t n, int64_t k, bool add);

// Reads n elements of a row as f32.
void LoadRow(const Matrix& m, int64_t row, int64_t n, float* dst);
void StoreRow(const Matrix& m, int64_t row, int64_t n, const float* src);

// Columns that row i of an item may see: [begin, end).
struct Visible {
  int64_t begin, end;
};
Visible VisibleColumns(const Shape& s, const Item& item, int64_t row);
// Columns that any of the rows may see.
Visible VisibleColumns(const Shape& s, const Item& item, int64_t row, int64_t rows);

// Turns products q k^T of columns [begin, begin + n) into scores; returns the largest of the row.
float ScoreRow(const Shape& s, int64_t item, int64_t head, int64_t row, int64_t begin, int64_t n, float* scores,
               float* bias);

// Sets dropped weights to 0 and divides the others by keep.
void DropRow(const Shape& s, int64_t item, int64_t head, int64_t row, int64_t begin, int64_t n, float* weights);

}  // namespace npu::attention
