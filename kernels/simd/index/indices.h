// Reading index tensors: checked, as i64.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>
#include <mutex>
#include <span>
#include <vector>

#include "kernels/simd/index/index.h"
#include "kernels/simd/rows/dense.h"
#include "kernels/simd/rows/walk.h"

namespace npu::simd {

inline constexpr int64_t kIndexChunk = 512;

// The bad index with the lowest position that any worker met.
class FirstBad {
 public:
  // False when one of the indices does not lie in [0, size), or [−size, size) when it may wrap; wraps them in place.
  bool Check(int64_t* index, int64_t n, int64_t size, bool wraps, int64_t first_position) {
    for (int64_t i = 0; i < n; ++i) {
      if (wraps && index[i] < 0 && index[i] >= -size) {
        index[i] += size;
      } else if (index[i] < 0 || index[i] >= size) {
        const std::lock_guard lock(mutex_);
        if (first_position + i < position_) {
          position_ = first_position + i;
          value_ = index[i];
        }
        return false;
      }
    }
    return true;
  }
  IndexResult Result(int dim, int64_t size) const {
    if (position_ == std::numeric_limits<int64_t>::max()) return {};
    return BadIndex{value_, position_, dim, size};
  }

 private:
  std::mutex mutex_;
  int64_t position_ = std::numeric_limits<int64_t>::max();
  int64_t value_ = 0;
};

inline IndexResult LoadIndices(const Tensor& index, int64_t size, bool wraps, int dim, int64_t* out) {
  LoadDense(index, out);
  FirstBad bad;
  bad.Check(out, index.Numel(), size, wraps, 0);
  return bad.Result(dim, size);
}

// The index space of advanced indexing: positions (the broadcast shape of the indices) times a slice of the other
// dimensions, with the strides of the other tensor (out or values).
struct Indexed {
  int64_t count = 1;        // positions
  Walk<1> positions;        // offset in other
  Walk<2> slice;            // offset in self, in other

  void Build(const Tensor& self, std::span<const Tensor* const> indices, const Tensor& other) {
    int first = -1, last = -1, given = 0;
    const Tensor* shape = nullptr;
    for (int d = 0; d < static_cast<int>(indices.size()); ++d) {
      if (indices[static_cast<size_t>(d)] == nullptr) continue;
      if (first < 0) first = d;
      last = d;
      ++given;
      shape = indices[static_cast<size_t>(d)];
    }
    const bool neighbours = given > 0 && last - first + 1 == given;
    const int at = neighbours ? first : 0;  // where the index dimensions stand in other
    const int width = shape != nullptr ? shape->rank : 0;
    for (int k = 0; k < width; ++k) {
      positions.Add(shape->shape[static_cast<size_t>(k)], {other.strides[static_cast<size_t>(at + k)]});
      count *= shape->shape[static_cast<size_t>(k)];
    }
    int next = neighbours ? 0 : width;
    for (int d = 0; d < self.rank; ++d) {
      if (d < static_cast<int>(indices.size()) && indices[static_cast<size_t>(d)] != nullptr) {
        if (neighbours && d == first) next += width;
        continue;
      }
      const auto i = static_cast<size_t>(d);
      slice.Add(self.shape[i], {self.strides[i], other.strides[static_cast<size_t>(next++)]});
    }
    positions.Merge();
    slice.Merge();
  }

  // Offset in self of each position.
  IndexResult Places(const Tensor& self, std::span<const Tensor* const> indices, int64_t* places) const {
    std::fill(places, places + count, int64_t{0});
    std::vector<int64_t> one(static_cast<size_t>(count));
    for (int d = 0; d < static_cast<int>(indices.size()); ++d) {
      const Tensor* index = indices[static_cast<size_t>(d)];
      if (index == nullptr) continue;
      const auto i = static_cast<size_t>(d);
      if (auto bad = LoadIndices(*index, self.shape[i], true, d, one.data())) return bad;
      for (int64_t j = 0; j < count; ++j) places[j] += one[static_cast<size_t>(j)] * self.strides[i];
    }
    return {};
  }
};

}  // namespace npu::simd
