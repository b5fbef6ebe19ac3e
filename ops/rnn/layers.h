// LSTM and GRU as operators see them: layers and directions of a network, weights as lists in torch's order (wx, wh,
// and the two biases when there are any, for each direction of each layer).
#pragma once

#include <memory>
#include <vector>

#include "kernels/rnn/rnn.h"
#include "ops/common/values.h"
#include "ops/core/rule.h"

namespace npu::ops::recurrent {

// Lists whose types and shapes Does() converts to.
inline constexpr RuleKind kAnyLists{"any_shapes", rule::check::Free, 0b111111, 0b111111};

inline size_t U(int64_t i) { return static_cast<size_t>(i); }

struct Network {
  int64_t layers = 1, directions = 1, hidden = 0, blocks = 4;
  bool biased = true, batch_first = false;
  rnn::Steps steps;

  int64_t PerCell() const { return biased ? 4 : 2; }
  int64_t Cells() const { return layers * directions; }
};

// A list argument as dense values, one array an element.
template <class T>
class Lists {
 public:
  Lists(std::span<const Tensor> list, Parallel& parallel) {
    for (const Tensor& t : list) values_.push_back(std::make_unique<Values<T>>(t, parallel));
  }
  const T* operator[](int64_t i) const { return values_[U(i)]->data(); }

 private:
  std::vector<std::unique_ptr<Values<T>>> values_;
};
// The same for results; a list that is absent gets memory of its own.
template <class T>
class ResultLists {
 public:
  ResultLists(std::span<const Tensor> list, int64_t count, int64_t size, Parallel& parallel) {
    for (int64_t i = 0; i < count; ++i) {
      const bool given =
          i < static_cast<int64_t>(list.size()) && list[U(i)].dtype != DType::none && list[U(i)].Numel() >= size;
      own_.emplace_back(given ? 0 : U(size));
      results_.push_back(given ? std::make_unique<Results<T>>(list[U(i)], parallel) : nullptr);
    }
  }
  T* operator[](int64_t i) { return results_[U(i)] ? results_[U(i)]->data() : own_[U(i)].data(); }

 private:
  std::vector<std::unique_ptr<Results<T>>> results_;
  std::vector<std::vector<T>> own_;
};

// Reads sizes from the arguments and checks the weights. Packed input without sizes of its own: `packed` is the tensor
// of batch sizes, whose values are read by ReadSteps when the call runs.
Status PlanNetwork(std::string_view op, const Tensor& input, std::span<const Tensor> params, bool biased,
                   int64_t layers, bool both, bool batch_first, int64_t blocks, Network* net);
Status ReadSteps(std::string_view op, const Tensor& input, const Tensor* batch_sizes, Parallel& parallel, Network* net);

template <class T>
rnn::Cell<T> CellOf(const Network& net, const Lists<T>& params, int64_t cell, int64_t input) {
  const int64_t at = cell * net.PerCell();
  rnn::Cell<T> c;
  c.input = input, c.hidden = net.hidden;
  c.wx = {params[at], input, 1};
  c.wh = {params[at + 1], net.hidden, 1};
  if (net.biased) c.bx = params[at + 2], c.bh = params[at + 3];
  return c;
}

// The input with time in front.
Tensor TimeMajor(const Tensor& t, bool batch_first);

// What a layer above reads: both directions side by side, [rows, directions * hidden].
template <class T>
std::vector<T> SideBySide(const Network& net, const std::vector<const T*>& states) {
  std::vector<T> out(U(net.steps.rows * net.directions * net.hidden));
  for (int64_t d = 0; d < net.directions; ++d)
    for (int64_t r = 0; r < net.steps.rows; ++r)
      std::copy(states[U(d)] + r * net.hidden, states[U(d)] + (r + 1) * net.hidden,
                out.data() + (r * net.directions + d) * net.hidden);
  return out;
}

}  // namespace npu::ops::recurrent
