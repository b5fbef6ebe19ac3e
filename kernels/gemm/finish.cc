#include <algorithm>

#include "kernels/gemm/blocked.h"

namespace npu::gemm {
namespace {

constexpr int kMaxCols = 64;

inline const void* At(const void* base, int64_t elements, Element e) {
  return static_cast<const char*>(base) + elements * SizeOf(e);
}

void AddSelf(const MicroKernels& t, const Sink& s, int64_t i, int64_t segment, int64_t offset, int cols, float* row) {
  const void* p = At(s.self, i * s.self_row + segment * s.self_segment_stride + offset * s.self_col, s.self_element);
  float staged[kMaxCols];
  const float* self = staged;
  if (s.self_element == Element::kF32 && s.self_col == 1) {
    self = static_cast<const float*>(p);
  } else {
    t.load_row[static_cast<size_t>(s.self_element)](p, s.self_col, cols, staged);
  }
  for (int j = 0; j < cols; ++j) row[j] += s.beta * self[j];
}

}  // namespace

void Finish(const Sink& sink, const float* tile, int64_t ldt, int64_t i0, int rows, int64_t j0, int cols, bool first,
            bool last, float* partial, int64_t ldp) {
  const MicroKernels& t = Kernels();
  const bool into_partial = !last && partial != nullptr;
  for (int done = 0; done < cols;) {
    const int64_t j = j0 + done;
    const int64_t segment = j / sink.segment;
    const int64_t offset = j - segment * sink.segment;
    const int run = static_cast<int>(std::min<int64_t>({cols - done, sink.segment - offset, kMaxCols}));
    for (int i = 0; i < rows; ++i) {
      float row[kMaxCols];
      const float* from = tile + i * ldt + done;
      for (int q = 0; q < run; ++q) row[q] = sink.alpha * from[q];
      if (first && sink.beta != 0) AddSelf(t, sink, i0 + i, segment, offset, run, row);
      void* to = static_cast<char*>(sink.data) +
                 ((i0 + i) * sink.row + segment * sink.segment_stride + offset * sink.col) * SizeOf(sink.element);
      float* part = partial != nullptr ? partial + i * ldp + done : nullptr;
      if (!first && part != nullptr) {
        for (int q = 0; q < run; ++q) row[q] += part[q];
      } else if (!first) {
        for (int q = 0; q < run; ++q) row[q] += static_cast<const float*>(to)[q * sink.col];
      }
      if (into_partial) {
        std::copy_n(row, run, part);
      } else {
        t.store_row[static_cast<size_t>(sink.element)](row, run, to, sink.col);
      }
    }
    done += run;
  }
}

}  // namespace npu::gemm
