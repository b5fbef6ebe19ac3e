// Scaled dot product attention and its gradient, block by block: scores never exist as a whole.
//
//   attention::Shape s{...};   q, k, v, out by strides, so every layout ([b, n, s, d], [b, s, h], [t, n, d] …) is the
//   same NPU_TRY(attention::Forward(parallel, s, q, k, v, out, stats));
//
// score = scale * (q k^T + bias) or scale * q k^T + bias; masked scores count as minus infinity; a row without any
// score left gives zeros. Products and sums are f32 and do not depend on the number of workers.
#pragma once

#include <cstdint>
#include <span>

#include "base/status/status.h"
#include "base/task/parallel.h"
#include "tensor/dtype.h"

namespace npu::attention {

// Element (batch, head, row, column) of a tensor; strides in elements, 0 where it is broadcast.
struct Heads {
  void* data = nullptr;
  DType dtype = DType::none;
  int64_t batch = 0, head = 0, row = 0, col = 0;
};

// One batch item: rows of q and of k, v from the beginning of the item (of the tensor when items are packed one behind
// the other and `batch` strides are 0).
struct Item {
  int64_t q_begin = 0, q_rows = 0, k_begin = 0, k_rows = 0;
  int64_t drop_bit = 0;  // where the item's bits begin in the dropout mask
};

struct Shape {
  std::span<const Item> items;
  int64_t heads = 0, kv_heads = 0;  // heads is a multiple of kv_heads
  int64_t dim = 0, value_dim = 0;   // columns of q and k, and of v

  double scale = 1;
  Heads mask{};  // b8, u8 or i8, not zero: masked
  Heads bias{};  // f32, f16 or bf16
  bool scale_after_bias = true;
  const float* sink = nullptr;  // of each head: a score that only takes weight away

  // Row i sees columns from i + offset - before to i + offset + after, where offset is k_rows - q_rows when the
  // diagonal ends in the lower right corner, and 0 when it begins in the upper left one.
  int64_t before = INT64_MAX, after = INT64_MAX;
  bool lower_right = false;

  // Bits of kept weights, [item][head][row][column], lowest bit first; null: all kept.
  const uint8_t* drop = nullptr;
  double keep = 1;
};

// What the gradient needs of the forward pass: of every row the largest score and the sum of exponentials, each written
// `repeat` times along columns. Data null: not wanted.
struct Stats {
  Heads max{}, sum{};
  int64_t repeat = 8;
};

Status Forward(Parallel& parallel, const Shape& shape, const Heads& q, const Heads& k, const Heads& v, const Heads& out,
               const Stats& stats);

struct Gradients {
  Heads dq{}, dk{}, dv{};
  Heads dbias{};  // f32, of every score, 0 where nothing is written; data null: not wanted
};
Status Backward(Parallel& parallel, const Shape& shape, const Heads& q, const Heads& k, const Heads& v,
                const Heads& out, const Stats& stats, const Heads& dout, const Gradients& gradients);

}  // namespace npu::attention
