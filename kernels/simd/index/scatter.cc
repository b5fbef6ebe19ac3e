// Writing by index. Positions are grouped by target (a stable sort), so that each target belongs to one worker, is combined
// in the order of the source, and is rounded once.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <vector>

#include "kernels/simd/index/index.h"
#include "kernels/simd/index/indices.h"
#include "kernels/simd/rows/convert.h"
#include "kernels/simd/rows/dense.h"
#include "kernels/simd/rows/scratch.h"
#include "kernels/simd/sort/radix.h"

namespace npu::simd {
namespace {

// Order of positions by target, and where each group begins.
struct Groups {
  std::vector<int64_t> order;
  std::vector<int64_t> begin;  // one more than there are groups

  explicit Groups(const int64_t* target, int64_t n) : order(static_cast<size_t>(n)) {
    std::iota(order.begin(), order.end(), int64_t{0});
    if (!std::is_sorted(target, target + n)) RadixSortIndices(target, n, order.data());
    for (int64_t i = 0; i < n; ++i) {
      if (i == 0 || Target(target, i) != Target(target, i - 1)) begin.push_back(i);
    }
    begin.push_back(n);
  }
  int64_t Target(const int64_t* target, int64_t i) const { return target[order[static_cast<size_t>(i)]]; }
  int64_t Count() const { return static_cast<int64_t>(begin.size()) - 1; }
};

template <class C>
void Apply(Combine combine, C* acc, const C* v, int64_t n, C alpha) {
  switch (combine) {
    case Combine::kSet:
      std::copy(v, v + n, acc);
      return;
    case Combine::kAdd: case Combine::kMean:
      for (int64_t i = 0; i < n; ++i) acc[i] = static_cast<C>(acc[i] + alpha * v[i]);
      return;
    case Combine::kMul:
      for (int64_t i = 0; i < n; ++i) acc[i] = static_cast<C>(acc[i] * v[i]);
      return;
    case Combine::kMax:
      for (int64_t i = 0; i < n; ++i) acc[i] = v[i] > acc[i] || v[i] != v[i] ? v[i] : acc[i];
      return;
    case Combine::kMin:
      for (int64_t i = 0; i < n; ++i) acc[i] = v[i] < acc[i] || v[i] != v[i] ? v[i] : acc[i];
      return;
  }
}

// For each group g: self[target + slice] ∘= alpha·source[order… + slice], run by run of the slice.
template <class C>
void CombineGroups(const Tensor& self, const Groups& groups, const int64_t* target, const Tensor& source,
                   const int64_t* source_at, Walk<2> slice, Combine combine, bool include_self, C alpha, Parallel& parallel) {
  const auto inner = slice.TakeInner();
  const int64_t runs = slice.Count();
  parallel.For(groups.Count(), RowsPerBlock(runs * inner.size), [&](int64_t begin, int64_t end) {
    alignas(64) C acc[kChunk];
    alignas(64) C value[kChunk];
    for (int64_t g = begin; g < end; ++g) {
      const int64_t first = groups.begin[static_cast<size_t>(g)], last = groups.begin[static_cast<size_t>(g) + 1];
      const int64_t to = groups.Target(target, first);
      Walk<2> w = slice;
      w.Seek(0);
      for (int64_t r = 0; r < runs; ++r, w.Next()) {
        for (int64_t i = 0; i < inner.size; i += kChunk) {
          const int64_t n = std::min(kChunk, inner.size - i);
          void* place = At(self.data, self.dtype, to + w.offset[0] + i * inner.stride[0]);
          int64_t k = combine == Combine::kSet ? last - 1 : first;
          const auto load = [&](int64_t p, C* buffer) {
            const int64_t from = source_at[groups.order[static_cast<size_t>(p)]] + w.offset[1] + i * inner.stride[1];
            return Read(At(source.data, source.dtype, from), source.dtype, inner.stride[1], n, buffer);
          };
          if (include_self && combine != Combine::kSet) {
            Load(place, self.dtype, inner.stride[0], n, acc);
          } else {
            const C* v = load(k++, value);
            for (int64_t e = 0; e < n; ++e) acc[e] = combine == Combine::kSet ? v[e] : static_cast<C>(v[e] * alpha);
          }
          for (; k < last; ++k) Apply(combine, acc, load(k, value), n, alpha);
          Write(acc, n, place, self.dtype, inner.stride[0]);
        }
      }
    }
  });
}

void CombineAny(const Tensor& self, const int64_t* target, int64_t count, const Tensor& source, const int64_t* source_at,
                const Walk<2>& slice, Combine combine, bool include_self, double alpha, Parallel& parallel) {
  if (count == 0 || slice.Count() == 0) return;
  const Groups groups(target, count);
  if (self.dtype == DType::f64) {
    CombineGroups<double>(self, groups, target, source, source_at, slice, combine, include_self, alpha, parallel);
  } else if (IsFloat(self.dtype)) {
    CombineGroups<float>(self, groups, target, source, source_at, slice, combine, include_self, static_cast<float>(alpha),
                         parallel);
  } else {
    CombineGroups<int64_t>(self, groups, target, source, source_at, slice, combine, include_self,
                           static_cast<int64_t>(alpha), parallel);
  }
}

// Complex numbers are moved and added by their parts: the same call on real tensors with a last dimension of 2. 0-d tensors
// become vectors first, so that the axis stays an axis.
Tensor AsVector(const Tensor& t) {
  Tensor v = t;
  if (t.rank == 0) {
    v.rank = 1;
    v.shape[0] = v.strides[0] = 1;
  }
  return v;
}
Tensor Parts(const Tensor& t) {
  Tensor parts;
  RealView(AsVector(t), &parts);
  return parts;
}

}  // namespace

IndexResult Scatter(const Tensor& self, int dim, const Tensor& index, const Tensor& src, Combine combine, bool include_self,
                    Parallel& parallel) {
  const int64_t total = index.Numel();
  if (total == 0) return {};
  if (IsComplex(self.dtype)) {
    Tensor twice = AsVector(index);
    twice.shape[static_cast<size_t>(twice.rank)] = 2;
    twice.strides[static_cast<size_t>(twice.rank++)] = 0;
    auto bad = Scatter(Parts(self), dim, twice, Parts(src), combine, include_self, parallel);
    if (bad) bad->position /= 2;
    return bad;
  }
  const auto at = static_cast<size_t>(dim);
  const int64_t size = self.rank == 0 ? 1 : self.shape[at];
  const int64_t axis_step = self.rank == 0 ? 1 : self.strides[at];
  // Rows along the axis do not meet: each is scattered in order by one worker.
  const int64_t n = index.rank == 0 ? 1 : index.shape[at];
  const int64_t index_step = index.rank == 0 ? 1 : index.strides[at];
  const int64_t src_step = src.rank == 0 ? 1 : src.strides[at];
  Scratch<int64_t> all(total);
  if (auto bad = LoadIndices(index, size, false, dim, all.data())) return bad;
  Walk<3> walk;  // index, self, src
  for (int d = 0; d < index.rank; ++d) {
    const auto i = static_cast<size_t>(d);
    if (d != dim) walk.Add(index.shape[i], {index.strides[i], self.strides[i], src.strides[i]});
  }
  walk.Merge();
  const auto scatter = [&]<class C>(C) {
    parallel.For(walk.Count(), RowsPerBlock(n), [&](int64_t begin, int64_t end) {
      Scratch<int64_t> positions(n);
      Scratch<C> values(n), row(size);
      Scratch<int32_t> hits(size);
      std::fill(hits.data(), hits.data() + size, 0);
      Walk<3> w = walk;
      w.Seek(begin);
      for (int64_t r = begin; r < end; ++r, w.Next()) {
        Load(At(index.data, index.dtype, w.offset[0]), index.dtype, index_step, n, positions.data());
        Load(At(src.data, src.dtype, w.offset[2]), src.dtype, src_step, n, values.data());
        // Touched elements are held in the compute type and rounded once.
        for (int64_t i = 0; i < n; ++i) {
          const int64_t p = positions[i];
          if (hits[p]++ == 0) {
            if (combine == Combine::kSet || !include_self) {
              row[p] = values[i];
              continue;
            }
            Load(At(self.data, self.dtype, w.offset[1] + p * axis_step), self.dtype, 1, 1, &row[p]);
          }
          Apply(combine, &row[p], &values[i], 1, C{1});
        }
        for (int64_t i = 0; i < n; ++i) {
          const int64_t p = positions[i];
          if (hits[p] == 0) continue;
          if (combine == Combine::kMean) {
            const C count = static_cast<C>(hits[p] + (include_self ? 1 : 0));
            if constexpr (std::is_integral_v<C>) {
              // Towards minus infinity, as torch divides.
              row[p] = row[p] / count - (row[p] % count != 0 && (row[p] < 0) != (count < 0) ? 1 : 0);
            } else {
              row[p] /= count;
            }
          }
          hits[p] = 0;
          Write(&row[p], 1, At(self.data, self.dtype, w.offset[1] + p * axis_step), self.dtype, 1);
        }
      }
    });
  };
  if (self.dtype == DType::f64) scatter(double{});
  else if (IsFloat(self.dtype)) scatter(float{});
  else scatter(int64_t{});
  return {};
}

IndexResult IndexPut(const Tensor& self, std::span<const Tensor* const> indices, const Tensor& values, bool accumulate,
                     Parallel& parallel) {
  if (IsComplex(self.dtype)) return IndexPut(Parts(self), indices, Parts(values), accumulate, parallel);
  Indexed space;
  space.Build(self, indices, values);
  Scratch<int64_t> places(space.count), from(space.count);
  if (auto bad = space.Places(self, indices, places.data())) return bad;
  Walk<1> p = space.positions;
  p.Seek(0);
  for (int64_t j = 0; j < space.count; ++j, p.Next()) from[j] = p.offset[0];
  CombineAny(self, places.data(), space.count, values, from.data(), space.slice, accumulate ? Combine::kAdd : Combine::kSet,
             true, 1, parallel);
  return {};
}

IndexResult IndexAdd(const Tensor& self, int dim, const Tensor& index, const Tensor& source, double alpha,
                     Parallel& parallel) {
  if (IsComplex(self.dtype)) return IndexAdd(Parts(self), dim, index, Parts(source), alpha, parallel);
  const int64_t count = index.Numel();
  const auto at = static_cast<size_t>(dim);
  const int64_t size = self.rank == 0 ? 1 : self.shape[at];
  Scratch<int64_t> target(count), from(count);
  if (auto bad = LoadIndices(index, size, false, dim, target.data())) return bad;
  for (int64_t j = 0; j < count; ++j) {
    from[j] = source.rank == 0 ? 0 : j * source.strides[at];
    target[j] *= self.rank == 0 ? 1 : self.strides[at];
  }
  Walk<2> slice;
  for (int d = 0; d < self.rank; ++d) {
    const auto i = static_cast<size_t>(d);
    if (d != dim) slice.Add(self.shape[i], {self.strides[i], source.strides[i]});
  }
  slice.Merge();
  CombineAny(self, target.data(), count, source, from.data(), slice, Combine::kAdd, true, alpha, parallel);
  return {};
}

IndexResult IndexFill(const Tensor& self, int dim, std::span<const int64_t> index, const void* value, Parallel& parallel) {
  const auto at = static_cast<size_t>(dim);
  const int64_t size = self.rank == 0 ? 1 : self.shape[at];
  std::vector<int64_t> positions(index.begin(), index.end());
  FirstBad bad;
  if (!bad.Check(positions.data(), static_cast<int64_t>(positions.size()), size, true, 0)) return bad.Result(dim, size);
  const Tensor to = IsComplex(self.dtype) ? Parts(self) : self;
  const Tensor constant{const_cast<void*>(value), to.dtype, 0, {}, {}};
  std::vector<int64_t> from(positions.size(), 0);
  Walk<2> slice;
  for (int d = 0; d < to.rank; ++d) {
    const auto i = static_cast<size_t>(d);
    const bool part = IsComplex(self.dtype) && d + 1 == to.rank;
    if (d != dim) slice.Add(to.shape[i], {to.strides[i], part ? 1 : 0});
  }
  for (int64_t& p : positions) p *= to.rank == 0 ? 1 : to.strides[at];
  CombineAny(to, positions.data(), static_cast<int64_t>(positions.size()), constant, from.data(), slice, Combine::kSet,
             true, 1, parallel);
  return {};
}

IndexResult EmbeddingBackward(const Tensor& grad, const Tensor& indices, int64_t padding, bool by_frequency,
                              const Tensor& out, Parallel& parallel) {
  const int64_t count = indices.Numel();
  const int64_t rows = out.shape[0], width = out.shape[1];
  Scratch<int64_t> target(count);
  if (auto bad = LoadIndices(indices, rows, false, 0, target.data())) return bad;
  // Counting sort by row; `start[w]` is the first position of row w.
  std::vector<int64_t> start(static_cast<size_t>(rows) + 1, 0), order(static_cast<size_t>(count));
  for (int64_t j = 0; j < count; ++j) ++start[static_cast<size_t>(target[j]) + 1];
  std::partial_sum(start.begin(), start.end(), start.begin());
  std::vector<int64_t> next(start.begin(), start.end() - 1);
  for (int64_t j = 0; j < count; ++j) order[static_cast<size_t>(next[static_cast<size_t>(target[j])]++)] = j;
  // grad is [indices…, width]; where each position lies.
  Scratch<int64_t> from(count);
  Walk<1> walk;
  for (int d = 0; d + 1 < grad.rank; ++d) walk.Add(grad.shape[static_cast<size_t>(d)], {grad.strides[static_cast<size_t>(d)]});
  walk.Merge();
  walk.Seek(0);
  for (int64_t j = 0; j < count; ++j, walk.Next()) from[j] = walk.offset[0];
  const int64_t step = grad.strides[static_cast<size_t>(grad.rank - 1)];
  const auto run = [&]<class C>(C) {
    parallel.For(rows, RowsPerBlock(width), [&](int64_t begin, int64_t end) {
      Scratch<C> acc(width), value(width);
      for (int64_t r = begin; r < end; ++r) {
        const auto i = static_cast<size_t>(r);
        std::fill(acc.data(), acc.data() + width, C{0});
        if (r != padding) {
          for (int64_t k = start[i]; k < start[i + 1]; ++k) {
            const int64_t j = order[static_cast<size_t>(k)];
            const C* v = Read(At(grad.data, grad.dtype, from[j]), grad.dtype, step, width, value.data());
            for (int64_t e = 0; e < width; ++e) acc[e] += v[e];
          }
          if (by_frequency && start[i + 1] > start[i]) {
            for (int64_t e = 0; e < width; ++e) acc[e] /= static_cast<C>(start[i + 1] - start[i]);
          }
        }
        Write(acc.data(), width, At(out.data, out.dtype, r * out.strides[0]), out.dtype, out.strides[1]);
      }
    });
  };
  if (out.dtype == DType::f64) run(double{});
  else run(float{});
  return {};
}

}  // namespace npu::simd
