// Rules of operators that read and write by index.
#pragma once

#include <vector>

#include "ops/common/dims.h"

namespace npu::ops {

// Puts self into out first, for operators that have an in-place twin.
void StartFrom(const Call& c, const Tensor& self, const Tensor& out);

// The index tensors of advanced indexing expanded to one shape; null where the client gave none.
struct IndexList {
  std::vector<Tensor> tensors;
  std::vector<const Tensor*> pointers;
  std::vector<int> dims;       // dimensions of self that are indexed
  Dims shape;                  // common shape of the indices
  std::vector<std::vector<int64_t>> coordinates;  // of masks
};
// Results of UniqueSlices: dense, with room for all slices; null where none is wanted.
struct SlicesOut {
  Tensor values;
  const Tensor *inverse, *counts;
};
// Values are c.live[0], counts c.live[1].
Status UniqueSlices(const Call& c, const Tensor& self, int d, bool globally, const SlicesOut& out);

// A mask (bool, uint8) covers as many dimensions as it has; how much it selects is known only when the call runs.
bool HasMask(std::span<const Tensor> list);
// Without masks.
Status ReadIndexList(std::string_view op, std::span<const Tensor> list, int self_rank, IndexList* out);
// With masks too, which are read.
Status ReadIndexList(const Call& c, std::span<const Tensor> list, const Tensor& self, IndexList* out);
// Shape of self[indices].
Dims IndexedShape(const Tensor& self, const IndexList& list);

namespace rule {
namespace check {
Status GatherShape(const Planning&, const Rule&);
Status ScatterShape(const Planning&, const Rule&);
Status SelectShape(const Planning&, const Rule&);
Status IndexVector(const Planning&, const Rule&);
}  // namespace check

inline constexpr RuleKind kGatherShape{"gather_shape", check::GatherShape, 0b1000, 0};
inline constexpr RuleKind kScatterShape{"scatter_shape", check::ScatterShape, 0, 0};
inline constexpr RuleKind kSelectShape{"select_shape", check::SelectShape, 0b1000, 0};
inline constexpr RuleKind kIndexVector{"index_vector", check::IndexVector, 0, 0};

// index has self's rank and is no larger than self but along dim; out has its shape.
consteval Rule GatherShape(TensorToken self, IntIn dim, TensorToken index, TensorToken out) {
  return Bind(kGatherShape, 0, self, dim, index, out);
}
// index is no larger than src anywhere, and no larger than self but along dim.
consteval Rule ScatterShape(TensorToken self, IntIn dim, TensorToken index, TensorToken src) {
  return Bind(kScatterShape, 0, self, dim, index, src);
}
// out is self with `dim` as long as the index vector.
consteval Rule SelectShape(TensorToken self, IntIn dim, TensorToken index, TensorToken out) {
  return Bind(kSelectShape, 0, self, dim, index, out);
}
// index has at most one dimension; source is self with `dim` as long as index.
consteval Rule IndexVector(TensorToken self, IntIn dim, TensorToken index, TensorToken source) {
  return Bind(kIndexVector, 0, self, dim, index, source);
}
}  // namespace rule
}  // namespace npu::ops
