#include <atomic>
#include <cmath>

#include "kernels/attention/blocks.h"
#include "kernels/gemm/scratch.h"

namespace npu::attention {
namespace {

// One head of k and v of one item with all heads of q that share it: dk and dv are summed in one place.
Status KeyHead(const Shape& s, const Heads& q, const Heads& k, const Heads& v, const Heads& out, const Stats& stats,
               const Heads& dout, const Gradients& g, int64_t index, int64_t kv_head) {
  const Item& item = s.items[static_cast<size_t>(index)];
  const RowKernels& kernels = Rows();
  const int64_t shared = s.heads / s.kv_heads;
  const int64_t together = QueryRows(s, item), rows = std::min(together, std::max<int64_t>(1, item.q_rows)),
                width = std::min(kKeyRows, std::max<int64_t>(1, item.k_rows));
  const int64_t widest = std::max(s.dim, s.value_dim);
  const int64_t floats = item.k_rows * (s.dim + s.value_dim) + 2 * rows * width + rows * s.dim + width + 2 * widest;
  gemm::Scratch scratch(static_cast<size_t>(floats) * sizeof(float));
  if (!scratch) return gemm::NoScratch();
  float* dk = scratch.As();
  float* dv = dk + item.k_rows * s.dim;
  float* p = dv + item.k_rows * s.value_dim;
  float* ds = p + rows * width;
  float* dq = ds + rows * width;
  float* bias = dq + rows * s.dim;
  float* a = bias + width;
  float* b = a + widest;
  std::fill_n(dk, item.k_rows * (s.dim + s.value_dim), 0.0f);
  float delta[kQueryRows], largest[kQueryRows], inverse[kQueryRows];

  for (int64_t head = kv_head * shared; head < (kv_head + 1) * shared; ++head) {
    for (int64_t row = 0; row < item.q_rows; row += together) {
      const int64_t m = std::min(together, item.q_rows - row);
      const int64_t at = item.q_begin + row;
      const Matrix mq = At(q, index, head, at), mout = At(out, index, head, at), mdout = At(dout, index, head, at);
      for (int64_t i = 0; i < m; ++i) {
        LoadRow(mout, i, s.value_dim, a);
        LoadRow(mdout, i, s.value_dim, b);
        delta[i] = kernels.dot(a, b, s.value_dim);
        largest[i] = *reinterpret_cast<const float*>(At(stats.max, index, head, at + i).data);
        const float sum = *reinterpret_cast<const float*>(At(stats.sum, index, head, at + i).data);
        inverse[i] = sum == 0 ? 0.0f : 1.0f / sum;
      }
      std::fill_n(dq, m * s.dim, 0.0f);
      const Visible visible = VisibleColumns(s, item, row, m);
      for (int64_t begin = visible.begin; begin < visible.end; begin += width) {
        const int64_t n = std::min(width, visible.end - begin);
        const Matrix mk = At(k, index, kv_head, item.k_begin + begin), mv = At(v, index, kv_head, item.k_begin + begin);
        NPU_TRY(Multiply(mq, Transposed(mk), OfScratch(p, width), m, n, s.dim, false));
        NPU_TRY(Multiply(mdout, Transposed(mv), OfScratch(ds, width), m, n, s.value_dim, false));
        for (int64_t i = 0; i < m; ++i) {
          float* weights = p + i * width;
          float* gradient = ds + i * width;
          if (inverse[i] == 0) {
            std::fill_n(weights, n, 0.0f);
            std::fill_n(gradient, n, 0.0f);
            continue;
          }
          ScoreRow(s, index, head, row + i, begin, n, weights, bias);
          kernels.exponent(weights, n, largest[i]);
          kernels.scale(weights, n, inverse[i]);
          DropRow(s, index, head, row + i, begin, n, gradient);
          kernels.gradient(gradient, weights, n, delta[i], static_cast<float>(s.scale));
          if (g.dbias.data != nullptr) {
            const Matrix to = At(g.dbias, index, head, row + i);
            const float back = s.scale_after_bias ? 1.0f : static_cast<float>(1 / s.scale);
            for (int64_t j = 0; j < n; ++j) reinterpret_cast<float*>(to.data)[(begin + j) * to.col] = gradient[j] * back;
          }
          DropRow(s, index, head, row + i, begin, n, weights);
        }
        NPU_TRY(Multiply(Transposed(OfScratch(p, width)), mdout, OfScratch(dv + begin * s.value_dim, s.value_dim), n,
                         s.value_dim, m, true));
        NPU_TRY(
            Multiply(Transposed(OfScratch(ds, width)), mq, OfScratch(dk + begin * s.dim, s.dim), n, s.dim, m, true));
        NPU_TRY(Multiply(OfScratch(ds, width), mk, OfScratch(dq, s.dim), m, s.dim, n, true));
      }
      const Matrix to = At(g.dq, index, head, at);
      for (int64_t i = 0; i < m; ++i) StoreRow(to, i, s.dim, dq + i * s.dim);
    }
  }
  const Matrix to_k = At(g.dk, index, kv_head, item.k_begin), to_v = At(g.dv, index, kv_head, item.k_begin);
  for (int64_t j = 0; j < item.k_rows; ++j) {
    StoreRow(to_k, j, s.dim, dk + j * s.dim);
    StoreRow(to_v, j, s.value_dim, dv + j * s.value_dim);
  }
  return {};
}

}  // namespace

Status Backward(Parallel& parallel, const Shape& s, const Heads& q, const Heads& k, const Heads& v, const Heads& out,
                const Stats& stats, const Heads& dout, const Gradients& g) {
  std::atomic<bool> ok{true};
  parallel.For(static_cast<int64_t>(s.items.size()) * s.kv_heads, 1, [&](int64_t begin, int64_t end) {
    for (int64_t x = begin; x < end; ++x) {
      if (!KeyHead(s, q, k, v, out, stats, dout, g, x / s.kv_heads, x % s.kv_heads).ok())
        ok.store(false, std::memory_order_relaxed);
    }
  });
  return ok.load(std::memory_order_relaxed) ? Status() : gemm::NoScratch();
}

}  // namespace npu::attention
