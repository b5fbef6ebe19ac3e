// Walking the index space of strided tensors of one shape, with neighbouring dimensions merged where all of them allow it.
//
//   Walk<2> walk;
//   for (d …) walk.Add(shape[d], {x.strides[d], y.strides[d]});     // outermost first
//   walk.Merge();
//   for (walk.Seek(begin); begin < end; ++begin, walk.Next()) use(walk.offset[0], walk.offset[1]);
#pragma once

#include <array>
#include <cstdint>
#include <utility>

#include "tensor/tensor.h"

namespace npu::simd {

// Kernels may split each dimension of a tensor in two.
inline constexpr int kWalkRank = 2 * kMaxRank;

template <int K>
struct Walk {
  int rank = 0;
  std::array<int64_t, kWalkRank> size{};
  std::array<std::array<int64_t, K>, kWalkRank> stride{};
  std::array<int64_t, kWalkRank> index{};
  std::array<int64_t, K> offset{};

  // A dimension of size 1 is left out.
  void Add(int64_t n, std::array<int64_t, K> strides) {
    if (n == 1) return;
    size[static_cast<size_t>(rank)] = n;
    stride[static_cast<size_t>(rank++)] = strides;
  }
  void Merge() {
    int kept = 0;
    for (int d = 1; d < rank; ++d) {
      const auto i = static_cast<size_t>(d), k = static_cast<size_t>(kept);
      bool joins = true;
      for (size_t t = 0; t < K; ++t) joins = joins && stride[k][t] == stride[i][t] * size[i];
      if (joins) {
        size[k] *= size[i];
        stride[k] = stride[i];
      } else {
        ++kept;
        size[k + 1] = size[i];
        stride[k + 1] = stride[i];
      }
    }
    if (rank > 0) rank = kept + 1;
  }
  // Largest stride of tensor t outermost.
  void Sort(size_t t) {
    for (int a = 1; a < rank; ++a) {
      for (int b = a; b > 0; --b) {
        const auto hi = static_cast<size_t>(b - 1), lo = static_cast<size_t>(b);
        if (stride[hi][t] >= stride[lo][t]) break;
        std::swap(size[hi], size[lo]);
        std::swap(stride[hi], stride[lo]);
      }
    }
  }
  // Removes the innermost dimension and returns it; size 1 and stride 0 when there is none.
  struct Dim {
    int64_t size = 1;
    std::array<int64_t, K> stride{};
  };
  Dim TakeInner() {
    if (rank == 0) return {};
    --rank;
    return {size[static_cast<size_t>(rank)], stride[static_cast<size_t>(rank)]};
  }
  int64_t Count() const {
    int64_t n = 1;
    for (int d = 0; d < rank; ++d) n *= size[static_cast<size_t>(d)];
    return n;
  }
  void Seek(int64_t flat) {
    offset = {};
    for (int d = rank - 1; d >= 0; --d) {
      const auto i = static_cast<size_t>(d);
      index[i] = flat % size[i];
      flat /= size[i];
      for (size_t t = 0; t < K; ++t) offset[t] += index[i] * stride[i][t];
    }
  }
  void Next() {
    for (int d = rank - 1; d >= 0; --d) {
      const auto i = static_cast<size_t>(d);
      for (size_t t = 0; t < K; ++t) offset[t] += stride[i][t];
      if (++index[i] < size[i]) return;
      for (size_t t = 0; t < K; ++t) offset[t] -= size[i] * stride[i][t];
      index[i] = 0;
    }
  }
};

// Elements a block should hold so that sharing it with another thread pays.
inline constexpr int64_t kGrain = 32768;
inline int64_t RowsPerBlock(int64_t row_elements) { return row_elements >= kGrain ? 1 : kGrain / (row_elements > 0 ? row_elements : 1); }

}  // namespace npu::simd
