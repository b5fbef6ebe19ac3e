// Sorting along one dimension. NaN counts as largest; equal elements keep their order.
#pragma once

#include <cstdint>
#include <vector>

#include "base/task/parallel.h"
#include "tensor/tensor.h"

namespace npu::simd {

void Sort(const Tensor& x, int dim, bool descending, const Tensor& values, const Tensor& indices, Parallel& parallel);
// The k largest or smallest, best first.
void TopK(const Tensor& x, int dim, int64_t k, bool largest, const Tensor& values, const Tensor& indices, Parallel& parallel);
// The k-th smallest (k from 1). values and indices have size 1 along dim or lack it.
void KthValue(const Tensor& x, int dim, int64_t k, const Tensor& values, const Tensor& indices, Parallel& parallel);

// Distinct elements. `values` and `counts` have room for all elements and are dense; `inverse` has x's shape. Pointers may be
// null. Returns how many there are. Without `sorted_globally` only neighbours are compared (unique_consecutive).
int64_t Unique(const Tensor& x, bool sorted_globally, void* values, const Tensor* inverse, int64_t* counts);

}  // namespace npu::simd
