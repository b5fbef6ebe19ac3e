// The blocked product behind Gemm and convolution: panels come from any source, results go through a sink.
//
//   MatrixSource a(x, Element::kF32, /*stride_i=*/k, /*stride_k=*/1), b(w, Element::kF32, 1, n);
//   Sink sink{.data = y, .row = n};
//   NPU_TRY(Blocked(parallel, m, n, k, a, b, sink));
//
// k is cut into blocks that depend on k alone, and within a block every element of C is one chain of fused
// multiply-adds, so the bits of the result depend neither on the number of workers nor on how C is cut.
#pragma once

#include <array>
#include <cstdint>

#include "base/status/status.h"
#include "base/task/parallel.h"
#include "kernels/gemm/micro.h"

namespace npu::gemm {

// Rows of A or columns of B, fetched as packed panels.
class PanelSource {
 public:
  virtual ~PanelSource() = default;
  // dst[p * width + i] = element (i0 + i, k0 + p) for i < count, zero for count <= i < width; p < k.
  // When count == width up to kPanelSlackFloats behind the panel may be written.
  virtual void Pack(int64_t i0, int count, int width, int64_t k0, int64_t k, float* dst) const = 0;
  // The same for `panels` whole panels, panel_floats apart; false when the source has no quicker way than one by one.
  virtual bool PackMany(int64_t /*i0*/, int /*width*/, int64_t /*panels*/, int64_t /*k0*/, int64_t /*k*/,
                        float* /*dst*/, int64_t /*panel_floats*/) const {
    return false;
  }
  // Where element (0, 0) lies and how far the next ones are, if the whole is f32 with two strides; data null if not.
  virtual Strip Lies() const { return {}; }
};

class MatrixSource final : public PanelSource {
 public:
  MatrixSource(const void* data, Element element, int64_t stride_i, int64_t stride_k);
  void Pack(int64_t i0, int count, int width, int64_t k0, int64_t k, float* dst) const override;
  bool PackMany(int64_t i0, int width, int64_t panels, int64_t k0, int64_t k, float* dst,
                int64_t panel_floats) const override;
  Strip Lies() const override;

 private:
  const char* data_;
  Element element_;
  MicroKernels::Pack pack_;
  int64_t stride_i_, stride_k_, size_;
};

// Where the columns of a result go: runs of `run` columns `step` apart, and the runs by up to three outer dimensions
// (the last varies fastest). A plain matrix is one run; a convolution's columns are images, planes and rows.
struct Columns {
  int64_t run = INT64_MAX, step = 1;
  std::array<int64_t, 3> outer_size{1, 1, 1}, outer_stride{};

  int64_t OuterOffset(int64_t index) const {
    if (index == 0) return 0;
    const int64_t low = index % outer_size[2] * outer_stride[2];
    index /= outer_size[2];
    return low + index % outer_size[1] * outer_stride[1] + index / outer_size[1] * outer_stride[0];
  }
};

// Element (i, j) of the result lies at data + i * row + columns(j).
struct Sink {
  void* data = nullptr;
  Element element = Element::kF32;
  int64_t row = 0;
  Columns columns{};

  // value = alpha * product + beta * self(i * self_row + j * self_col); self is not read when beta == 0. With several
  // runs of columns self_col is 0 (a bias of rows), or self is the result itself (`in_place`).
  float alpha = 1, beta = 0;
  const void* self = nullptr;
  Element self_element = Element::kF32;
  int64_t self_row = 0, self_col = 0;
  bool in_place = false;
};

Status Blocked(Parallel& parallel, int64_t m, int64_t n, int64_t k, const PanelSource& a, const PanelSource& b,
               const Sink& sink);

// Writes rows x cols products (ldt apart) of the tile at (i0, j0) through the sink. Products of earlier blocks of k are
// added when not `first`: from `partial` (ldp apart) if given, otherwise from the f32 result itself. The result is
// final when `last`; otherwise it goes back to where products of earlier blocks come from.
void Finish(const Sink& sink, const float* tile, int64_t ldt, int64_t i0, int rows, int64_t j0, int cols, bool first,
            bool last, float* partial, int64_t ldp);

// Fills a tile of an f32 result with beta * self, so that products can be added in place; false when Finish must do it.
bool StartFromSelf(const Sink& sink, int64_t i0, int rows, int64_t j0, int cols, float* to);

inline int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }
inline int64_t SizeOf(Element e) { return e == Element::kF32 ? 4 : 2; }

}  // namespace npu::gemm
