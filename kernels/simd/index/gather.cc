#include <atomic>
#include <cstring>

#include "kernels/simd/index/index.h"
#include "kernels/simd/index/indices.h"
#include "kernels/simd/rows/convert.h"
#include "kernels/simd/rows/scratch.h"
#include "kernels/simd/rows/walk.h"

namespace npu::simd {
namespace {

template <class T>
void GatherRun(const T* self, int64_t self_step, int64_t axis_step, const int64_t* index, T* out, int64_t out_step, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i * out_step] = self[i * self_step + index[i] * axis_step];
}

struct Wide {
  uint64_t half[2];
};

template <class F>
void BySize(int item, const F& f) {
  switch (item) {
    case 1: return f(uint8_t{});
    case 2: return f(uint16_t{});
    case 4: return f(uint32_t{});
    case 8: return f(uint64_t{});
    case 16: return f(Wide{});
    default: return;
  }
}

}  // namespace

IndexResult Gather(const Tensor& self, int dim, const Tensor& index, const Tensor& out, Parallel& parallel) {
  const int64_t total = index.Numel();
  if (total == 0) return {};
  const auto at = static_cast<size_t>(dim);
  const int64_t size = self.rank == 0 ? 1 : self.shape[at];
  const int64_t axis_step = self.rank == 0 ? 1 : self.strides[at];
  Walk<3> walk;  // index, self without the axis, out
  for (int d = 0; d < index.rank; ++d) {
    const auto i = static_cast<size_t>(d);
    walk.Add(index.shape[i], {index.strides[i], d == dim || self.rank == 0 ? 0 : self.strides[i], out.strides[i]});
  }
  walk.Merge();
  const auto inner = walk.TakeInner();
  FirstBad bad;
  const int item = ItemSize(self.dtype);
  parallel.For(walk.Count(), RowsPerBlock(inner.size), [&](int64_t begin, int64_t end) {
    int64_t positions[kIndexChunk];
    Walk<3> w = walk;
    w.Seek(begin);
    for (int64_t r = begin; r < end; ++r, w.Next()) {
      for (int64_t i = 0; i < inner.size; i += kIndexChunk) {
        const int64_t n = std::min(kIndexChunk, inner.size - i);
        Load(At(index.data, index.dtype, w.offset[0] + i * inner.stride[0]), index.dtype, inner.stride[0], n, positions);
        if (!bad.Check(positions, n, size, /*wraps=*/false, r * inner.size + i)) return;
        BySize(item, [&](auto tag) {
          using T = decltype(tag);
          GatherRun(static_cast<const T*>(self.data) + w.offset[1] + i * inner.stride[1], inner.stride[1], axis_step,
                    positions, static_cast<T*>(out.data) + w.offset[2] + i * inner.stride[2], inner.stride[2], n);
        });
      }
    }
  });
  return bad.Result(dim, size);
}

IndexResult IndexSelect(const Tensor& self, int dim, const Tensor& index, const Tensor& out, Parallel& parallel) {
  const int64_t count = index.Numel();
  const auto at = static_cast<size_t>(dim);
  const int64_t size = self.rank == 0 ? 1 : self.shape[at];
  const int64_t axis_step = self.rank == 0 ? 1 : self.strides[at];
  Scratch<int64_t> positions(count);
  if (auto bad = LoadIndices(index, size, false, dim, positions.data())) return bad;
  if (out.Numel() == 0) return {};
  // out as [before, index…, after]; the index part is dense or a vector: walk it together with the rest.
  Walk<2> slice;  // self, out, without the axis
  const int index_rank = out.rank - (self.rank == 0 ? 0 : self.rank - 1);
  for (int d = 0; d < self.rank; ++d) {
    if (d == dim) continue;
    const auto i = static_cast<size_t>(d);
    slice.Add(self.shape[i], {self.strides[i], out.strides[static_cast<size_t>(d < dim ? d : d - 1 + index_rank)]});
  }
  slice.Merge();
  Walk<1> places;  // where each index goes in out
  for (int d = 0; d < index_rank; ++d) {
    const auto i = static_cast<size_t>(dim + d);
    places.Add(out.shape[i], {out.strides[i]});
  }
  places.Merge();
  const auto inner = slice.TakeInner();
  const int64_t runs = slice.Count();
  const int item = ItemSize(self.dtype);
  const bool dense = inner.stride[0] == 1 && inner.stride[1] == 1;
  parallel.For(count * runs, RowsPerBlock(inner.size), [&](int64_t begin, int64_t end) {
    Walk<2> w = slice;
    Walk<1> p = places;
    int64_t j = begin % count;
    w.Seek(begin / count);
    p.Seek(j);
    for (int64_t t = begin; t < end; ++t) {
      const int64_t from = w.offset[0] + positions[j] * axis_step;
      const int64_t to = w.offset[1] + p.offset[0];
      if (dense) {
        std::memcpy(At(out.data, out.dtype, to), At(self.data, self.dtype, from),
                    static_cast<size_t>(inner.size) * static_cast<size_t>(item));
      } else {
        BySize(item, [&](auto tag) {
          using T = decltype(tag);
          const T* f = static_cast<const T*>(self.data) + from;
          T* o = static_cast<T*>(out.data) + to;
          for (int64_t i = 0; i < inner.size; ++i) o[i * inner.stride[1]] = f[i * inner.stride[0]];
        });
      }
      p.Next();
      if (++j == count) {
        j = 0;
        p.Seek(0);
        w.Next();
      }
    }
  });
  return {};
}

IndexResult IndexGet(const Tensor& self, std::span<const Tensor* const> indices, const Tensor& out, Parallel& parallel) {
  Indexed space;
  space.Build(self, indices, out);
  Scratch<int64_t> places(space.count);
  if (auto bad = space.Places(self, indices, places.data())) return bad;
  if (out.Numel() == 0) return {};
  Walk<2> slice = space.slice;
  const auto inner = slice.TakeInner();
  const int64_t runs = slice.Count();
  const int item = ItemSize(self.dtype);
  // Neighbouring positions share a run when slices are single elements.
  parallel.For(space.count, RowsPerBlock(runs * inner.size), [&](int64_t begin, int64_t end) {
    Walk<1> p = space.positions;
    p.Seek(begin);
    for (int64_t j = begin; j < end; ++j, p.Next()) {
      Walk<2> w = slice;
      w.Seek(0);
      for (int64_t r = 0; r < runs; ++r, w.Next()) {
        const int64_t from = places[j] + w.offset[0];
        const int64_t to = p.offset[0] + w.offset[1];
        if (inner.stride[0] == 1 && inner.stride[1] == 1 && inner.size > 1) {
          std::memcpy(At(out.data, out.dtype, to), At(self.data, self.dtype, from),
                      static_cast<size_t>(inner.size) * static_cast<size_t>(item));
          continue;
        }
        BySize(item, [&](auto tag) {
          using T = decltype(tag);
          const T* f = static_cast<const T*>(self.data) + from;
          T* o = static_cast<T*>(out.data) + to;
          for (int64_t i = 0; i < inner.size; ++i) o[i * inner.stride[1]] = f[i * inner.stride[0]];
        });
      }
    }
  });
  return {};
}

}  // namespace npu::simd
