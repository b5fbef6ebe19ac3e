#include <algorithm>

#include "kernels/gemm/blocked.h"

namespace npu::gemm {
namespace {

constexpr int kMaxCols = 64;

void AddSelf(const MicroKernels& t, const Sink& s, int64_t i, int64_t j, const void* result, int cols, float* row) {
  const int64_t size = SizeOf(s.self_element);
  const void* p = static_cast<const char*>(s.self) + (i * s.self_row + j * s.self_col) * size;
  int64_t step = s.self_col;
  if (s.in_place) {
    p = result;
    step = s.columns.step;
  }
  float staged[kMaxCols];
  if (step == 0) {
    t.load_row[static_cast<size_t>(s.self_element)](p, 1, 1, staged);
    const float v = s.beta * staged[0];
    for (int q = 0; q < cols; ++q) row[q] += v;
    return;
  }
  const float* self = staged;
  if (s.self_element == Element::kF32 && step == 1) {
    self = static_cast<const float*>(p);
  } else {
    t.load_row[static_cast<size_t>(s.self_element)](p, step, cols, staged);
  }
  for (int q = 0; q < cols; ++q) row[q] += s.beta * self[q];
}

}  // namespace

void Finish(const Sink& sink, const float* tile, int64_t ldt, int64_t i0, int rows, int64_t j0, int cols, bool first,
            bool last, float* partial, int64_t ldp) {
  const MicroKernels& t = Kernels();
  const bool into_partial = !last && partial != nullptr;
  const Columns& columns = sink.columns;
  for (int done = 0; done < cols;) {
    const int64_t j = j0 + done;
    const int64_t outer = j / columns.run;
    const int64_t in_run = j - outer * columns.run;
    const int run = static_cast<int>(std::min<int64_t>({cols - done, columns.run - in_run, kMaxCols}));
    const int64_t offset = columns.OuterOffset(outer) + in_run * columns.step;
    for (int i = 0; i < rows; ++i) {
      float row[kMaxCols];
      const float* from = tile + i * ldt + done;
      for (int q = 0; q < run; ++q) row[q] = sink.alpha * from[q];
      void* to = static_cast<char*>(sink.data) + ((i0 + i) * sink.row + offset) * SizeOf(sink.element);
      if (first && sink.beta != 0) AddSelf(t, sink, i0 + i, j, to, run, row);
      float* part = partial != nullptr ? partial + i * ldp + done : nullptr;
      if (!first && part != nullptr) {
        for (int q = 0; q < run; ++q) row[q] += part[q];
      } else if (!first) {
        for (int q = 0; q < run; ++q) row[q] += static_cast<const float*>(to)[q * columns.step];
      }
      if (into_partial) {
        std::copy_n(row, run, part);
      } else {
        t.store_row[static_cast<size_t>(sink.element)](row, run, to, columns.step);
      }
    }
    done += run;
  }
}

bool StartFromSelf(const Sink& s, int64_t i0, int rows, int64_t j0, int cols, float* to) {
  if (s.in_place) return s.beta == 1 && s.self_element == Element::kF32;
  if (s.self_element != Element::kF32 || (s.self_col != 0 && s.self_col != 1)) return false;
  for (int i = 0; i < rows; ++i, to += s.row) {
    const float* self = static_cast<const float*>(s.self) + (i0 + i) * s.self_row + j0 * s.self_col;
    if (s.self_col == 0) {
      std::fill_n(to, cols, s.beta * self[0]);
    } else {
      for (int q = 0; q < cols; ++q) to[q] = s.beta * self[q];
    }
  }
  return true;
}

}  // namespace npu::gemm
