#include "kernels/gemm/pairs.h"

#include <algorithm>
#include <atomic>

#include "kernels/gemm/scratch.h"

namespace npu::gemm {
namespace {

constexpr int64_t kMaxTerms = 4096;             // terms of one pass: panels of both operands stay in L2
constexpr int64_t kRowBytesInL2 = 512 << 10;    // panels of A that one task goes through for each panel of B
constexpr double kSerialFlops = 8.0e6;          // below this sharing costs more than it brings
constexpr int64_t kTasksEach = 4;               // tasks a worker, so that a late one costs little
constexpr int64_t kPackGrain = 64 << 10;        // elements of a task that packs

std::atomic<PairUnit> limit{PairUnit::kTiles};

const PairKernels* Chosen() { return PairKernelsOf(std::min(PairUnitOfHost(), limit.load(std::memory_order_relaxed))); }

struct Product {
  const PairKernels& t;
  int64_t m, n;
  const Sink& sink;
  const uint16_t* a = nullptr;  // packed terms of this pass
  const uint16_t* b = nullptr;
  int64_t steps = 0;
  bool first = true, last = true;
  float* partial = nullptr;  // a tile for each pair of panels, between passes

  int64_t RowPanels() const { return CeilDiv(m, kPairRows); }
  int64_t ColPanels() const { return CeilDiv(n, kPairRows); }
  int64_t PanelElements() const { return steps * kPairStep; }
};

void PackPanel(PairKernels::Pack pack, const PairOperand& from, int64_t size, int64_t panel, int64_t k, uint16_t* dst) {
  for (int block = 0; block < 2; ++block) {
    const int64_t i = panel * kPairRows + block * 16;
    const int count = static_cast<int>(std::clamp<int64_t>(size - i, 0, 16));
    if (count == 0) return;  // a block without rows is never multiplied
    pack({from.data + i * from.stride_i, from.stride_i, from.stride_k}, count, k, dst + block * kPairStep / 2);
  }
}

void Fetch(const Sink& s, int64_t i0, int rows, int64_t j0) {
  const char* p = static_cast<const char*>(s.data) + (i0 * s.row + j0) * SizeOf(s.element);
  for (int i = 0; i < rows; ++i, p += s.row * SizeOf(s.element)) __builtin_prefetch(p, 1);
}

void Tile(const Product& p, int64_t row_panel, int64_t col_panel) {
  const Sink& s = p.sink;
  const int64_t i0 = row_panel * kPairRows, j0 = col_panel * kPairRows;
  const int rows = static_cast<int>(std::min<int64_t>(kPairRows, p.m - i0));
  const int cols = static_cast<int>(std::min<int64_t>(kPairRows, p.n - j0));
  const int row_blocks = rows > 16 ? 2 : 1, col_blocks = cols > 16 ? 2 : 1;
  const uint16_t* a = p.a + row_panel * p.PanelElements();
  const uint16_t* b = p.b + col_panel * p.PanelElements();
  if (s.element == Element::kF32 && s.columns.step == 1 && s.alpha == 1 && rows % 16 == 0 && cols % 16 == 0) {
    float* to = static_cast<float*>(s.data) + i0 * s.row + j0;
    const bool add = !p.first || s.beta != 0;
    if (!p.first || s.beta == 0 || StartFromSelf(s, i0, rows, j0, cols, to)) {
      return p.t.multiply(p.steps, a, b, row_blocks, col_blocks, to, s.row, add);
    }
  }
  alignas(64) float local[kPairRows * kPairRows];
  float* tile = p.partial != nullptr ? p.partial + (row_panel * p.ColPanels() + col_panel) * kPairStep : local;
  if (s.columns.step == 1) Fetch(s, i0, rows, j0);
  p.t.multiply(p.steps, a, b, row_blocks, col_blocks, tile, kPairRows, !p.first);
  if (!p.last) return;
  if (p.t.store(s, tile, kPairRows, i0, rows, j0, cols)) return;
  Finish(s, tile, kPairRows, i0, rows, j0, cols, true, true, nullptr, 0);
}

void Multiply(Parallel& parallel, const Product& p, bool serial) {
  const int64_t row_group = std::clamp<int64_t>(kRowBytesInL2 / (p.PanelElements() * 2), 1, p.RowPanels());
  const int64_t row_parts = CeilDiv(p.RowPanels(), row_group);
  const int64_t wanted = serial ? 1 : CeilDiv(kTasksEach * parallel.Workers(), row_parts);
  const int64_t col_parts = std::clamp<int64_t>(wanted, 1, p.ColPanels());
  const int64_t tasks = row_parts * col_parts;
  parallel.For(tasks, serial ? tasks : 1, [&](int64_t begin, int64_t end) {
    p.t.begin();
    for (int64_t x = begin; x < end; ++x) {
      const int64_t r = x / col_parts, c = x % col_parts;
      const int64_t rows_end = p.RowPanels() * (r + 1) / row_parts, cols_end = p.ColPanels() * (c + 1) / col_parts;
      for (int64_t j = p.ColPanels() * c / col_parts; j < cols_end; ++j) {
        for (int64_t i = p.RowPanels() * r / row_parts; i < rows_end; ++i) Tile(p, i, j);
      }
    }
    p.t.end();
  });
}

}  // namespace

void LimitPairUnit(PairUnit unit) { limit.store(unit, std::memory_order_relaxed); }

bool IsForPairs(int64_t m, int64_t n, int64_t k) { return m >= 8 && n >= 8 && k >= 8 && Chosen() != nullptr; }

Status Pairs(Parallel& parallel, int64_t m, int64_t n, int64_t k, const PairOperand& a, const PairOperand& b,
             const Sink& sink) {
  const int64_t passes = CeilDiv(k, kMaxTerms);
  const int64_t terms = CeilDiv(CeilDiv(k, passes), kPairTerms) * kPairTerms;
  Product p{*Chosen(), m, n, sink};
  const int64_t panels = p.RowPanels() + p.ColPanels();
  Scratch packed(static_cast<size_t>(panels * terms * kPairRows) * sizeof(uint16_t));
  Scratch partial;
  if (passes > 1) partial = Scratch(static_cast<size_t>(p.RowPanels() * p.ColPanels() * kPairStep) * sizeof(float));
  if (!packed || (passes > 1 && !partial)) return NoScratch();
  p.partial = partial.As();
  const double flops = 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  const bool serial = flops < kSerialFlops;
  for (int64_t begin = 0; begin < k; begin += terms) {
    const int64_t count = std::min(terms, k - begin);
    p.steps = CeilDiv(count, kPairTerms);
    p.first = begin == 0;
    p.last = begin + count == k;
    uint16_t* to = packed.As<uint16_t>();
    p.a = to;
    p.b = to + p.RowPanels() * p.PanelElements();
    const PairOperand from_a{a.data + begin * a.stride_k, a.stride_i, a.stride_k};
    const PairOperand from_b{b.data + begin * b.stride_k, b.stride_i, b.stride_k};
    parallel.For(panels, serial ? panels : std::max<int64_t>(1, kPackGrain / p.PanelElements()),
                 [&](int64_t from, int64_t end) {
                   for (int64_t x = from; x < end; ++x) {
                     uint16_t* dst = to + x * p.PanelElements();
                     if (x < p.RowPanels()) {
                       PackPanel(p.t.pack_a, from_a, m, x, count, dst);
                     } else {
                       PackPanel(p.t.pack_b, from_b, n, x - p.RowPanels(), count, dst);
                     }
                   }
                 });
    Multiply(parallel, p, serial);
  }
  return {};
}

}  // namespace npu::gemm
