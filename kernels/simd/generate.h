// Tensors made from the index of each element, in row-major order.
//
//   Generate<double>(out, [=](int64_t i) { return start + step * i; }, parallel);
//
// V is double or int64_t; values are stored as C++ converts them.
#pragma once

#include <algorithm>
#include <memory>

#include "kernels/simd/cast.h"
#include "kernels/simd/pointwise.h"
#include "tensor/shape.h"

namespace npu::simd {

template <class V, class F>
void Generate(const Tensor& out, F&& value, Parallel& parallel) {
  constexpr Lane kLane = std::is_same_v<V, double> ? Lane::f64 : Lane::i64;
  constexpr int64_t kTile = 1024;
  const int64_t numel = out.Numel();
  if (numel == 0) return;
  const int item = ItemSize(out.dtype);
  const ConvertFn store = StoreFrom(kLane, out.dtype);
  std::unique_ptr<char[]> dense;
  Tensor target = out;
  if (!out.Contiguous()) {
    dense = std::make_unique<char[]>(static_cast<size_t>(numel * item));
    target = MakeContiguous(dense.get(), out.dtype, out.Shape());
  }
  parallel.For(numel, 16 * kTile, [&](int64_t begin, int64_t end) {
    V lanes[kTile];
    for (; begin < end; begin += kTile) {
      const int64_t n = std::min(kTile, end - begin);
      for (int64_t i = 0; i < n; ++i) lanes[i] = value(begin + i);
      store(lanes, static_cast<char*>(target.data) + begin * item, n);
    }
  });
  if (dense) CopyTensor(target, out, parallel);
}

}  // namespace npu::simd
