#include <algorithm>
#include <vector>

#include "kernels/simd/index/index.h"
#include "kernels/simd/rows/dense.h"
#include "kernels/simd/rows/scratch.h"

namespace npu::simd {
namespace {

// NaN sorts behind everything.
template <class C>
bool Before(C a, C b) { return a < b || (a == a && b != b); }

template <class C>
void Run(const Tensor& sorted, const Tensor& values, bool right, const Tensor* sorter, const Tensor& out, Parallel& parallel) {
  const int64_t width = sorted.rank == 0 ? 1 : sorted.shape[static_cast<size_t>(sorted.rank - 1)];
  Scratch<C> table(sorted.Numel()), wanted(values.Numel());
  LoadDense(sorted, table.data());
  LoadDense(values, wanted.data());
  if (sorter != nullptr) {
    Scratch<int64_t> order(sorter->Numel());
    LoadDense(*sorter, order.data());
    Scratch<C> row(width);
    for (int64_t first = 0; first < sorted.Numel(); first += width) {
      for (int64_t i = 0; i < width; ++i) row[i] = table[first + std::clamp<int64_t>(order[first + i], 0, width - 1)];
      std::copy(row.data(), row.data() + width, table.data() + first);
    }
  }
  const int64_t per_row = sorted.rank <= 1 || values.rank == 0 ? values.Numel() : values.shape[static_cast<size_t>(values.rank - 1)];
  Scratch<int64_t> place(values.Numel());
  parallel.For(values.Numel(), 2048, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const C* row = table.data() + (sorted.rank <= 1 ? 0 : i / per_row * width);
      const C v = wanted[i];
      const C* at = right ? std::upper_bound(row, row + width, v, Before<C>) : std::lower_bound(row, row + width, v, Before<C>);
      place[i] = at - row;
    }
  });
  StoreDense(place.data(), out);
}

}  // namespace

void SearchSorted(const Tensor& sorted, const Tensor& values, bool right, const Tensor* sorter, const Tensor& out,
                  Parallel& parallel) {
  if (values.Numel() == 0) return;
  if (IsFloat(sorted.dtype) || IsFloat(values.dtype)) Run<double>(sorted, values, right, sorter, out, parallel);
  else Run<int64_t>(sorted, values, right, sorter, out, parallel);
}

}  // namespace npu::simd
