#include "kernels/attention/blocks.h"

#include <limits>

#include "kernels/gemm/micro.h"

namespace npu::attention {
namespace {

size_t ElementIndex(DType t) {
  const auto e = t == DType::f32 ? gemm::Element::kF32 : t == DType::f16 ? gemm::Element::kF16 : gemm::Element::kBf16;
  return static_cast<size_t>(e);
}

int64_t Saturated(int64_t a, int64_t b) {
  int64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum))
    return b > 0 ? std::numeric_limits<int64_t>::max() : std::numeric_limits<int64_t>::min();
  return sum;
}

}  // namespace

Matrix At(const Heads& h, int64_t item, int64_t head, int64_t row) {
  const int64_t at = item * h.batch + head * h.head + row * h.row;
  return {static_cast<char*>(h.data) + at * ItemSize(h.dtype), h.dtype, h.row, h.col};
}

Status Multiply(const Matrix& a, const Matrix& b, const Matrix& c, int64_t m, int64_t n, int64_t k, bool add) {
  gemm::Problem p{.m = m, .n = n, .k = k};
  p.a = {a.data, a.dtype, a.row, a.col, {}};
  p.b = {b.data, b.dtype, b.row, b.col, {}};
  p.c = {c.data, c.dtype, c.row, c.col, {}};
  if (add) {
    p.self = p.c;
    p.beta = 1;
  }
  SerialParallel serial;
  return gemm::Gemm(serial, p);
}

void LoadRow(const Matrix& m, int64_t row, int64_t n, float* dst) {
  gemm::Kernels().load_row[ElementIndex(m.dtype)](m.data + row * m.row * ItemSize(m.dtype), m.col, n, dst);
}

void StoreRow(const Matrix& m, int64_t row, int64_t n, const float* src) {
  gemm::Kernels().store_row[ElementIndex(m.dtype)](src, n, m.data + row * m.row * ItemSize(m.dtype), m.col);
}

Visible VisibleColumns(const Shape& s, const Item& item, int64_t row) {
  const int64_t diagonal = row + (s.lower_right ? item.k_rows - item.q_rows : 0);
  const int64_t begin = s.before == INT64_MAX ? 0 : Saturated(diagonal, -s.before);
  const int64_t last = s.after == INT64_MAX ? item.k_rows - 1 : Saturated(diagonal, s.after);
  const int64_t end = std::clamp<int64_t>(last < item.k_rows ? last + 1 : item.k_rows, 0, item.k_rows);
  return {std::clamp<int64_t>(begin, 0, end), end};
}

Visible VisibleColumns(const Shape& s, const Item& item, int64_t row, int64_t rows) {
  const Visible first = VisibleColumns(s, item, row), last = VisibleColumns(s, item, row + rows - 1);
  return {std::min(first.begin, last.begin), last.end};
}

float ScoreRow(const Shape& s, int64_t item, int64_t head, int64_t row, int64_t begin, int64_t n, float* scores,
               float* bias) {
  const RowKernels& kernels = Rows();
  const Item& sizes = s.items[static_cast<size_t>(item)];
  const float scale = static_cast<float>(s.scale);
  const float* added = nullptr;
  if (s.bias.data != nullptr) {
    Matrix m = At(s.bias, item, head, row);
    m.data += begin * m.col * ItemSize(m.dtype);
    LoadRow(m, 0, n, bias);
    added = bias;
  }
  const uint8_t* mask = nullptr;
  if (s.mask.data != nullptr)
    mask = static_cast<const uint8_t*>(s.mask.data) + item * s.mask.batch + head * s.mask.head + row * s.mask.row +
           begin * s.mask.col;
  const Visible visible = VisibleColumns(s, sizes, row);
  const int64_t from = std::clamp<int64_t>(visible.begin - begin, 0, n),
                to = std::clamp<int64_t>(visible.end - begin, from, n);
  std::fill(scores, scores + from, -std::numeric_limits<float>::infinity());
  std::fill(scores + to, scores + n, -std::numeric_limits<float>::infinity());
  if (from == to) return -std::numeric_limits<float>::infinity();
  return kernels.score(scores + from, to - from, scale, added != nullptr ? added + from : nullptr,
                       s.scale_after_bias ? scale : 1.0f, mask != nullptr ? mask + from * s.mask.col : nullptr,
                       s.mask.col);
}

void DropRow(const Shape& s, int64_t item, int64_t head, int64_t row, int64_t begin, int64_t n, float* weights) {
  if (s.drop == nullptr) return;
  const Item& sizes = s.items[static_cast<size_t>(item)];
  const float kept = static_cast<float>(1.0 / s.keep);
  const int64_t bit = sizes.drop_bit + (head * sizes.q_rows + row) * sizes.k_rows + begin;
  for (int64_t j = 0; j < n; ++j) {
    const int64_t at = bit + j;
    weights[j] = (s.drop[at / 8] >> (at % 8) & 1) != 0 ? weights[j] * kept : 0.0f;
  }
}

}  // namespace npu::attention
