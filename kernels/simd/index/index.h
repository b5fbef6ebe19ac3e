// Reading and writing by index. Element types are moved as they are; where values are combined, half types are added in f32
// and rounded once. Results do not depend on the number of workers, also when indices repeat: what goes to one place is
// applied in the order of the source.
//
// Every function checks indices before it uses them. A bad one is returned and nothing past the tensor is touched; the
// output is then unspecified.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "base/task/parallel.h"
#include "tensor/tensor.h"

namespace npu::simd {

struct BadIndex {
  int64_t value;     // the offending index
  int64_t position;  // where it stands in the index tensor, in row-major order
  int dim;           // axis of self
  int64_t size;      // size of that axis
};
using IndexResult = std::optional<BadIndex>;

enum class Combine : uint8_t { kSet, kAdd, kMul, kMax, kMin, kMean };

// out[i][j][k] = self[i][index[i][j][k]][k] for dim 1; index and out have one shape, no larger than self elsewhere.
IndexResult Gather(const Tensor& self, int dim, const Tensor& index, const Tensor& out, Parallel& parallel);
// self[i][index[i][j][k]][k] = or ∘= src[i][j][k]. Without include_self the old values at touched places do not count.
IndexResult Scatter(const Tensor& self, int dim, const Tensor& index, const Tensor& src, Combine combine, bool include_self,
                    Parallel& parallel);
// out = self with dimension `dim` replaced by the dimensions of index.
IndexResult IndexSelect(const Tensor& self, int dim, const Tensor& index, const Tensor& out, Parallel& parallel);

// Advanced indexing. indices[d] is the index of dimension d or null for a full slice; given ones are integer and were
// expanded to one shape (stride 0 where broadcast). `out` (or `values`) has that shape in place of the indexed dimensions
// when they are neighbours, and in front otherwise; values may have stride 0. Negative indices count from the end.
IndexResult IndexGet(const Tensor& self, std::span<const Tensor* const> indices, const Tensor& out, Parallel& parallel);
IndexResult IndexPut(const Tensor& self, std::span<const Tensor* const> indices, const Tensor& values, bool accumulate,
                     Parallel& parallel);

// self[.., index[j], ..] ∘= alpha·source[.., j, ..]
IndexResult IndexAdd(const Tensor& self, int dim, const Tensor& index, const Tensor& source, double alpha, Parallel& parallel);
// self[.., index[j], ..] = *value (of self's type)
IndexResult IndexFill(const Tensor& self, int dim, std::span<const int64_t> index, const void* value, Parallel& parallel);
// out[w] = Σ over positions with index w of grad; rows of padding (−1: none) get nothing; by_frequency divides by the count.
IndexResult EmbeddingBackward(const Tensor& grad, const Tensor& indices, int64_t padding, bool by_frequency,
                              const Tensor& out, Parallel& parallel);

// The elements whose mask is true. mask has self's shape (stride 0 where broadcast).
int64_t MaskedSelect(const Tensor& self, const Tensor& mask, void* out, Parallel& parallel);  // dense; returns how many
// self[mask] = source[0], source[1], … in row-major order; false when the source is too short.
bool MaskedScatter(const Tensor& self, const Tensor& mask, const Tensor& source, Parallel& parallel);
// Coordinates of elements that are not zero: out is dense [count, rank], or [rank, count] when transposed.
int64_t Nonzero(const Tensor& self, int64_t* out, bool transposed, Parallel& parallel);

// Position at which each value of `values` would be inserted into its sorted row (last dimension of sorted; one row serves
// all when sorted has rank 1). right: after equal ones. sorter, if present, gives the order of an unsorted row.
void SearchSorted(const Tensor& sorted, const Tensor& values, bool right, const Tensor* sorter, const Tensor& out,
                  Parallel& parallel);

}  // namespace npu::simd
