// Exact sums of products of bytes.
#pragma once

#include "ops/core/op_def.h"

namespace npu::ops::quant {

// sums = a @ b for int8 matrices of any strides; sums is dense [m, n].
Status IntegerProduct(const Call& c, const Tensor& a, const Tensor& b, int32_t* sums);

}  // namespace npu::ops::quant
