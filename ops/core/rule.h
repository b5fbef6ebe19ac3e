// The rules that most operators share. A room with its own kinds declares them in the same way: a RuleKind with a check, a
// consteval function that binds it to tokens, and samples in tests/conformance/rules.py.
#pragma once

#include "ops/core/op_def.h"
#include "ops/core/plan.h"
#include "tensor/promote.h"

namespace npu::ops::rule {

template <class... T>
consteval Rule Bind(const RuleKind& kind, int64_t imm, T... tokens) {
  Rule r;
  r.kind = &kind;
  r.imm = imm;
  size_t i = 0;
  ((r.params[i++] = tokens.index), ...);
  return r;
}


namespace check {
Status Broadcast(const Planning&, const Rule&);
Status ExpandsTo(const Planning&, const Rule&);
Status SameShape(const Planning&, const Rule&);
Status SameDtype(const Planning&, const Rule&);
Status DtypeIn(const Planning&, const Rule&);
Status Castable(const Planning&, const Rule&);
Status DtypeIs(const Planning&, const Rule&);
Status RankIs(const Planning&, const Rule&);
Status SameLists(const Planning&, const Rule&);
Status DimInRange(const Planning&, const Rule&);
Status Free(const Planning&, const Rule&);
}  // namespace check

inline constexpr RuleKind kBroadcast2{"broadcast", check::Broadcast, 0b100, 0};
inline constexpr RuleKind kBroadcast3{"broadcast", check::Broadcast, 0b1000, 0};
inline constexpr RuleKind kExpandsTo{"expands_to", check::ExpandsTo, 0, 0};
inline constexpr RuleKind kSameShape{"same_shape", check::SameShape, 0b10, 0};
inline constexpr RuleKind kSameDtype{"same_dtype", check::SameDtype, 0, 0b10};
inline constexpr RuleKind kDtypeIn{"dtype_in", check::DtypeIn, 0, 0b1};
inline constexpr RuleKind kCastable{"castable", check::Castable, 0, 0b10};
inline constexpr RuleKind kDtypeIs{"dtype_is", check::DtypeIs, 0, 0b1};
inline constexpr RuleKind kRankIs{"rank_is", check::RankIs, 0, 0};
inline constexpr RuleKind kSameLists{"same_lists", check::SameLists, 0b10, 0b10};
inline constexpr RuleKind kDimInRange{"dim_in_range", check::DimInRange, 0, 0};
inline constexpr RuleKind kShapeFree{"shape_free", check::Free, 0b1, 0};
inline constexpr RuleKind kDtypeFree{"dtype_free", check::Free, 0, 0b1};

// a and b broadcast, and `out` has just that shape. In-place operators name the same parameter as a and as out.
consteval Rule Broadcast(TensorToken a, TensorToken b, TensorToken out) { return Bind(kBroadcast2, 0, a, b, out); }
consteval Rule Broadcast(TensorToken a, TensorToken b, TensorToken c, TensorToken out) {
  return Bind(kBroadcast3, 0, a, b, c, out);
}
// `from` can be expanded to the shape of `to`.
consteval Rule ExpandsTo(TensorToken from, TensorToken to) { return Bind(kExpandsTo, 0, from, to); }
// b has the shape of a; says nothing when one of them is absent.
consteval Rule SameShape(TensorToken a, TensorToken b) { return Bind(kSameShape, 0, a, b); }
consteval Rule SameDtype(TensorToken a, TensorToken b) { return Bind(kSameDtype, 0, a, b); }
// The tensor's type is one of the set.
consteval Rule DtypeIn(TensorToken t, TypeSet set) { return Bind(kDtypeIn, static_cast<int64_t>(set.bits), t); }
// torch.can_cast(type of `from`, type of `to`): where the result is computed in one type and stored in another.
consteval Rule Castable(TensorToken from, TensorToken to) { return Bind(kCastable, 0, from, to); }
// The tensor has the type that a dtype parameter names.
consteval Rule DtypeIs(TensorToken t, DTypeIn dtype) { return Bind(kDtypeIs, 0, t, dtype); }
consteval Rule RankIs(TensorToken t, int rank) { return Bind(kRankIs, rank, t); }
// Two lists of the same length whose tensors agree in shape pair by pair.
consteval Rule SameLists(ListToken a, ListToken b) { return Bind(kSameLists, 0, a, b); }
// -rank <= dim < rank.
consteval Rule DimInRange(IntIn dim, TensorToken of) { return Bind(kDimInRange, 0, dim, of); }
// The operator takes whatever shape (type) this output has.
consteval Rule AnyShape(Token t) { return Bind(kShapeFree, 0, t); }
consteval Rule AnyDtype(Token t) { return Bind(kDtypeFree, 0, t); }

}  // namespace npu::ops::rule
