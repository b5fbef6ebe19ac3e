// Runs a function on every row of strided tensors along one dimension, whatever their element types and layouts.
//
//   ForRows<float, 2>({&grad, &y}, dim, out, parallel, [](const float* const* in, float* out, int64_t n) { … });
//
// All tensors have one shape. The function sees dense rows of the compute type and writes all n results; `out` may be the
// memory of an input. Where another dimension is dense in memory, a panel of columns is turned into rows at a time.
#pragma once

#include <algorithm>
#include <array>

#include "base/task/parallel.h"
#include "kernels/simd/rows/convert.h"
#include "kernels/simd/rows/scratch.h"
#include "kernels/simd/rows/walk.h"

namespace npu::simd {

inline constexpr int64_t kPanel = 16;

template <class C, int I, class F>
void ForRows(const std::array<const Tensor*, I>& in, int dim, const Tensor& out, Parallel& parallel, const F& f) {
  const Tensor& shape = *in[0];
  if (shape.Numel() == 0) return;
  const auto at = static_cast<size_t>(dim);
  const int64_t n = shape.rank == 0 ? 1 : shape.shape[at];
  std::array<int64_t, I + 1> step{};
  Walk<I + 1> walk;
  for (int d = 0; d < shape.rank; ++d) {
    const auto i = static_cast<size_t>(d);
    std::array<int64_t, I + 1> strides{};
    for (size_t t = 0; t < I; ++t) strides[t] = in[t]->strides[i];
    strides[I] = out.strides[i];
    if (d == dim) step = strides;
    else walk.Add(shape.shape[i], strides);
  }
  if (n == 1) step.fill(1);
  walk.Sort(0);
  walk.Merge();
  const int64_t inner_step = walk.rank > 0 ? walk.stride[static_cast<size_t>(walk.rank - 1)][0] : 0;
  if (walk.rank == 0 || step[0] <= inner_step) {
    parallel.For(walk.Count(), RowsPerBlock(n), [&](int64_t begin, int64_t end) {
      Scratch<C> buffer((I + 1) * n);
      Walk<I + 1> w = walk;
      w.Seek(begin);
      for (int64_t r = begin; r < end; ++r, w.Next()) {
        const C* rows[I];
        for (size_t t = 0; t < I; ++t) {
          rows[t] = Read(At(in[t]->data, in[t]->dtype, w.offset[t]), in[t]->dtype, step[t], n,
                         buffer.data() + static_cast<int64_t>(t) * n);
        }
        void* to = At(out.data, out.dtype, w.offset[I]);
        C* result = Target(to, out.dtype, step[I], buffer.data() + I * n);
        f(rows, result, n);
        Finish(result, n, to, out.dtype, step[I]);
      }
    });
    return;
  }
  const auto inner = walk.TakeInner();
  const int64_t panels = (inner.size + kPanel - 1) / kPanel;
  parallel.For(walk.Count() * panels, RowsPerBlock(n * kPanel), [&](int64_t begin, int64_t end) {
    Scratch<C> buffer((I + 1) * n * kPanel);
    C strip[kPanel];
    for (int64_t p = begin; p < end; ++p) {
      Walk<I + 1> w = walk;
      w.Seek(p / panels);
      const int64_t first = p % panels * kPanel;
      const int64_t width = std::min(kPanel, inner.size - first);
      for (size_t t = 0; t < I; ++t) {
        C* panel = buffer.data() + static_cast<int64_t>(t) * n * kPanel;
        for (int64_t r = 0; r < n; ++r) {
          const int64_t offset = w.offset[t] + first * inner.stride[t] + r * step[t];
          const C* got = Read(At(in[t]->data, in[t]->dtype, offset), in[t]->dtype, inner.stride[t], width, strip);
          for (int64_t j = 0; j < width; ++j) panel[j * n + r] = got[j];
        }
      }
      C* results = buffer.data() + I * n * kPanel;
      for (int64_t j = 0; j < width; ++j) {
        const C* rows[I];
        for (size_t t = 0; t < I; ++t) rows[t] = buffer.data() + (static_cast<int64_t>(t) * kPanel + j) * n;
        f(rows, results + j * n, n);
      }
      for (int64_t r = 0; r < n; ++r) {
        for (int64_t j = 0; j < width; ++j) strip[j] = results[j * n + r];
        Write(strip, width, At(out.data, out.dtype, w.offset[I] + first * inner.stride[I] + r * step[I]), out.dtype,
              inner.stride[I]);
      }
    }
  });
}

}  // namespace npu::simd
