// Batch normalisation in parts, so that the synchronised form can exchange sums between cards. x is [batch, channels, …];
// dense NCHW…, channels-last and [batch, channels] layouts are used as they are, others are copied. Statistics are f64.
#pragma once

#include <vector>

#include "base/task/parallel.h"
#include "tensor/tensor.h"

namespace npu::simd {

using Channels = std::vector<double>;  // one value for each channel

int64_t ChannelCount(const Tensor& x);
// Elements of one channel.
int64_t ChannelSize(const Tensor& x);

void ChannelMoments(const Tensor& x, Channels* mean, Channels* variance, Parallel& parallel);   // variance over n
void ChannelSums(const Tensor& x, Channels* sum, Channels* square_sum, Parallel& parallel);
// Σ grad and Σ grad·(x − mean).
void ChannelGradSums(const Tensor& grad, const Tensor& x, const Channels& mean, Channels* sum, Channels* dot,
                     Parallel& parallel);
// out = x·a + b
void ChannelAffine(const Tensor& x, const Channels& a, const Channels& b, const Tensor& out, Parallel& parallel);
// out = grad·a + x·b + c
void ChannelMix(const Tensor& grad, const Channels& a, const Tensor& x, const Channels& b, const Channels& c,
                const Tensor& out, Parallel& parallel);

}  // namespace npu::simd
