// Rows of convolutions whose groups read one channel: too little work for a product, done straight from the window.
#pragma once

#include <cstdint>

namespace npu::conv {

struct DepthwiseRows {
  // out[w] = bias + sum over taps of weight[t] * row[offset[t] + w]; reads up to a vector behind n when `overread`.
  void (*forward)(const float* row, const int64_t* offset, const float* weight, int64_t taps, int64_t n, float bias,
                  bool overread, float* out);
  // sum[t] += the sum over w of dy[w] * row[offset[t] + w].
  void (*weight)(const float* dy, const float* row, const int64_t* offset, int64_t taps, int64_t n, double* sum);
};

const DepthwiseRows& Depthwise();

}  // namespace npu::conv
