#include "kernels/gemm/skinny.h"

#include <algorithm>
#include <atomic>

#include "kernels/gemm/scratch.h"

namespace npu::gemm {
namespace {

constexpr int64_t kStreamTerms = 256;        // rows of B walked before the next columns: their pages stay in the TLB
constexpr int64_t kDotTerms = 1024;          // 8 rows of A of this length fit in L1
constexpr int64_t kColumnStep = 128;         // tasks begin at multiples of this
constexpr int64_t kSerialBytes = 192 << 10;  // of B; below this one thread is quicker

const char* At(const SkinnyB& b, int64_t j, int64_t k) {
  return static_cast<const char*>(b.data) + (j * b.stride_j + k * b.stride_k) * SizeOf(b.element);
}

// Rows of A for one group of rows: interleaved panels for Stream, each row for itself for Dot.
struct Rows {
  int64_t begin;
  int count;
};

Rows Group(int64_t m, int64_t groups, int64_t g) {
  const int64_t begin = m * g / groups;
  return {begin, static_cast<int>(m * (g + 1) / groups - begin)};
}

}  // namespace

bool IsSkinny(int64_t m, int64_t n, int64_t k, const SkinnyB& b) {
  if (m > kSkinnyRows || k < 1 || n < 1) return false;
  if (b.stride_j == 1) return true;
  return b.stride_k == 1 && k >= Kernels().lanes;
}

Status Skinny(Parallel& parallel, int64_t m, int64_t n, int64_t k, const PanelSource& a, const SkinnyB& b,
              const Sink& sink) {
  const MicroKernels& t = Kernels();
  const bool stream = b.stride_j == 1;
  const int64_t groups = CeilDiv(m, t.skinny_mr);
  const int64_t lda = k;

  // A is small: packed once, whole. A panel one wide is a row.
  Scratch packed(static_cast<size_t>(m * k + m * kPanelSlackFloats) * sizeof(float));
  if (!packed) return NoScratch();
  float* pa = packed.As();
  for (int64_t g = 0; g < groups; ++g) {
    const Rows rows = Group(m, groups, g);
    if (stream) {
      a.Pack(rows.begin, rows.count, rows.count, 0, k, pa + rows.begin * k);
    } else {
      for (int i = 0; i < rows.count; ++i) a.Pack(rows.begin + i, 1, 1, 0, k, pa + (rows.begin + i) * k);
    }
  }

  const auto e = static_cast<size_t>(b.element);
  std::atomic<bool> ok{true};
  auto columns = [&](int64_t begin, int64_t end) {
    const int64_t cols = end - begin;
    const int64_t ld = CeilDiv(cols, 16) * 16;
    Scratch sums(static_cast<size_t>(m * ld) * sizeof(float));
    if (!sums) return ok.store(false, std::memory_order_relaxed);
    float* c = sums.As();
    std::fill_n(c, m * ld, 0.0f);
    const int64_t step = stream ? kStreamTerms : kDotTerms;
    for (int64_t p = 0; p < k; p += step) {
      const int64_t terms = std::min(step, k - p);
      for (int64_t g = 0; g < groups; ++g) {
        const Rows rows = Group(m, groups, g);
        const auto r = static_cast<size_t>(rows.count - 1);
        float* to = c + rows.begin * ld;
        if (stream) {
          t.stream[e][r](terms, cols, pa + rows.begin * k + p * rows.count, At(b, begin, p), b.stride_k, to, ld);
        } else {
          t.dot[e][r](terms, cols, pa + rows.begin * k + p, lda, At(b, begin, p), b.stride_j, to, ld);
        }
      }
    }
    for (int64_t j = 0; j < cols; j += 64) {
      Finish(sink, c + j, ld, 0, static_cast<int>(m), begin + j, static_cast<int>(std::min<int64_t>(64, cols - j)),
             true, true, nullptr, 0);
    }
  };

  const int64_t bytes = n * k * SizeOf(b.element);
  const int64_t rounds = n >= 4096 ? 4 : 1;
  int64_t parts = bytes < kSerialBytes ? 1 : rounds * parallel.Workers();
  parts = std::clamp<int64_t>(parts, 1, CeilDiv(n, kColumnStep));
  const int64_t grain = CeilDiv(CeilDiv(n, parts), kColumnStep) * kColumnStep;
  parallel.For(n, parts == 1 ? n : grain, columns);
  return ok.load(std::memory_order_relaxed) ? Status() : NoScratch();
}

}  // namespace npu::gemm
