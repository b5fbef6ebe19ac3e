// The operators of the self-test: each with the call it makes, the values it is given and what it has to answer.
//
// Inputs are float32 arrays (with `halves` float16 and bfloat16 too) drawn from [low, high] by the seed; the judge
// computes in double on the host. Names are those of libopapi; what a library does not export is left out by name.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace npu::check {

// The parameters of a function, in order, as letters: t input tensor, r tensor read and written (the first input), s
// number, L list of two input tensors, o output, O list of two outputs.
struct OperatorCase {
  std::string name;
  std::string shape;
  std::function<double(double, double, double)> judge;  // of the first input, the second, the number
  double low = -2, high = 2;
  bool truth = false;       // the output is bool
  bool whole = false;       // tensors are int32
  double tolerance = 1e-4;  // relative and absolute, the vendor's own bound for float32
  bool halves = false;      // tried in float16 and bfloat16 as well
};

std::vector<OperatorCase> ElementwiseCases();

class Bench;
// What a training step calls beside the elementwise: gradients, losses, normalisation, convolution, in float32.
void Training(Bench& bench);
// Fused attention forward and backward, in one of the halves.
void Attention(Bench& bench, int type, const std::string& suffix);

}  // namespace npu::check
