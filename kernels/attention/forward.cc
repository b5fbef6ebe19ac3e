#include <atomic>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/attention/blocks.h"
#include "kernels/gemm/scratch.h"

namespace npu::attention {
namespace {

constexpr float kNone = -std::numeric_limits<float>::infinity();

struct Task {
  int64_t item, head, row, rows;
};

// A block of rows of q against all of k and v. Between blocks of keys the sums are kept relative to the largest score
// seen so far.
Status QueryBlock(const Shape& s, const Heads& q, const Heads& k, const Heads& v, const Heads& out, const Stats& stats,
                  const Task& t) {
  const Item& item = s.items[static_cast<size_t>(t.item)];
  const RowKernels& kernels = Rows();
  const int64_t kv_head = t.head / (s.heads / s.kv_heads);
  const Visible visible = VisibleColumns(s, item, t.row, t.rows);
  const int64_t width = std::min(kKeyRows, std::max<int64_t>(1, visible.end - visible.begin));
  gemm::Scratch scratch(static_cast<size_t>(t.rows * (width + s.value_dim) + width) * sizeof(float));
  if (!scratch) return gemm::NoScratch();
  float* scores = scratch.As();
  float* sums = scores + t.rows * width;
  float* bias = sums + t.rows * s.value_dim;
  std::fill_n(sums, t.rows * s.value_dim, 0.0f);
  float largest[kQueryRows], total[kQueryRows];
  const float sink = s.sink != nullptr ? s.sink[t.head] : kNone;
  std::fill_n(largest, t.rows, sink);
  std::fill_n(total, t.rows, sink == kNone ? 0.0f : 1.0f);

  const Matrix rows = At(q, t.item, t.head, item.q_begin + t.row);
  for (int64_t begin = visible.begin; begin < visible.end; begin += width) {
    const int64_t n = std::min(width, visible.end - begin);
    NPU_TRY(Multiply(rows, Transposed(At(k, t.item, kv_head, item.k_begin + begin)), OfScratch(scores, width), t.rows,
                     n, s.dim, false));
    for (int64_t i = 0; i < t.rows; ++i) {
      float* row = scores + i * width;
      const float best = ScoreRow(s, t.item, t.head, t.row + i, begin, n, row, bias);
      const float before = largest[i];
      const float now = best > before || best != best ? best : before;
      if (now == kNone) {  // nothing visible yet
        std::fill_n(row, n, 0.0f);
        continue;
      }
      const float sum = kernels.exponent(row, n, now);
      if (before != now) {
        const float shrink = before == kNone ? 0.0f : std::exp(before - now);
        total[i] *= shrink;
        kernels.scale(sums + i * s.value_dim, s.value_dim, shrink);
        largest[i] = now;
      }
      total[i] += sum;
      DropRow(s, t.item, t.head, t.row + i, begin, n, row);
    }
    NPU_TRY(Multiply(OfScratch(scores, width), At(v, t.item, kv_head, item.k_begin + begin),
                     OfScratch(sums, s.value_dim), t.rows, s.value_dim, n, true));
  }
  const Matrix result = At(out, t.item, t.head, item.q_begin + t.row);
  for (int64_t i = 0; i < t.rows; ++i) {
    float* row = sums + i * s.value_dim;
    if (total[i] != 0) kernels.scale(row, s.value_dim, 1.0f / total[i]);
    StoreRow(result, i, s.value_dim, row);
    for (const auto& [heads, value] : {std::pair{&stats.max, largest[i]}, {&stats.sum, total[i]}}) {
      if (heads->data == nullptr) continue;
      const Matrix m = At(*heads, t.item, t.head, item.q_begin + t.row + i);
      for (int64_t r = 0; r < stats.repeat; ++r) reinterpret_cast<float*>(m.data)[r * m.col] = value;
    }
  }
  return {};
}

}  // namespace

Status Forward(Parallel& parallel, const Shape& s, const Heads& q, const Heads& k, const Heads& v, const Heads& out,
               const Stats& stats) {
  // Blocks of all items and heads in one row of tasks, numbered by item.
  std::vector<int64_t> first{0};
  for (const Item& item : s.items)
    first.push_back(first.back() + (item.q_rows + QueryRows(s, item) - 1) / QueryRows(s, item) * s.heads);
  std::atomic<bool> ok{true};
  parallel.For(first.back(), 1, [&](int64_t begin, int64_t end) {
    for (int64_t x = begin; x < end; ++x) {
      const int64_t item = std::upper_bound(first.begin(), first.end(), x) - first.begin() - 1;
      const Item& sizes = s.items[static_cast<size_t>(item)];
      const int64_t together = QueryRows(s, sizes), blocks = (sizes.q_rows + together - 1) / together;
      const int64_t in_item = x - first[static_cast<size_t>(item)];
      const int64_t row = in_item % blocks * together;
      const Task task{item, in_item / blocks, row, std::min(together, sizes.q_rows - row)};
      if (!QueryBlock(s, q, k, v, out, stats, task).ok()) ok.store(false, std::memory_order_relaxed);
    }
  });
  return ok.load(std::memory_order_relaxed) ? Status() : gemm::NoScratch();
}

}  // namespace npu::attention
