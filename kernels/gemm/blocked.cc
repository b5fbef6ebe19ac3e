#include "kernels/gemm/blocked.h"

#include <algorithm>
#include <atomic>
#include <numeric>

#include "kernels/gemm/scratch.h"

namespace npu::gemm {
namespace {

constexpr int64_t kColsInL2 = 512;                    // columns of B packed by one task at a time
constexpr int64_t kRowsInL2 = 140;                    // rows of A packed by one task at a time
constexpr int kSpareRows = 2;                         // a panel may have so many fewer than the largest tile
constexpr int64_t kPieceFloats = int64_t{128} << 10;  // of the result, beside the operands' blocks in L2
constexpr int64_t kGroupFloats = int64_t{1} << 20;    // packed by one task at a time
constexpr int64_t kSharedBytes = int64_t{96} << 20;   // packed once for all tasks, per pass
constexpr double kSerialFlops = 1.0e6;                // below this sharing costs more than it brings
constexpr double kUnsharedFlops = 10.0e6;  // below this each task packs for itself: one region instead of two

struct Range {
  int64_t begin, end;
  int64_t size() const { return end - begin; }
};

// Part `index` of `parts` nearly equal ones.
Range Part(int64_t n, int64_t parts, int64_t index) { return {n * index / parts, n * (index + 1) / parts}; }

// How k, rows and columns are cut into blocks and panels.
struct Cut {
  // `sharers`: workers among whom rows are divided.
  Cut(const MicroKernels& t, int64_t m_, int64_t n_, int64_t k_, int sharers)
      : m(m_), n(n_), k(k_), nr(t.nr), lanes(t.lanes) {
    k_blocks = std::max<int64_t>(1, CeilDiv(k, t.kc));
    kc = CeilDiv(CeilDiv(k, k_blocks), 4) * 4;
    // The rows of a panel: those that leave the busiest worker the fewest, within what hardly slows a tile.
    const auto busiest = [&](int rows) { return CeilDiv(CeilDiv(m, rows), sharers) * rows; };
    mr = t.mr;
    for (int rows = t.mr - 1; rows >= t.mr - kSpareRows && rows > 0; --rows) {
      if (busiest(rows) < busiest(mr)) mr = rows;
    }
    mr = static_cast<int>(CeilDiv(m, CeilDiv(m, mr)));
    row_panels = CeilDiv(m, mr);
    col_panels = CeilDiv(n, nr);
  }
  Range Terms(int64_t block) const { return {std::min(k, block * kc), std::min(k, (block + 1) * kc)}; }
  int Rows(int64_t panel) const { return static_cast<int>(std::min<int64_t>(mr, m - panel * mr)); }
  int Cols(int64_t panel) const { return static_cast<int>(std::min<int64_t>(nr, n - panel * nr)); }
  // Vectors a panel of B is wide.
  int Vectors(int64_t panel) const { return static_cast<int>(CeilDiv(Cols(panel), lanes)); }
  int64_t APanelFloats() const { return CeilDiv(mr * kc + kPanelSlackFloats, 16) * 16; }
  int64_t BPanelFloats() const { return nr * kc + kPanelSlackFloats; }

  int64_t m, n, k;
  int nr, lanes, mr = 0;
  int64_t kc = 0, k_blocks = 0, row_panels = 0, col_panels = 0;
};

struct Call {
  const MicroKernels& t;
  const Cut& cut;
  const PanelSource& a;
  const PanelSource& b;
  const Sink& sink;
  Range blocks{0, 0};               // blocks of k of this pass
  Strip a_lies{}, b_lies{};         // an operand that is read where it lies, not packed
  const float* shared_a = nullptr;  // panels of all rows for all blocks of this pass, or null
  const float* shared_b = nullptr;
};

void PackA(const Call& c, int64_t block, Range panels, float* dst) {
  const Cut& cut = c.cut;
  const Range terms = cut.Terms(block);
  int64_t p = panels.begin;
  const int64_t whole = std::min(panels.end, cut.m / cut.mr) - p;
  if (whole > 1 && c.a.PackMany(p * cut.mr, cut.mr, whole, terms.begin, terms.size(), dst, cut.APanelFloats()))
    p += whole;
  for (; p < panels.end; ++p) {
    const int rows = cut.Rows(p);
    c.a.Pack(p * cut.mr, rows, rows, terms.begin, terms.size(), dst + (p - panels.begin) * cut.APanelFloats());
  }
}

void PackB(const Call& c, int64_t block, Range panels, float* dst) {
  const Cut& cut = c.cut;
  const Range terms = cut.Terms(block);
  int64_t p = panels.begin;
  const int64_t whole = std::min(panels.end, cut.n / cut.nr) - p;
  if (whole > 1 && c.b.PackMany(p * cut.nr, cut.nr, whole, terms.begin, terms.size(), dst, cut.BPanelFloats()))
    p += whole;
  for (; p < panels.end; ++p) {
    c.b.Pack(p * cut.nr, cut.Cols(p), cut.Vectors(p) * cut.lanes, terms.begin, terms.size(),
             dst + (p - panels.begin) * cut.BPanelFloats());
  }
}

// A panel of columns: its operand, and where its tiles may be stored straight into the result. `first` is where row 0
// has its first vector, null if they may not; the second vector lies `second` behind it (an image's columns may end
// between them).
struct ColumnPanel {
  int64_t index = 0, j0 = 0;
  int cols = 0, vectors = 0;
  const float* b = nullptr;
  int64_t b_step = 0;
  float* first = nullptr;
  int64_t second = 0;
};

ColumnPanel MakeColumnPanel(const Sink& s, const Cut& cut, int64_t index) {
  const int64_t j = index * cut.nr;
  ColumnPanel out{.index = index, .j0 = j, .cols = cut.Cols(index), .vectors = cut.Vectors(index)};
  if (s.element != Element::kF32 || s.columns.step != 1 || s.alpha != 1 || out.cols % cut.lanes != 0) return out;
  const int64_t run = s.columns.run;
  const int64_t outer = j / run, in_run = j - outer * run;
  if (in_run + cut.lanes > run) return out;
  if (out.vectors == 1 || in_run + out.cols <= run) {
    out.second = cut.lanes;
  } else if (in_run + cut.lanes == run && run >= cut.lanes) {
    out.second = s.columns.OuterOffset(outer + 1) - s.columns.OuterOffset(outer) - in_run;
  } else {
    return out;
  }
  out.first = static_cast<float*>(s.data) + s.columns.OuterOffset(outer) + in_run;
  return out;
}

// Fills a tile of the result with beta * self, so that products can be added; false when Finish must do it.
bool StartDirect(const Sink& s, const Cut& cut, int64_t i0, int rows, const ColumnPanel& p, float* to) {
  if (p.second == cut.lanes) return StartFromSelf(s, i0, rows, p.j0, p.cols, to);
  return StartFromSelf(s, i0, rows, p.j0, cut.lanes, to) &&
         StartFromSelf(s, i0, rows, p.j0 + cut.lanes, cut.lanes, to + p.second);
}

void MultiplyTile(const Call& c, int64_t block, int64_t terms, const Strip& a, int64_t row_panel, const ColumnPanel& p,
                  float* partial, int64_t ldp) {
  const Cut& cut = c.cut;
  const Sink& s = c.sink;
  const bool first = block == 0;
  const int rows = cut.Rows(row_panel);
  const int64_t i0 = row_panel * cut.mr;
  const auto r = static_cast<size_t>(rows - 1);
  const auto v = static_cast<size_t>(p.vectors - 1);
  if (p.first != nullptr && partial == nullptr) {
    float* to = p.first + i0 * s.row;
    if (first && s.beta == 0) return c.t.tile[0][r][v](terms, a, p.b, p.b_step, to, s.row, p.second);
    if (!first || StartDirect(s, cut, i0, rows, p, to)) {
      return c.t.tile[1][r][v](terms, a, p.b, p.b_step, to, s.row, p.second);
    }
  }
  alignas(64) float tile[kMaxMr * 32];
  c.t.tile[0][r][v](terms, a, p.b, p.b_step, tile, 32, cut.lanes);
  Finish(s, tile, 32, i0, rows, p.j0, p.cols, first, block == cut.k_blocks - 1, partial, ldp);
}

// One rectangle of the result, all blocks of this pass. A piece of it stays in L2 while all blocks of k are added to
// it. False when there is no memory.
bool Rectangle(const Call& c, Range row_panels, Range col_panels) {
  const Cut& cut = c.cut;
  const int64_t a_step = std::max<int64_t>(1, kRowsInL2 / cut.mr);
  const int64_t b_step = std::max<int64_t>(1, kColsInL2 / cut.nr);
  const bool packs_a = !c.shared_a && !c.a_lies.data, packs_b = !c.shared_b && !c.b_lies.data;
  const int64_t a_floats = packs_a ? row_panels.size() * cut.APanelFloats() : 0;
  const int64_t b_floats = packs_b ? std::min(b_step, col_panels.size()) * cut.BPanelFloats() : 0;
  // Blocks of k packed at a time. One, just before it is read, when the whole rectangle stays in L2 anyway.
  const bool small = row_panels.size() * cut.mr * col_panels.size() * cut.nr <= kPieceFloats;
  const int64_t most = small ? 1 : kGroupFloats / std::max<int64_t>(1, a_floats + b_floats);
  const int64_t group = std::clamp<int64_t>(most, 1, c.blocks.size());
  const bool keeps = c.sink.element != Element::kF32 && cut.k_blocks > 1;
  const int64_t ldp = col_panels.size() * cut.nr;
  const int64_t p_floats = keeps ? ldp * row_panels.size() * cut.mr : 0;
  Scratch scratch(static_cast<size_t>(group * (a_floats + b_floats) + p_floats) * sizeof(float));
  if (!scratch) return false;
  float* local_b = scratch.As();
  float* local_a = local_b + group * b_floats;
  float* partial = keeps ? local_a + group * a_floats : nullptr;

  const auto tiles = [&](int64_t block, const float* a, const float* b, Range rows, Range cols) {
    const int64_t k0 = cut.Terms(block).begin, terms = cut.Terms(block).size();
    for (int64_t j = cols.begin; j < cols.end; ++j) {
      ColumnPanel panel = MakeColumnPanel(c.sink, cut, j);
      panel.b = b + (j - cols.begin) * cut.BPanelFloats();
      panel.b_step = panel.vectors * cut.lanes;
      if (c.b_lies.data) {
        panel.b_step = c.b_lies.step;
        panel.b = c.b_lies.data + panel.j0 + k0 * panel.b_step;
      }
      for (int64_t i = rows.begin; i < rows.end; ++i) {
        float* part = nullptr;
        if (keeps) part = partial + (i - row_panels.begin) * cut.mr * ldp + (j - col_panels.begin) * cut.nr;
        Strip strip{a + (i - rows.begin) * cut.APanelFloats(), 1, cut.Rows(i)};
        if (c.a_lies.data) {
          strip = c.a_lies;
          strip.data += i * cut.mr * strip.stride + k0 * strip.step;
        }
        MultiplyTile(c, block, terms, strip, i, panel, part, ldp);
      }
    }
  };

  for (int64_t from = c.blocks.begin; from < c.blocks.end; from += group) {
    const Range blocks{from, std::min(from + group, c.blocks.end)};
    if (packs_a) {
      for (int64_t k = blocks.begin; k < blocks.end; ++k) PackA(c, k, row_panels, local_a + (k - from) * a_floats);
    }
    for (int64_t j0 = col_panels.begin; j0 < col_panels.end; j0 += b_step) {
      const Range cols{j0, std::min(j0 + b_step, col_panels.end)};
      if (packs_b) {
        for (int64_t k = blocks.begin; k < blocks.end; ++k) PackB(c, k, cols, local_b + (k - from) * b_floats);
      }
      for (int64_t i0 = row_panels.begin; i0 < row_panels.end; i0 += a_step) {
        const Range rows{i0, std::min(i0 + a_step, row_panels.end)};
        for (int64_t k = blocks.begin; k < blocks.end; ++k) {
          const float* a = local_a + (k - from) * a_floats + (i0 - row_panels.begin) * cut.APanelFloats();
          const float* b = local_b + (k - from) * b_floats;
          if (c.shared_a) a = c.shared_a + ((k - c.blocks.begin) * cut.row_panels + i0) * cut.APanelFloats();
          if (c.shared_b) b = c.shared_b + ((k - c.blocks.begin) * cut.col_panels + j0) * cut.BPanelFloats();
          tiles(k, a, b, rows, cols);
        }
      }
    }
  }
  return true;
}

// Whether rows of A are better read where they lie than packed.
bool ReadsWhereItLies(const Strip& a, const Cut& cut) {
  constexpr int64_t kSetsBytes = 4096;  // addresses so far apart share a set of the first cache
  constexpr int64_t kFewTerms = 64, kFewPanels = 2;
  if (a.data == nullptr) return false;
  // Rows along k fill whole lines, unless all of a tile's rows fall into few sets.
  if (a.step == 1) return cut.k <= kFewTerms || std::gcd(a.stride * 4, kSetsBytes) <= kSetsBytes / 4;
  // Otherwise a line holds one term of the tile, and packing pays as soon as several panels of columns read it.
  return a.stride == 1 && cut.col_panels <= kFewPanels;
}

// B must have whole vectors of columns; packing pays when several panels of rows read it.
bool ReadsWhereItLies(const Strip& b, const Cut& cut, int64_t columns) {
  constexpr int64_t kFewPanels = 4;
  return b.data != nullptr && b.stride == 1 && columns % cut.lanes == 0 && cut.row_panels <= kFewPanels;
}

// Parts of a dimension: as many as keep `size` panels each, rounded to fill all workers evenly.
int64_t Parts(int64_t panels, int64_t size, int workers) {
  const int64_t wanted = CeilDiv(CeilDiv(panels, size), workers) * workers;
  return std::clamp<int64_t>(wanted, 1, panels);
}

Status RunGrid(Parallel& parallel, const Call& c, int64_t row_parts, int64_t col_parts) {
  std::atomic<bool> ok{true};
  parallel.For(row_parts * col_parts, 1, [&](int64_t begin, int64_t end) {
    for (int64_t x = begin; x < end; ++x) {
      const Range rows = Part(c.cut.row_panels, row_parts, x / col_parts);
      const Range cols = Part(c.cut.col_panels, col_parts, x % col_parts);
      if (!Rectangle(c, rows, cols)) ok.store(false, std::memory_order_relaxed);
    }
  });
  return ok.load(std::memory_order_relaxed) ? Status() : NoScratch();
}

}  // namespace

MatrixSource::MatrixSource(const void* data, Element element, int64_t stride_i, int64_t stride_k)
    : data_(static_cast<const char*>(data)),
      element_(element),
      pack_(Kernels().pack[static_cast<size_t>(element)]),
      stride_i_(stride_i),
      stride_k_(stride_k),
      size_(SizeOf(element)) {}

void MatrixSource::Pack(int64_t i0, int count, int width, int64_t k0, int64_t k, float* dst) const {
  pack_(data_ + (i0 * stride_i_ + k0 * stride_k_) * size_, stride_i_, stride_k_, count, width, k, dst);
}

bool MatrixSource::PackMany(int64_t i0, int width, int64_t panels, int64_t k0, int64_t k, float* dst,
                            int64_t panel_floats) const {
  if (stride_i_ != 1) return false;
  Kernels().pack_many[static_cast<size_t>(element_)](data_ + (i0 + k0 * stride_k_) * size_, stride_k_, width, panels, k,
                                                     dst, panel_floats);
  return true;
}

Strip MatrixSource::Lies() const {
  return size_ == 4 ? Strip{reinterpret_cast<const float*>(data_), stride_i_, stride_k_} : Strip{};
}

Status Blocked(Parallel& parallel, int64_t m, int64_t n, int64_t k, const PanelSource& a, const PanelSource& b,
               const Sink& sink) {
  if (m <= 0 || n <= 0) return {};
  const MicroKernels& t = Kernels();
  const double flops = 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  const int workers = flops < kSerialFlops ? 1 : parallel.Workers();
  const bool split_rows = m >= n;
  const Cut cut(t, m, n, k, split_rows ? workers : 1);
  Call call{t, cut, a, b, sink, {0, cut.k_blocks}};

  if (const Strip lies = a.Lies(); ReadsWhereItLies(lies, cut)) call.a_lies = lies;
  if (const Strip lies = b.Lies(); ReadsWhereItLies(lies, cut, n)) call.b_lies = lies;

  const int64_t row_size = std::max<int64_t>(1, kRowsInL2 / cut.mr);
  const int64_t col_size = std::max<int64_t>(1, kColsInL2 / cut.nr);
  const int64_t row_parts = split_rows ? Parts(cut.row_panels, row_size, workers) : 1;
  const int64_t col_parts = split_rows ? 1 : Parts(cut.col_panels, col_size, workers);
  if (row_parts * col_parts == 1) {
    if (!Rectangle(call, {0, cut.row_panels}, {0, cut.col_panels})) return NoScratch();
    return {};
  }
  if (flops < kUnsharedFlops || (split_rows ? call.b_lies.data : call.a_lies.data) != nullptr)
    return RunGrid(parallel, call, row_parts, col_parts);

  // The operand that every task reads is packed once, by all workers.
  const int64_t panels = split_rows ? cut.col_panels : cut.row_panels;
  const int64_t panel_floats = split_rows ? cut.BPanelFloats() : cut.APanelFloats();
  int64_t pass = cut.k_blocks;
  if (sink.element == Element::kF32) {
    pass = std::clamp<int64_t>(kSharedBytes / (panels * panel_floats * 4), 1, cut.k_blocks);
  }
  Scratch shared(static_cast<size_t>(pass * panels * panel_floats) * sizeof(float));
  if (!shared) return NoScratch();
  for (int64_t begin = 0; begin < cut.k_blocks; begin += pass) {
    call.blocks = {begin, std::min(begin + pass, cut.k_blocks)};
    parallel.For(
        call.blocks.size() * panels, std::max<int64_t>(1, 65536 / panel_floats), [&](int64_t from, int64_t to) {
          for (int64_t x = from, next = 0; x < to; x = next) {
            const int64_t block = x / panels, p = x % panels;
            next = std::min(to, (block + 1) * panels);
            (split_rows ? PackB : PackA)(call, begin + block, {p, p + next - x}, shared.As() + x * panel_floats);
          }
        });
    (split_rows ? call.shared_b : call.shared_a) = shared.As();
    NPU_TRY(RunGrid(parallel, call, row_parts, col_parts));
  }
  return {};
}

}  // namespace npu::gemm
