// Exact sums of products of bytes.
#pragma once

#include "ops/core/op_def.h"

namespace npu::ops::quant {

// sums = a @ b for int8 matrices of any strides; sums is dense [m, n].
Status IntegerProduct(const Call& c, const Tensor& a, const Tensor& b, int32_t* sums);

// int32 sums go round at their ends.
inline void AddTo(int32_t& sum, int64_t v) {
  sum = static_cast<int32_t>(static_cast<uint32_t>(sum) + static_cast<uint32_t>(v));
}

}  // namespace npu::ops::quant
