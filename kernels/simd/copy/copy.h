// Copies between strided tensors of one shape, with conversion, and dense stand-ins for kernels that want dense memory.
//
//   DenseIn x(self, parallel);            // self itself when it is contiguous, else a dense copy
//   DenseOut y(out, parallel);            // writes back when it goes out of scope
//   LayerNormRows(*x, …, *y);
#pragma once

#include <cstddef>
#include <optional>

#include "base/task/parallel.h"
#include "kernels/simd/rows/scratch.h"
#include "kernels/simd/rows/walk.h"
#include "tensor/tensor.h"

namespace npu::simd {

// dst[i] = src[i]; the shapes are equal. Source strides may be zero. A complex number becomes a real one by its
// real part, and a truth value by both.
void Copy(const Tensor& src, const Tensor& dst, Parallel& parallel);
// The same for an index space of any form: offsets in elements of dst (0) and src (1), strides of either sign.
void CopyWalk(Walk<2> walk, const void* src, DType from, void* dst, DType to, Parallel& parallel);
// dst[i] = *value, whose type is the tensor's.
void Fill(const void* value, const Tensor& dst, Parallel& parallel);

// The tensor seen with row-major strides over `data`.
Tensor DenseLike(const Tensor& t, void* data);

class DenseIn {
 public:
  DenseIn(const Tensor& t, Parallel& parallel);
  const Tensor& operator*() const { return tensor_; }
  const Tensor* operator->() const { return &tensor_; }

 private:
  std::optional<Scratch<std::byte>> scratch_;
  Tensor tensor_;
};

// With `loads` the memory starts with what the tensor holds (for results that are updated in place).
class DenseOut {
 public:
  DenseOut(const Tensor& t, Parallel& parallel, bool loads = false);
  ~DenseOut();
  DenseOut(const DenseOut&) = delete;
  DenseOut& operator=(const DenseOut&) = delete;
  const Tensor& operator*() const { return tensor_; }
  const Tensor* operator->() const { return &tensor_; }

 private:
  std::optional<Scratch<std::byte>> scratch_;
  Tensor original_;
  Tensor tensor_;
  Parallel& parallel_;
};

}  // namespace npu::simd
