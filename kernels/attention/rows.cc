#include "kernels/attention/rows.h"

#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/attention/rows.cc"
#include "hwy/foreach_target.h"

#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace npu::attention::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

float Score(float* s, int64_t n, float scale, const float* bias, float bias_scale, const uint8_t* mask, int64_t step) {
  const D d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const V vscale = hn::Set(d, scale), vbias = hn::Set(d, bias_scale);
  constexpr float kMasked = -std::numeric_limits<float>::infinity();
  V best = hn::Set(d, kMasked);
  float largest = kMasked;
  int64_t j = 0;
  // A NaN score must reach the result: comparisons drop it, so it is looked for as well.
  bool nan = false;
  for (; j + lanes <= n; j += lanes) {
    V x = hn::Mul(hn::LoadU(d, s + j), vscale);
    if (bias != nullptr) x = hn::MulAdd(hn::LoadU(d, bias + j), vbias, x);
    hn::StoreU(x, d, s + j);
    if (mask != nullptr) {
      for (int64_t q = 0; q < lanes; ++q) {
        if (mask[(j + q) * step] != 0) s[j + q] = kMasked;
      }
      x = hn::LoadU(d, s + j);
    }
    nan = nan || !hn::AllFalse(d, hn::IsNaN(x));
    best = hn::Max(best, x);
  }
  for (; j < n; ++j) {
    s[j] = s[j] * scale + (bias != nullptr ? bias[j] * bias_scale : 0.0f);
    if (mask != nullptr && mask[j * step] != 0) s[j] = kMasked;
    nan = nan || s[j] != s[j];
    if (s[j] > largest) largest = s[j];
  }
  if (nan) return std::numeric_limits<float>::quiet_NaN();
  const float vector_best = hn::GetLane(hn::MaxOfLanes(d, best));
  return vector_best > largest ? vector_best : largest;
}

float Exponent(float* s, int64_t n, float shift) {
  const D d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const V vshift = hn::Set(d, shift);
  V sum = hn::Zero(d);
  int64_t j = 0;
  for (; j + lanes <= n; j += lanes) {
    const V x = hn::Exp(d, hn::Sub(hn::LoadU(d, s + j), vshift));
    hn::StoreU(x, d, s + j);
    sum = hn::Add(sum, x);
  }
  float total = hn::GetLane(hn::SumOfLanes(d, sum));
  for (; j < n; ++j) {
    s[j] = hn::GetLane(hn::Exp(d, hn::Set(d, s[j] - shift)));
    total += s[j];
  }
  return total;
}

void Scale(float* s, int64_t n, float factor) {
  const D d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const V f = hn::Set(d, factor);
  int64_t j = 0;
  for (; j + lanes <= n; j += lanes) hn::StoreU(hn::Mul(hn::LoadU(d, s + j), f), d, s + j);
  for (; j < n; ++j) s[j] *= factor;
}

void Gradient(float* ds, const float* p, int64_t n, float delta, float factor) {
  const D d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const V vdelta = hn::Set(d, delta), f = hn::Set(d, factor);
  int64_t j = 0;
  for (; j + lanes <= n; j += lanes) {
    const V x = hn::Mul(hn::Mul(hn::LoadU(d, p + j), f), hn::Sub(hn::LoadU(d, ds + j), vdelta));
    hn::StoreU(x, d, ds + j);
  }
  for (; j < n; ++j) ds[j] = p[j] * factor * (ds[j] - delta);
}

float Dot(const float* a, const float* b, int64_t n) {
  const D d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  V sum = hn::Zero(d);
  int64_t j = 0;
  for (; j + lanes <= n; j += lanes) sum = hn::MulAdd(hn::LoadU(d, a + j), hn::LoadU(d, b + j), sum);
  float total = hn::GetLane(hn::SumOfLanes(d, sum));
  for (; j < n; ++j) total += a[j] * b[j];
  return total;
}

RowKernels MakeRows() { return {Score, Exponent, Scale, Gradient, Dot}; }

}  // namespace npu::attention::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace npu::attention {
namespace {
HWY_EXPORT(MakeRows);
}

const RowKernels& Rows() {
  static const RowKernels table = HWY_DYNAMIC_DISPATCH(MakeRows)();
  return table;
}

}  // namespace npu::attention
#endif
