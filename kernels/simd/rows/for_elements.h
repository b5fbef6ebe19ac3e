// Runs a function on runs of corresponding elements of strided tensors, in pieces that fit the first-level cache.
//
//   ForElements<float, 2>({&x, &y}, out, parallel, [](const float* const* in, float* out, int64_t n) { … });
//
// All tensors have one shape (stride 0 where broadcast). Pieces are cut by shape alone.
#pragma once

#include <algorithm>
#include <array>
#include <vector>

#include "base/task/parallel.h"
#include "kernels/simd/rows/convert.h"
#include "kernels/simd/rows/walk.h"

namespace npu::simd {

// `out` may be null: then f's result is only added up. Returns the sum over pieces of what f returns, in fixed order.
template <class C, int I, class F>
double SumElements(const std::array<const Tensor*, I>& in, const Tensor* out, Parallel& parallel, const F& f) {
  const Tensor& shape = *in[0];
  if (shape.Numel() == 0) return 0;
  Walk<I + 1> walk;
  for (int d = 0; d < shape.rank; ++d) {
    const auto i = static_cast<size_t>(d);
    std::array<int64_t, I + 1> strides{};
    for (size_t t = 0; t < I; ++t) strides[t] = in[t]->strides[i];
    strides[I] = out != nullptr ? out->strides[i] : 0;
    if (out == nullptr) strides[I] = strides[0];
    walk.Add(shape.shape[i], strides);
  }
  walk.Sort(out != nullptr ? I : 0);
  walk.Merge();
  const auto inner = walk.TakeInner();
  const int64_t per_row = (inner.size + kChunk - 1) / kChunk;
  const int64_t pieces = walk.Count() * per_row;
  const int64_t grain = RowsPerBlock(std::min(inner.size, kChunk));
  std::vector<double> sums(static_cast<size_t>((pieces + grain - 1) / grain), 0.0);
  parallel.For(pieces, grain, [&](int64_t begin, int64_t end) {
    alignas(64) C buffer[I + 1][kChunk];
    Walk<I + 1> w = walk;
    w.Seek(begin / per_row);
    int64_t piece = begin % per_row;
    double sum = 0;
    for (int64_t p = begin; p < end; ++p) {
      const int64_t first = piece * kChunk;
      const int64_t n = std::min(kChunk, inner.size - first);
      const C* rows[I];
      for (size_t t = 0; t < I; ++t) {
        rows[t] = Read(At(in[t]->data, in[t]->dtype, w.offset[t] + first * inner.stride[t]), in[t]->dtype, inner.stride[t], n,
                       buffer[t]);
      }
      if (out == nullptr) {
        sum += static_cast<double>(f(rows, buffer[I], n));
      } else {
        void* to = At(out->data, out->dtype, w.offset[I] + first * inner.stride[I]);
        C* result = Target(to, out->dtype, inner.stride[I], buffer[I]);
        sum += static_cast<double>(f(rows, result, n));
        Finish(result, n, to, out->dtype, inner.stride[I]);
      }
      if (++piece == per_row) {
        piece = 0;
        w.Next();
      }
    }
    sums[static_cast<size_t>(begin / grain)] = sum;
  });
  double total = 0;
  for (const double s : sums) total += s;
  return total;
}

template <class C, int I, class F>
void ForElements(const std::array<const Tensor*, I>& in, const Tensor& out, Parallel& parallel, const F& f) {
  SumElements<C, I>(in, &out, parallel, [&](const C* const* rows, C* to, int64_t n) {
    f(rows, to, n);
    return 0.0;
  });
}

}  // namespace npu::simd
