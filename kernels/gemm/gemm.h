// Matrix products of any two strided operands: c = alpha * a @ b + beta * self, batched.
//
//   gemm::Problem p{.m = 8, .n = 16, .k = 4};
//   p.a = {x, DType::f32, /*row=*/4, /*col=*/1};  p.b = {w, DType::f32, 1, 4};  p.c = {y, DType::f32, 16, 1};
//   NPU_TRY(gemm::Gemm(parallel, p));
//
// f16 and bf16 are multiplied and summed in f32 and rounded once, and may be mixed with f32. f64, complex and the
// integer types need all operands in one type; integers wrap, c64 is summed in c128. With beta == 0, `self` is not
// read. k == 0 gives beta * self. c may be the memory of self when both have the same strides; it must not overlap a or
// b. The result does not depend on the number of workers. The only failure is that the host has no memory for packing.
#pragma once

#include <array>
#include <complex>
#include <cstdint>

#include "base/status/status.h"
#include "base/task/parallel.h"
#include "tensor/tensor.h"

namespace npu::gemm {

// A matrix for each index of the batch. Strides are in elements and may be 0.
struct Operand {
  void* data = nullptr;
  DType dtype = DType::none;
  int64_t row = 0, col = 0;
  std::array<int64_t, kMaxRank> batch{};
};

struct Problem {
  int64_t m = 0, n = 0, k = 0;
  int batch_rank = 0;
  std::array<int64_t, kMaxRank> batch_shape{};
  Operand a, b, c, self;
  std::complex<double> alpha = 1, beta = 0;  // the imaginary parts count for complex types only
};

// True when Gemm computes with these types.
bool Supports(DType a, DType b, DType c);

Status Gemm(Parallel& parallel, const Problem& problem);

}  // namespace npu::gemm
