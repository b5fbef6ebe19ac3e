// What the families of reductions, indexing, shapes and normalisations share: dimensions as arguments, and errors that are
// found only when the data is there.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/simd/index/index.h"
#include "ops/core/builder.h"
#include "ops/core/rule.h"
#include "tensor/shape.h"

namespace npu::ops {

// Bit d for each dimension named; an empty list means all. The dimensions were checked.
inline uint32_t MaskOf(std::span<const int64_t> dims, int rank) {
  if (rank == 0) return 0;
  if (dims.empty()) return (1u << rank) - 1;
  uint32_t mask = 0;
  for (const int64_t d : dims) mask |= 1u << WrapDim(d, rank);
  return mask;
}
inline uint32_t AllDims(const Tensor& t) { return MaskOf({}, t.rank); }

// The shape after reducing the dimensions of the mask.
Dims ReducedShape(const Tensor& t, uint32_t mask, bool keep);

// Refuses an output whose shape is not the one wanted.
Status WantShape(const Planning& plan, TensorToken out, const Dims& wanted, std::string_view why);

// "aclnnX: index[5] is 12, but dim 0 of weight has size 10." Reported when the stream is synchronised.
Status IndexError(const Call& c, Token index, Token of, const simd::BadIndex& bad);
inline Status CheckIndex(const Call& c, Token index, Token of, const simd::IndexResult& result) {
  return result ? IndexError(c, index, of, *result) : Status();
}

namespace rule {

namespace check {
Status Reduced(const Planning&, const Rule&);
Status ReducedDim(const Planning&, const Rule&);
Status ReducedAll(const Planning&, const Rule&);
Status NotEmptyDims(const Planning&, const Rule&);
Status NotEmptyDim(const Planning&, const Rule&);
Status NotEmpty(const Planning&, const Rule&);
Status FloatTensors(const Planning&, const Rule&);
}  // namespace check

inline constexpr RuleKind kReduced{"reduced", check::Reduced, 0b1000, 0};
inline constexpr RuleKind kReducedDim{"reduced_dim", check::ReducedDim, 0b1000, 0};
inline constexpr RuleKind kReducedAll{"reduced_all", check::ReducedAll, 0b10, 0};
inline constexpr RuleKind kNotEmptyDims{"not_empty_dims", check::NotEmptyDims, 0, 0};
inline constexpr RuleKind kNotEmptyDim{"not_empty_dim", check::NotEmptyDim, 0, 0};
inline constexpr RuleKind kNotEmpty{"not_empty", check::NotEmpty, 0, 0};

inline constexpr RuleKind kFloatTensors{"float_tensors", check::FloatTensors, 0, 0b111111};
inline constexpr RuleKind kAnyShapes{"any_shapes", check::Free, 0b111111, 0};

// Each of these (up to six) is absent or has a float type.
template <class... T>
consteval Rule FloatTensors(T... tokens) { return Bind(kFloatTensors, 0, tokens...); }
// Outputs whose shapes Prepares() checks.
template <class... T>
consteval Rule AnyShapes(T... tokens) { return Bind(kAnyShapes, 0, tokens...); }
// out has the shape of self without the dimensions `dims` (all when empty), or with size 1 there when `keep` is true.
consteval Rule Reduced(TensorToken self, IntsToken dims, BoolIn keep, TensorToken out) {
  return Bind(kReduced, 0, self, dims, keep, out);
}
consteval Rule ReducedDim(TensorToken self, IntIn dim, BoolIn keep, TensorToken out) {
  return Bind(kReducedDim, 0, self, dim, keep, out);
}
// out is one number.
consteval Rule ReducedAll(TensorToken self, TensorToken out) { return Bind(kReducedAll, 0, self, out); }
// The reduced dimensions have elements: there is no largest of none.
consteval Rule NotEmptyDims(TensorToken self, IntsToken dims) { return Bind(kNotEmptyDims, 0, self, dims); }
consteval Rule NotEmptyDim(TensorToken self, IntIn dim) { return Bind(kNotEmptyDim, 0, self, dim); }
consteval Rule NotEmpty(TensorToken self) { return Bind(kNotEmpty, 0, self); }

}  // namespace rule
}  // namespace npu::ops
