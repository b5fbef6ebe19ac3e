// What a kernel sees of a tensor: an address it may use, a type, a shape and strides in elements. No ownership.
//
// Strides may be zero (expanded), in any order (permuted) and, for inputs, overlapping; never negative. `data` is the
// address of element 0, translated from the client's device address, storage offset applied.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "tensor/dtype.h"

namespace npu {

inline constexpr int kMaxRank = 8;  // what aclnn accepts
// What kernels hold: a complex tensor of kMaxRank dimensions as a real one has its two parts as one dimension more.
inline constexpr int kKernelRank = kMaxRank + 1;

struct Tensor {
  void* data = nullptr;
  DType dtype = DType::none;
  int8_t rank = 0;
  std::array<int64_t, kKernelRank> shape{};
  std::array<int64_t, kKernelRank> strides{};

  std::span<const int64_t> Shape() const { return {shape.data(), static_cast<size_t>(rank)}; }
  std::span<const int64_t> Strides() const { return {strides.data(), static_cast<size_t>(rank)}; }
  int64_t Numel() const {
    int64_t n = 1;
    for (int d = 0; d < rank; ++d) n *= shape[static_cast<size_t>(d)];
    return n;
  }
  // Row-major without gaps; dimensions of size 1 do not count. True for empty and 0-d tensors.
  bool Contiguous() const {
    int64_t expect = 1;
    for (int d = rank - 1; d >= 0; --d) {
      const auto i = static_cast<size_t>(d);
      if (shape[i] == 0) return true;
      if (shape[i] != 1 && strides[i] != expect) return false;
      expect *= shape[i];
    }
    return true;
  }
  template <class T>
  T* As() const { return static_cast<T*>(data); }
};

}  // namespace npu
