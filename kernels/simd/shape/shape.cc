#include "kernels/simd/shape/shape.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "kernels/simd/copy/copy.h"
#include "kernels/simd/rows/convert.h"
#include "kernels/simd/rows/walk.h"

namespace npu::simd {
namespace {

size_t U(int d) { return static_cast<size_t>(d); }

}  // namespace

Tensor Slice(const Tensor& t, int dim, int64_t begin, int64_t length) {
  Tensor s = t;
  s.data = At(t.data, t.dtype, begin * t.strides[U(dim)]);
  s.shape[U(dim)] = length;
  return s;
}

void Cat(std::span<const Tensor> parts, int dim, const Tensor& out, Parallel& parallel) {
  int64_t at = 0;
  for (const Tensor& part : parts) {
    if (part.rank == 1 && part.shape[0] == 0) continue;
    const int64_t n = part.shape[U(dim)];
    Copy(part, Slice(out, dim, at, n), parallel);
    at += n;
  }
}

void Split(const Tensor& self, int dim, std::span<const Tensor> parts, Parallel& parallel) {
  int64_t at = 0;
  for (const Tensor& part : parts) {
    const int64_t n = part.shape[U(dim)];
    Copy(Slice(self, dim, at, n), part, parallel);
    at += n;
  }
}

void Repeat(const Tensor& self, std::span<const int64_t> repeats, const Tensor& out, Parallel& parallel) {
  Walk<2> walk;
  const int missing = out.rank - self.rank;
  for (int d = 0; d < out.rank; ++d) {
    const bool exists = d >= missing;
    const int64_t n = exists ? self.shape[U(d - missing)] : 1;
    walk.Add(repeats[U(d)], {n * out.strides[U(d)], 0});
    if (exists) walk.Add(n, {out.strides[U(d)], self.strides[U(d - missing)]});
  }
  CopyWalk(walk, self.data, self.dtype, out.data, out.dtype, parallel);
}

void RepeatEach(const Tensor& self, int dim, int64_t times, const Tensor& out, Parallel& parallel) {
  Walk<2> walk;
  for (int d = 0; d < self.rank; ++d) {
    const int64_t step = out.strides[U(d)];
    walk.Add(self.shape[U(d)], {d == dim ? times * step : step, self.strides[U(d)]});
    if (d == dim) walk.Add(times, {step, 0});
  }
  if (self.rank == 0) walk.Add(times, {out.strides[0], 0});
  CopyWalk(walk, self.data, self.dtype, out.data, out.dtype, parallel);
}

void Flip(const Tensor& self, uint32_t dims, const Tensor& out, Parallel& parallel) {
  Walk<2> walk;
  int64_t first = 0;
  for (int d = 0; d < self.rank; ++d) {
    const bool flips = (dims >> d & 1u) != 0;
    if (flips) first += (self.shape[U(d)] - 1) * self.strides[U(d)];
    walk.Add(self.shape[U(d)], {out.strides[U(d)], flips ? -self.strides[U(d)] : self.strides[U(d)]});
  }
  if (self.Numel() == 0) return;
  CopyWalk(walk, At(self.data, self.dtype, first), self.dtype, out.data, out.dtype, parallel);
}

void Roll(const Tensor& self, std::span<const int64_t> shift, const Tensor& out, Parallel& parallel) {
  if (self.Numel() == 0) return;
  // Each shifted dimension falls in two parts that change places.
  const auto roll = [&](auto&& again, Tensor from, Tensor to, int d) -> void {
    if (d == self.rank) return Copy(from, to, parallel);
    const int64_t n = self.shape[U(d)];
    const int64_t s = ((shift[U(d)] % n) + n) % n;
    if (s == 0) return again(again, from, to, d + 1);
    again(again, Slice(from, d, 0, n - s), Slice(to, d, s, n - s), d + 1);
    again(again, Slice(from, d, n - s, s), Slice(to, d, 0, s), d + 1);
  };
  roll(roll, self, out, 0);
}

void ConstantPad(const Tensor& self, std::span<const int64_t> pad, const void* value, const Tensor& out, Parallel& parallel) {
  Fill(value, out, parallel);
  Tensor from = self, to = out;
  for (size_t k = 0; 2 * k + 1 < pad.size(); ++k) {
    const int d = self.rank - 1 - static_cast<int>(k);
    const int64_t cut_front = std::max<int64_t>(0, -pad[2 * k]), cut_back = std::max<int64_t>(0, -pad[2 * k + 1]);
    const int64_t n = self.shape[U(d)] - cut_front - cut_back;
    if (n <= 0) return;
    from = Slice(from, d, cut_front, n);
    to = Slice(to, d, std::max<int64_t>(0, pad[2 * k]), n);
  }
  Copy(from, to, parallel);
}

void Triangle(const Tensor& self, bool lower, int64_t k, const Tensor& out, Parallel& parallel) {
  if (self.Numel() == 0) return;
  const int rd = self.rank - 2, cd = self.rank - 1;
  const int64_t rows = self.shape[U(rd)], cols = self.shape[U(cd)];
  Walk<2> walk;
  for (int d = 0; d + 1 < self.rank; ++d) {
    // Not merged: the row must stay visible.
    walk.size[U(walk.rank)] = self.shape[U(d)];
    walk.stride[U(walk.rank++)] = {self.strides[U(d)], out.strides[U(d)]};
  }
  const int item = ItemSize(self.dtype);
  const int64_t from_step = self.strides[U(cd)], to_step = out.strides[U(cd)];
  parallel.For(walk.Count(), RowsPerBlock(cols), [&](int64_t begin, int64_t end) {
    Walk<2> w = walk;
    w.Seek(begin);
    for (int64_t r = begin; r < end; ++r, w.Next()) {
      const int64_t row = r % rows;
      // Kept columns [first, last).
      const int64_t first = lower ? 0 : std::clamp<int64_t>(row + k, 0, cols);
      const int64_t last = lower ? std::clamp<int64_t>(row + k + 1, 0, cols) : cols;
      const char* from = static_cast<const char*>(At(self.data, self.dtype, w.offset[0]));
      char* to = static_cast<char*>(At(out.data, out.dtype, w.offset[1]));
      if (from_step == 1 && to_step == 1) {
        std::memset(to, 0, static_cast<size_t>(first * item));
        if (to != from) std::memcpy(to + first * item, from + first * item, static_cast<size_t>((last - first) * item));
        std::memset(to + last * item, 0, static_cast<size_t>((cols - last) * item));
        continue;
      }
      for (int64_t c = 0; c < cols; ++c) {
        char* place = to + c * to_step * item;
        if (c >= first && c < last) std::memmove(place, from + c * from_step * item, static_cast<size_t>(item));
        else std::memset(place, 0, static_cast<size_t>(item));
      }
    }
  });
}

}  // namespace npu::simd
