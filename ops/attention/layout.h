// Tensors of attention operators in their layouts, and the numbers every variant of them has.
#pragma once

#include <vector>

#include "kernels/attention/attention.h"
#include "ops/core/builder.h"
#include "ops/core/rule.h"

namespace npu::ops {

// What a call says, whichever variant of the operator it is.
struct AttentionCall {
  const Tensor *q = nullptr, *k = nullptr, *v = nullptr, *mask = nullptr, *bias = nullptr, *drop = nullptr,
               *sink = nullptr;
  std::string_view layout;
  int64_t heads = 0;
  double scale = 1, keep = 1;
  int64_t before = INT64_MAX, after = INT64_MAX, sparse_mode = 0, bias_type = 1;
  std::span<const int64_t> q_ends, k_ends;  // cumulative lengths of packed sequences (layout TND)
};

// A call as the kernel wants it.
struct AttentionPlan {
  attention::Shape shape;
  std::vector<attention::Item> items;  // shape.items points here
  attention::Heads q, k, v;
  int64_t batch = 0;

  // Another tensor in the layout of the query or of the key.
  attention::Heads Like(const Tensor& t, int64_t heads, int64_t dim) const;
  // softmaxMax and softmaxSum: [batch, heads, rows, 8], or [tokens, heads, 8] for packed sequences.
  attention::Heads Stat(const Tensor& t) const;
  std::string_view layout;
};

// Fills the plan; refuses what does not fit. Called in phase one for its checks and in phase two for its result.
Status PlanAttention(std::string_view op, const AttentionCall& call, AttentionPlan* plan);

namespace rule {
// Shapes and types are checked by PlanAttention.
inline constexpr RuleKind kAttention{"attention", check::Free, 0b1, 0b1};
consteval Rule Attended(TensorToken t) { return Bind(kAttention, 0, t); }
}  // namespace rule

}  // namespace npu::ops
