#include "tensor/tile_loop.h"

#include "tensor/shape.h"

namespace npu {

TileLoop::TileLoop(std::span<const Tensor* const> operands) : operands_(static_cast<int>(operands.size())) {
  const Tensor& out = *operands[0];
  numel_ = out.Numel();
  if (numel_ == 0) {
    rank_ = 1;  // one dimension of size 0
    return;
  }
  if (OneRun(operands)) return;
  std::array<Tensor, kMaxOperands> seen;
  for (size_t k = 0; k < operands.size(); ++k)
    seen[k] = k == 0 || SameShape(operands[k]->Shape(), out.Shape()) ? *operands[k] : Expanded(*operands[k], out.Shape());

  // Outermost first: insertion sort by falling stride of the output, then of the inputs; equal ones keep their order.
  std::array<int, kKernelRank> order{};
  int n = 0;
  const auto outside = [&](int a, int b) {
    for (size_t k = 0; k < operands.size(); ++k) {
      const int64_t sa = seen[k].strides[static_cast<size_t>(a)], sb = seen[k].strides[static_cast<size_t>(b)];
      if (sa != sb && (k > 0 || (sa != 0 && sb != 0))) return sa > sb;
    }
    return a < b;
  };
  for (int d = 0; d < out.rank; ++d) {
    if (out.shape[static_cast<size_t>(d)] == 1) continue;
    int at = n++;
    while (at > 0 && outside(d, order[static_cast<size_t>(at - 1)])) {
      order[static_cast<size_t>(at)] = order[static_cast<size_t>(at - 1)];
      --at;
    }
    order[static_cast<size_t>(at)] = d;
  }

  for (int at = 0; at < n; ++at) {
    const auto d = static_cast<size_t>(order[static_cast<size_t>(at)]);
    bool merge = rank_ > 0;
    for (size_t k = 0; merge && k < operands.size(); ++k) {
      const int64_t bytes = seen[k].strides[d] * ItemSize(seen[k].dtype);
      merge = strides_[k][static_cast<size_t>(rank_ - 1)] == bytes * seen[k].shape[d];
    }
    if (!merge) shape_[static_cast<size_t>(rank_++)] = 1;
    shape_[static_cast<size_t>(rank_ - 1)] *= out.shape[d];
    for (size_t k = 0; k < operands.size(); ++k)
      strides_[k][static_cast<size_t>(rank_ - 1)] = seen[k].strides[d] * ItemSize(seen[k].dtype);
  }
}

// The common case, without ordering and merging: every operand is row-major in the output's shape, or a single 0-d number.
bool TileLoop::OneRun(std::span<const Tensor* const> operands) {
  const Tensor& out = *operands[0];
  for (const Tensor* t : operands) {
    if (t->rank == 0 && t != operands[0]) continue;
    if (!SameShape(t->Shape(), out.Shape()) || !t->Contiguous()) return false;
  }
  if (numel_ == 1) return true;  // no dimension is left
  rank_ = 1;
  shape_[0] = numel_;
  for (size_t k = 0; k < operands.size(); ++k) strides_[k][0] = operands[k]->rank == 0 ? 0 : ItemSize(operands[k]->dtype);
  return true;
}

int64_t TileLoop::Offset(int64_t row, int operand) const {
  int64_t offset = 0;
  for (int d = rank_ - 2; d >= 0; --d) {
    const int64_t s = size(d);
    offset += row % s * stride(d, operand);
    row /= s;
  }
  return offset;
}

}  // namespace npu
