// Which bytes a view names, as runs: merged where the strides allow, in ascending order where the view is dense.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "device/strict/strict.h"

namespace npu::strict {

class Pattern {
 public:
  explicit Pattern(const View& view) {
    begin_ = reinterpret_cast<uintptr_t>(view.local);
    run_ = view.item;
    if (begin_ == 0) run_ = 0;
    for (size_t d = 0; d < view.shape.size() && run_ != 0; ++d) {
      const auto size = static_cast<uint64_t>(view.shape[d]), step = static_cast<uint64_t>(view.strides[d]) * view.item;
      if (size == 0) run_ = 0;
      if (size > 1 && step != 0 && rank_ < static_cast<int>(dims_.size())) dims_[rank_++] = {size, step};
    }
    if (run_ == 0) rank_ = 0;
    // Innermost first: a permuted view of dense memory becomes one run.
    std::sort(dims_.begin(), dims_.begin() + rank_, [](const Dim& a, const Dim& b) { return a.step < b.step; });
    int kept = 0;
    for (int d = 0; d < rank_; ++d) {
      Dim& dim = dims_[d];
      if (kept == 0 && dim.step <= run_) {
        run_ += (dim.size - 1) * dim.step;
      } else if (kept > 0 && dim.step == dims_[kept - 1].size * dims_[kept - 1].step) {
        dims_[kept - 1].size *= dim.size;
      } else {
        dims_[kept++] = dim;
      }
    }
    rank_ = kept;
    hull_ = run_;
    for (int d = 0; d < rank_; ++d) {
      runs_ *= dims_[d].size;
      hull_ += (dims_[d].size - 1) * dims_[d].step;
    }
    if (run_ == 0) runs_ = 0;
  }

  uintptr_t begin() const { return begin_; }
  uint64_t hull() const { return hull_; }  // bytes from the first to behind the last
  uint64_t bytes() const { return runs_ * run_; }
  uint64_t runs() const { return runs_; }

  // f(first address, bytes) for each run, until it returns false.
  template <class F>
  void Each(F&& f) const {
    if (runs_ == 0) return;
    std::array<uint64_t, kDims> at{};
    uintptr_t here = begin_;
    while (true) {
      if (!f(here, run_)) return;
      int d = 0;
      for (; d < rank_; ++d) {
        here += dims_[d].step;
        if (++at[d] < dims_[d].size) break;
        here -= dims_[d].step * dims_[d].size;
        at[d] = 0;
      }
      if (d == rank_) return;
    }
  }

 private:
  static constexpr int kDims = 8;
  struct Dim {
    uint64_t size, step;
  };
  uintptr_t begin_ = 0;
  uint64_t run_ = 0, hull_ = 0, runs_ = 1;
  int rank_ = 0;
  std::array<Dim, kDims> dims_{};
};

}  // namespace npu::strict
