// The loop nest over several tensors of one shape, with as few dimensions as possible.
//
//   TileLoop loop({&out, &a, &b});      // operand 0 is written; the others are expanded to its shape
//   loop.inner(); loop.outer();         // elements of the innermost dimension; how often it is walked
//   loop.Offset(row, operand);          // byte offset of walk number `row`
//
// Dimensions of size 1 vanish, the rest are ordered by operand 0's strides, and neighbours are merged when every operand
// steps evenly over both. Strides are bytes.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>

#include "tensor/tensor.h"

namespace npu {

inline constexpr int kMaxOperands = 6;

class TileLoop {
 public:
  TileLoop(std::initializer_list<const Tensor*> operands) : TileLoop(std::span(operands.begin(), operands.size())) {}
  explicit TileLoop(std::span<const Tensor* const> operands);

  int rank() const { return rank_; }
  int64_t numel() const { return numel_; }
  int64_t inner() const { return rank_ == 0 ? 1 : shape_[static_cast<size_t>(rank_ - 1)]; }
  int64_t outer() const { return inner() == 0 ? 0 : numel_ / inner(); }
  int64_t size(int dim) const { return shape_[static_cast<size_t>(dim)]; }
  int64_t stride(int dim, int operand) const { return strides_[static_cast<size_t>(operand)][static_cast<size_t>(dim)]; }
  int64_t inner_stride(int operand) const { return rank_ == 0 ? 0 : stride(rank_ - 1, operand); }
  // One run without gaps from first to last element.
  bool Flat(int operand, int item_bytes) const {
    return rank_ == 0 || (rank_ == 1 && inner_stride(operand) == item_bytes);
  }
  int64_t Offset(int64_t row, int operand) const;

 private:
  bool OneRun(std::span<const Tensor* const> operands);
  int rank_ = 0;
  int operands_ = 0;
  int64_t numel_ = 1;
  std::array<int64_t, kKernelRank> shape_{};
  std::array<std::array<int64_t, kKernelRank>, kMaxOperands> strides_{};
};

}  // namespace npu
