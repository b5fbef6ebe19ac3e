// Moving elements without looking at them: every one of these is a copy between two views.
#pragma once

#include <cstdint>
#include <span>

#include "base/task/parallel.h"
#include "tensor/tensor.h"

namespace npu::simd {

// The part [begin, begin + length) of dimension `dim`.
Tensor Slice(const Tensor& t, int dim, int64_t begin, int64_t length);

// Parts are laid side by side along `dim`, converted to out's type. Parts of rank 1 without elements do not count.
void Cat(std::span<const Tensor> parts, int dim, const Tensor& out, Parallel& parallel);
void Split(const Tensor& self, int dim, std::span<const Tensor> parts, Parallel& parallel);
// out's shape is self's (padded with 1 in front) times repeats.
void Repeat(const Tensor& self, std::span<const int64_t> repeats, const Tensor& out, Parallel& parallel);
// Each slice along `dim` `times` in a row.
void RepeatEach(const Tensor& self, int dim, int64_t times, const Tensor& out, Parallel& parallel);
void Flip(const Tensor& self, uint32_t dims, const Tensor& out, Parallel& parallel);
// shift[d] places towards the end, wrapping.
void Roll(const Tensor& self, std::span<const int64_t> shift, const Tensor& out, Parallel& parallel);
// pad[2k], pad[2k + 1] are before and after dimension rank − 1 − k; negative ones cut. value is of the tensor's type.
void ConstantPad(const Tensor& self, std::span<const int64_t> pad, const void* value, const Tensor& out, Parallel& parallel);
// Keeps what is on or below (lower) or above diagonal k of the last two dimensions, zero elsewhere. out may be self.
void Triangle(const Tensor& self, bool lower, int64_t k, const Tensor& out, Parallel& parallel);

}  // namespace npu::simd
