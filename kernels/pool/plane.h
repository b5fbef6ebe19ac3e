// Planes of an image batch as f32: pooling and resizing work on one plane at a time, so the type and the strides of the
// tensors matter only when a plane is read or written.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>

#include "base/status/status.h"
#include "base/task/parallel.h"
#include "kernels/gemm/scratch.h"
#include "tensor/dtype.h"

namespace npu::pool {

struct Image {
  void* data = nullptr;
  DType dtype = DType::none;  // f32, f16, bf16
  int64_t n = 1, c = 1, h = 1, w = 1;
  std::array<int64_t, 4> stride{};  // n, c, h, w in elements

  int64_t Planes() const { return n * c; }
  int64_t PlaneSize() const { return h * w; }
  // The plane where it lies, null unless it is dense f32.
  float* Dense(int64_t plane) const;
  void Load(int64_t plane, float* dst) const;
  void Store(int64_t plane, const float* src) const;
};

bool Supports(DType t);

// f(plane, const float* x, float* y) for every plane of x and y, which have the same number of them.
template <class F>
Status ForPlanes(Parallel& parallel, const Image& x, const Image& y, const F& f) {
  constexpr int64_t kElements = 8192;  // worth a task
  const int64_t size = std::max<int64_t>(1, x.PlaneSize() + y.PlaneSize());
  std::atomic<bool> ok{true};
  parallel.For(x.Planes(), std::max<int64_t>(1, kElements / size), [&](int64_t begin, int64_t end) {
    gemm::Scratch scratch(static_cast<size_t>(size) * sizeof(float));
    if (!scratch) return ok.store(false, std::memory_order_relaxed);
    for (int64_t p = begin; p < end; ++p) {
      const float* from = x.Dense(p);
      if (from == nullptr) {
        x.Load(p, scratch.As());
        from = scratch.As();
      }
      float* dense = y.Dense(p);
      float* to = dense != nullptr ? dense : scratch.As() + x.PlaneSize();
      f(p, from, to);
      if (dense == nullptr) y.Store(p, to);
    }
  });
  return ok.load(std::memory_order_relaxed) ? Status() : gemm::NoScratch();
}

}  // namespace npu::pool
