#include "kernels/conv/depthwise.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/conv/depthwise.cc"
#include "hwy/foreach_target.h"

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace npu::conv::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

void Forward(const float* row, const int64_t* offset, const float* weight, int64_t taps, int64_t n, float bias,
             bool overread, float* out) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t w = 0;
  for (; w + lanes <= n; w += lanes) {
    V acc = hn::Zero(d);
    for (int64_t t = 0; t < taps; ++t) acc = hn::MulAdd(hn::Set(d, weight[t]), hn::LoadU(d, row + offset[t] + w), acc);
    hn::StoreU(hn::Add(acc, hn::Set(d, bias)), d, out + w);
  }
  if (w < n && overread) {
    V acc = hn::Zero(d);
    for (int64_t t = 0; t < taps; ++t) acc = hn::MulAdd(hn::Set(d, weight[t]), hn::LoadU(d, row + offset[t] + w), acc);
    HWY_ALIGN float rest[HWY_LANES(float)];
    hn::Store(hn::Add(acc, hn::Set(d, bias)), d, rest);
    for (int64_t i = 0; w < n; ++i, ++w) out[w] = rest[i];
  }
  for (; w < n; ++w) {
    float acc = 0;
    for (int64_t t = 0; t < taps; ++t) acc += weight[t] * row[offset[t] + w];
    out[w] = acc + bias;
  }
}

void Weight(const float* dy, const float* row, const int64_t* offset, int64_t taps, int64_t n, double* sum) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t t = 0; t < taps; ++t) {
    const float* x = row + offset[t];
    V acc = hn::Zero(d);
    int64_t w = 0;
    for (; w + lanes <= n; w += lanes) acc = hn::MulAdd(hn::LoadU(d, dy + w), hn::LoadU(d, x + w), acc);
    float total = hn::GetLane(hn::SumOfLanes(d, acc));
    for (; w < n; ++w) total += dy[w] * x[w];
    sum[t] += static_cast<double>(total);
  }
}

DepthwiseRows MakeRows() { return {Forward, Weight}; }

}  // namespace npu::conv::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace npu::conv {
namespace {
HWY_EXPORT(MakeRows);
}

const DepthwiseRows& Depthwise() {
  static const DepthwiseRows table = HWY_DYNAMIC_DISPATCH(MakeRows)();
  return table;
}

}  // namespace npu::conv
#endif
