#include "kernels/simd/sort/sort.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "kernels/simd/rows/dense.h"
#include "kernels/simd/rows/scratch.h"
#include "kernels/simd/rows/walk.h"

namespace npu::simd {
namespace {

template <class C>
struct Entry {
  C value;
  int64_t index;
};

// Strict order of values: NaN above everything.
template <class C>
bool Less(C a, C b) { return a < b || (b != b && a == a); }

template <class C>
struct Ascending {
  bool operator()(const Entry<C>& a, const Entry<C>& b) const {
    return Less(a.value, b.value) || (!Less(b.value, a.value) && a.index < b.index);
  }
};
template <class C>
struct Descending {
  bool operator()(const Entry<C>& a, const Entry<C>& b) const {
    return Less(b.value, a.value) || (!Less(a.value, b.value) && a.index < b.index);
  }
};

int64_t StrideWithout(const Tensor& out, const Tensor& x, int dim, int d) {
  return out.strides[static_cast<size_t>(out.rank == x.rank || d < dim ? d : d - 1)];
}

// Calls order(entries, n) for each row along dim and writes the first `keep` entries from `first`.
template <class C, class F>
void EachRow(const Tensor& x, int dim, const Tensor& values, const Tensor& indices, int64_t first, int64_t keep,
             Parallel& parallel, const F& order) {
  if (x.Numel() == 0) return;
  const auto at = static_cast<size_t>(dim);
  const int64_t n = x.rank == 0 ? 1 : x.shape[at];
  const int64_t step = x.rank == 0 ? 1 : x.strides[at];
  const bool kept = x.rank > 0 && values.rank == x.rank;
  const int64_t value_step = kept ? values.strides[at] : 1, index_step = kept ? indices.strides[at] : 1;
  Walk<3> walk;
  for (int d = 0; d < x.rank; ++d) {
    const auto i = static_cast<size_t>(d);
    if (d != dim) walk.Add(x.shape[i], {x.strides[i], StrideWithout(values, x, dim, d), StrideWithout(indices, x, dim, d)});
  }
  walk.Merge();
  parallel.For(walk.Count(), RowsPerBlock(n * 16), [&](int64_t begin, int64_t end) {
    Scratch<C> row(n);
    Scratch<int64_t> where(n);
    Scratch<Entry<C>> entries(n);
    Walk<3> w = walk;
    w.Seek(begin);
    for (int64_t r = begin; r < end; ++r, w.Next()) {
      const C* v = Read(At(x.data, x.dtype, w.offset[0]), x.dtype, step, n, row.data());
      for (int64_t i = 0; i < n; ++i) entries[i] = {v[i], i};
      order(entries.data(), n);
      for (int64_t i = 0; i < keep; ++i) {
        row[i] = entries[first + i].value;
        where[i] = entries[first + i].index;
      }
      Write(row.data(), keep, At(values.data, values.dtype, w.offset[1]), values.dtype, value_step);
      Write(where.data(), keep, At(indices.data, indices.dtype, w.offset[2]), indices.dtype, index_step);
    }
  });
}

template <class F>
void ByType(DType t, const F& f) {
  if (t == DType::f64) f(double{});
  else if (IsFloat(t)) f(float{});
  else f(int64_t{});
}

}  // namespace

void Sort(const Tensor& x, int dim, bool descending, const Tensor& values, const Tensor& indices, Parallel& parallel) {
  const int64_t n = x.rank == 0 ? 1 : x.shape[static_cast<size_t>(dim)];
  ByType(x.dtype, [&]<class C>(C) {
    EachRow<C>(x, dim, values, indices, 0, n, parallel, [&](Entry<C>* e, int64_t count) {
      if (descending) std::sort(e, e + count, Descending<C>());
      else std::sort(e, e + count, Ascending<C>());
    });
  });
}

void TopK(const Tensor& x, int dim, int64_t k, bool largest, const Tensor& values, const Tensor& indices, Parallel& parallel) {
  if (k == 0) return;
  ByType(x.dtype, [&]<class C>(C) {
    EachRow<C>(x, dim, values, indices, 0, k, parallel, [&](Entry<C>* e, int64_t n) {
      if (largest) std::partial_sort(e, e + k, e + n, Descending<C>());
      else std::partial_sort(e, e + k, e + n, Ascending<C>());
    });
  });
}

void KthValue(const Tensor& x, int dim, int64_t k, const Tensor& values, const Tensor& indices, Parallel& parallel) {
  ByType(x.dtype, [&]<class C>(C) {
    EachRow<C>(x, dim, values, indices, k - 1, 1, parallel,
               [&](Entry<C>* e, int64_t n) { std::nth_element(e, e + k - 1, e + n, Ascending<C>()); });
  });
}

int64_t Unique(const Tensor& x, bool sorted_globally, void* values, const Tensor* inverse, int64_t* counts) {
  const int64_t n = x.Numel();
  int64_t found = 0;
  ByType(x.dtype, [&]<class C>(C) {
    Scratch<C> all(n);
    Scratch<Entry<C>> entries(n);
    Scratch<int64_t> group(n);
    LoadDense(x, all.data());
    for (int64_t i = 0; i < n; ++i) entries[i] = {all[i], i};
    if (sorted_globally) std::sort(entries.data(), entries.data() + n, Ascending<C>());
    for (int64_t i = 0; i < n; ++i) {
      // NaN is different from every NaN, as in torch.
      if (i == 0 || entries[i].value != entries[i - 1].value) {
        Write(&entries[i].value, 1, At(values, x.dtype, found), x.dtype, 1);
        if (counts != nullptr) counts[found] = 0;
        ++found;
      }
      if (counts != nullptr) ++counts[found - 1];
      group[entries[i].index] = found - 1;
    }
    if (inverse != nullptr) StoreDense(group.data(), *inverse);
  });
  return found;
}

}  // namespace npu::simd
