#include "ops/rnn/layers.h"

#include "tensor/shape.h"

namespace npu::ops::recurrent {

Tensor TimeMajor(const Tensor& t, bool batch_first) {
  Tensor s = t;
  if (batch_first && t.rank == 3) std::swap(s.shape[0], s.shape[1]), std::swap(s.strides[0], s.strides[1]);
  return s;
}

Status PlanNetwork(std::string_view op, const Tensor& input, std::span<const Tensor> params, bool biased,
                   int64_t layers, bool both, bool batch_first, int64_t blocks, Network* net) {
  net->layers = layers, net->directions = both ? 2 : 1, net->blocks = blocks, net->biased = biased,
  net->batch_first = batch_first;
  if (input.rank != 2 && input.rank != 3) {
    return Error(Code::kInvalidParam, "{}: input has {} dimensions.", op, input.rank)
        .Remedy("Pass [steps, batch, features], or packed rows.");
  }
  if (layers < 1 || static_cast<int64_t>(params.size()) != net->Cells() * net->PerCell()) {
    return Error(Code::kInvalidParam, "{}: params has {} tensors for {} layers.", op, params.size(), layers)
        .Remedy("Pass {} for each direction of each layer.", net->PerCell());
  }
  if (params[1].rank != 2)
    return Error(Code::kInvalidParam, "{}: params[1] has shape {}.", op, ShapeText(params[1].Shape()))
        .Remedy("It is a matrix.");
  net->hidden = params[1].shape[1];
  int64_t features = SizeAt(input, 0);
  for (int64_t cell = 0; cell < net->Cells(); ++cell) {
    if (cell > 0 && cell % net->directions == 0) features = net->hidden * net->directions;
    const int64_t rows = blocks * net->hidden;
    const Dims want[4] = {{2, {rows, features}}, {2, {rows, net->hidden}}, {1, {rows}}, {1, {rows}}};
    for (int64_t k = 0; k < net->PerCell(); ++k) {
      const Tensor& t = params[U(cell * net->PerCell() + k)];
      if (npu::SameShape(t.Shape(), want[k].Span()) && IsFloat(t.dtype)) continue;
      return Error(Code::kInvalidParam, "{}: params[{}] is {} of shape {}.", op, cell * net->PerCell() + k,
                   Name(t.dtype), ShapeText(t.Shape()))
          .Remedy("It is of a float type and of shape {}.", ShapeText(want[k].Span()));
    }
  }
  return {};
}

Status ReadSteps(std::string_view op, const Tensor& input, const Tensor* batch_sizes, Parallel& parallel,
                 Network* net) {
  const Tensor x = TimeMajor(input, net->batch_first);
  if (batch_sizes == nullptr) {
    if (x.rank != 3)
      return Error(Code::kInvalidParam, "{}: input has {} dimensions and there are no batchSizes.", op, x.rank)
          .Remedy("Pass three dimensions.");
    net->steps = rnn::Steps::Even(x.shape[0], x.shape[1]);
    return {};
  }
  const Values<int64_t> sizes(*batch_sizes, parallel);
  rnn::Steps& s = net->steps;
  int64_t next = 0;
  for (int64_t t = 0; t < sizes.size(); ++t) {
    if (sizes[t] < 1 || (t > 0 && sizes[t] > sizes[t - 1])) {
      return Error(Code::kTaskException, "{}: batchSizes[{}] is {}.", op, t, sizes[t])
          .Remedy("Batches are positive and never grow.");
    }
    s.offset.push_back(next);
    s.batch.push_back(sizes[t]);
    next += x.rank == 3 ? x.shape[1] : sizes[t];
  }
  s.sequences = s.batch.empty() ? 0 : s.batch[0];
  s.rows = x.rank == 3 ? x.shape[0] * x.shape[1] : x.shape[0];
  if (x.rank == 3) s.sequences = x.shape[1];
  if (next > s.rows)
    return Error(Code::kTaskException, "{}: batchSizes name {} rows of {}.", op, next, s.rows)
        .Remedy("They add up to the rows of input.");
  return {};
}

}  // namespace npu::ops::recurrent
