// What attention does to rows of scores, vectorised for the host.
#pragma once

#include <cstdint>

namespace npu::attention {

struct RowKernels {
  // s[j] = s[j] * scale + bias[j] * bias_scale (bias may be null), minus infinity where mask[j * mask_step] is not 0
  // (mask may be null); returns the largest.
  float (*score)(float* s, int64_t n, float scale, const float* bias, float bias_scale, const uint8_t* mask,
                 int64_t mask_step);
  // s[j] = exp(s[j] - shift); returns the sum.
  float (*exponent)(float* s, int64_t n, float shift);
  // s[j] *= factor.
  void (*scale)(float* s, int64_t n, float factor);
  // ds[j] = p[j] * (ds[j] - delta) * factor.
  void (*gradient)(float* ds, const float* p, int64_t n, float delta, float factor);
  // Sum of a[j] * b[j].
  float (*dot)(const float* a, const float* b, int64_t n);
};

const RowKernels& Rows();

}  // namespace npu::attention
