// Saturation mode (aclrtSetDeviceSatMode): what an operator has written is brought into the range of its type.
#pragma once

#include "base/task/parallel.h"
#include "tensor/tensor.h"

namespace npu::ops {

// Infinite elements become the largest of their sign, those that are no numbers 0. Whether there were any. Types that hold
// neither are left alone.
bool Saturate(const Tensor& t, Parallel& parallel);

}  // namespace npu::ops
