// Weights that may lie in FRACTAL_NZ, for operators declared with .Imm(kTakesFormats).
#pragma once

#include "ops/common/format.h"
#include "ops/linalg/product.h"

namespace npu::ops {

struct Weight {
  bool packed = false;
  Tensor base;  // the matrices as the storage holds them
  format::Layout layout;
  uint64_t at = 0;  // in scratch
};

// Phase one: checks the format and asks for scratch.
Status ReadWeight(Planning& p, TensorToken weight, Weight* out);
// Phase two: the weight as a plain tensor.
Tensor PlainWeight(const Call& c, TensorToken weight, const Weight& w);

}  // namespace npu::ops
