// Rules of the normalisations.
#pragma once

#include "ops/common/dims.h"

namespace npu::ops {

inline int64_t Product(std::span<const int64_t> v) {
  int64_t n = 1;
  for (const int64_t e : v) n *= e;
  return n;
}

// An output of a backward function, null when its flag is off (or the client passed none).
inline const Tensor* Wanted(const Call& c, BoolsIn mask, size_t i, MaybeOut out) {
  const auto flags = c.args[mask];
  return flags.empty() || (i < flags.size() && flags[i]) ? c.args[out] : nullptr;
}

}  // namespace npu::ops

namespace npu::ops::rule {

namespace check {
Status Suffix(const Planning&, const Rule&);
Status AffineOf(const Planning&, const Rule&);
Status RowStat(const Planning&, const Rule&);
Status SuffixOf(const Planning&, const Rule&);
Status PerChannel(const Planning&, const Rule&);
Status HasChannels(const Planning&, const Rule&);
}  // namespace check

inline constexpr RuleKind kSuffix{"suffix", check::Suffix, 0, 0};
inline constexpr RuleKind kAffineOf{"affine", check::AffineOf, 0b1, 0};
inline constexpr RuleKind kRowStat{"row_stat", check::RowStat, 0b100, 0};
inline constexpr RuleKind kSuffixOf{"suffix_of", check::SuffixOf, 0b1, 0};
inline constexpr RuleKind kPerChannel{"per_channel", check::PerChannel, 0b10, 0};
inline constexpr RuleKind kHasChannels{"has_channels", check::HasChannels, 0, 0};

// The last dimensions of input are those of `shape`.
consteval Rule Suffix(TensorToken input, IntsToken shape) { return Bind(kSuffix, 0, input, shape); }
// t has that many elements; says nothing when it is absent.
consteval Rule Affine(TensorToken t, IntsToken shape) { return Bind(kAffineOf, 0, t, shape); }
// One element for each row that is left when the last dimensions are normalised.
consteval Rule RowStat(TensorToken input, IntsToken shape, TensorToken stat) { return Bind(kRowStat, 0, input, shape, stat); }
// t has the shape of the last dimensions of input.
consteval Rule SuffixOf(TensorToken t, TensorToken input) { return Bind(kSuffixOf, 0, t, input); }
// stat has one element for each channel (dim 1) of input.
consteval Rule PerChannel(TensorToken input, TensorToken stat) { return Bind(kPerChannel, 0, input, stat); }
consteval Rule HasChannels(TensorToken input) { return Bind(kHasChannels, 0, input); }

}  // namespace npu::ops::rule
