// Random numbers by Philox 4x32-10, a function of (seed, offset, element): the same for any number of workers, and streams
// whose offsets differ never meet. The key is the seed; the counter is (block of four words, offset). Element i of a fill
// uses words i (or 2i and 2i + 1 where 64 bits are needed).
#pragma once

#include <cstdint>

#include "base/task/parallel.h"
#include "tensor/tensor.h"

namespace npu::simd {

struct Philox {
  uint64_t seed, offset;
};

// 4·blocks words, from block `first` on.
void PhiloxWords(Philox key, uint64_t first, int64_t blocks, uint32_t* out);

void FillUniform(Philox key, double from, double to, const Tensor& out, Parallel& parallel);     // [from, to)
void FillNormal(Philox key, double mean, double deviation, const Tensor& out, Parallel& parallel);
// mean and deviation may be null (then the numbers count); they have out's shape, stride 0 where broadcast.
void FillNormal(Philox key, const Tensor* mean, double mean_number, const Tensor* deviation, double deviation_number,
                const Tensor& out, Parallel& parallel);
void FillExponential(Philox key, double rate, const Tensor& out, Parallel& parallel);
// Whole numbers in [from, from + range); range 0 means all 2^64.
void FillIntegers(Philox key, int64_t from, uint64_t range, const Tensor& out, Parallel& parallel);
// 1 with probability p; p may be a tensor of out's shape.
void FillBernoulli(Philox key, double p, const Tensor& out, Parallel& parallel);
void FillBernoulli(Philox key, const Tensor& p, const Tensor& out, Parallel& parallel);
void FillPermutation(Philox key, int64_t n, const Tensor& out, Parallel& parallel);

enum class SampleFault : uint8_t { kNone, kBadProbability, kZeroSum, kTooFew };
// probability is [C] or [N, C], out [samples] or [N, samples].
SampleFault Multinomial(Philox key, const Tensor& probability, int64_t samples, bool replacement, const Tensor& out,
                        Parallel& parallel);

// Bit i (lowest first) of the mask is 1, keep, with probability 1 − p. Fills whole bytes.
void DropoutMask(Philox key, double p, int64_t bytes, uint8_t* mask, Parallel& parallel);
// out = x where its bit is set, times 1/(1 − p); 0 elsewhere.
void ApplyDropoutMask(const Tensor& x, const uint8_t* mask, double p, const Tensor& out, Parallel& parallel);

}  // namespace npu::simd
