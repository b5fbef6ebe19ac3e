// Fused attention for inference: keys and values of a cache, of which each sequence uses its own length. Quantised
// caches, paged caches (blockTable), shared prefixes and rotary parts are refused by name.
#include <cmath>
#include <vector>

#include "gen/abi/ops.h"
#include "ops/attention/layout.h"
#include "ops/common/dims.h"
#include "ops/common/values.h"

namespace npu::ops {
namespace {

using abi::FusedInferAttentionScoreV2, abi::FusedInferAttentionScoreV3, abi::PromptFlashAttentionV3,
    abi::IncreFlashAttentionV4;

size_t U(int64_t i) { return static_cast<size_t>(i); }

// What the variants name differently.
struct Inference {
  AttentionCall call;
  std::span<const int64_t> q_lengths, k_lengths;
  const Tensor *out = nullptr, *lse = nullptr;
  bool output_by_rows = false;  // layout BNSD_BSND
};

const Tensor* Given(const Tensor* t) { return t != nullptr && t->Numel() > 0 ? t : nullptr; }

template <class A>
Status Read(std::string_view op, const Args& a, Inference* in) {
  AttentionCall& c = in->call;
  c.q = &a[A::query];
  if constexpr (std::is_base_of_v<ListToken, std::remove_cv_t<decltype(A::key)>>) {
    const auto keys = a[A::key], values = a[A::value];
    if (keys.size() != 1 || values.size() != 1)
      return NotYet(
          op, fmt::format("lists of {} keys and {} values; one of each is computed.", keys.size(), values.size()));
    c.k = keys.data(), c.v = values.data();
  } else {
    c.k = &a[A::key], c.v = &a[A::value];
  }
  if constexpr (requires { A::attenMaskOptional; }) {
    c.mask = Given(a[A::attenMaskOptional]), c.bias = Given(a[A::pseShiftOptional]);
    in->q_lengths = a[A::actualSeqLengthsOptional], in->k_lengths = a[A::actualSeqLengthsKvOptional];
  } else if constexpr (requires { A::actualSeqLengthsKv; }) {
    c.mask = Given(a[A::attenMask]), c.bias = Given(a[A::pseShift]);
    in->q_lengths = a[A::actualSeqLengths], in->k_lengths = a[A::actualSeqLengthsKv];
  } else {  // one new token: the lengths are those of the cache
    c.mask = Given(a[A::attenMask]), c.bias = Given(a[A::pseShift]);
    in->k_lengths = a[A::actualSeqLengths];
  }
  c.layout = a[A::inputLayout];
  if (c.layout.empty()) c.layout = "BSH";
  if (c.layout == "BNSD_BSND") c.layout = "BNSD", in->output_by_rows = true;
  c.heads = a[A::numHeads];
  c.scale = a[A::scaleValue];
  if constexpr (requires { A::sparseMode; }) {
    c.sparse_mode = a[A::sparseMode];
    c.before = a[A::preTokens], c.after = a[A::nextTokens];
  }
  in->out = a.Maybe(A::attentionOut);
  if constexpr (requires { A::softmaxLse; }) in->lse = a[A::softmaxLseFlag] ? &a[A::softmaxLse] : nullptr;
  if (c.layout == "TND") c.q_ends = in->q_lengths, c.k_ends = in->k_lengths;
  return {};
}

Status Limit(std::string_view op, std::string_view what, std::span<const int64_t> lengths, AttentionPlan* plan,
             int64_t attention::Item::*rows) {
  if (lengths.empty()) return {};
  if (lengths.size() != 1 && lengths.size() != plan->items.size())
    return Error(Code::kInvalidParam, "{}: there are {} lengths of {} for {} sequences.", op, lengths.size(), what,
                 plan->items.size())
        .Remedy("Give one for each, or one for all.");
  for (size_t b = 0; b < plan->items.size(); ++b) {
    const int64_t n = lengths[lengths.size() == 1 ? 0 : b];
    if (n < 0 || n > plan->items[b].*rows)
      return Error(Code::kInvalidParam, "{}: sequence {} has {} rows of {}, but only {} are there.", op, b, n, what,
                   plan->items[b].*rows)
          .Remedy("Lengths are those of the tensors at most.");
    plan->items[b].*rows = n;
  }
  return {};
}

Status PlanInference(std::string_view op, const Inference& in, AttentionPlan* plan) {
  NPU_TRY(PlanAttention(op, in.call, plan));
  if (in.call.layout == "TND") return {};
  NPU_TRY(Limit(op, "queries", in.q_lengths, plan, &attention::Item::q_rows));
  return Limit(op, "keys", in.k_lengths, plan, &attention::Item::k_rows);
}

template <class A>
Status Prepare(Planning& p) {
  Inference in;
  AttentionPlan plan;
  for (size_t i = 0; i < p.op.params.size(); ++i) {
    const std::string_view name = p.op.params[i].name;
    if (p.op.params[i].kind != Kind::tensor || p.args.Null(Token{static_cast<uint8_t>(i)})) continue;
    const bool refused = name.find("uant") != name.npos || name.find("qScale") != name.npos ||
                         name.find("lock") != name.npos || name.find("Padding") != name.npos ||
                         name.find("SharedPrefix") != name.npos || name.find("Rope") != name.npos;
    const Tensor* t = p.args.Maybe(TensorToken{{static_cast<uint8_t>(i)}});
    if (refused && t->Numel() > 0)
      return NotYet(p.op.name, fmt::format("attention with {} is not computed yet.", name));
  }
  NPU_TRY(Read<A>(p.op.name, p.args, &in));
  NPU_TRY(PlanInference(p.op.name, in, &plan));
  const Tensor& q = *in.call.q;
  Dims want = DimsOf(q);
  const bool merged = in.call.layout == "BSH" || in.call.layout == "SBH";
  want.size[U(want.rank - 1)] = plan.shape.value_dim * (merged ? plan.shape.heads : 1);
  if (in.output_by_rows) std::swap(want.size[1], want.size[2]);
  if (in.out == nullptr) return p.Refuse("attentionOut is missing.").Remedy("Pass a tensor for the result.");
  NPU_TRY(WantShape(p, A::attentionOut, want, "it is like the query, with the columns of value"));
  if (in.out->dtype != q.dtype)
    return p.Refuse("attentionOut is {}, query is {}.", Name(in.out->dtype), Name(q.dtype))
        .Remedy("Both have one type.");
  if constexpr (requires { A::softmaxLse; }) {
    if (in.lse != nullptr &&
        (in.lse->dtype != DType::f32 || in.lse->Numel() != q.Numel() / std::max<int64_t>(1, plan.shape.dim))) {
      return p.Refuse("softmaxLse is {} of shape {}.", Name(in.lse->dtype), ShapeText(in.lse->Shape()))
          .Remedy("It is float32 with one number for each row of each head.");
    }
  }
  double scores = 0;
  for (const auto& item : plan.items) scores += static_cast<double>(item.q_rows) * static_cast<double>(item.k_rows);
  p.Cost(5000 + scores * static_cast<double>(plan.shape.heads * (plan.shape.dim + plan.shape.value_dim)) / 25);
  return {};
}

template <class A>
Status Run(const Call& c) {
  Inference in;
  AttentionPlan plan;
  NPU_TRY(Read<A>(c.op.name, c.args, &in));
  NPU_TRY(PlanInference(c.op.name, in, &plan));
  const uint64_t zero[2] = {};
  if (!in.q_lengths.empty()) simd::Fill(zero, *in.out, c.parallel);  // rows beyond a sequence's length
  Tensor out_view = *in.out;
  if (in.output_by_rows)
    std::swap(out_view.shape[1], out_view.shape[2]), std::swap(out_view.strides[1], out_view.strides[2]);
  const attention::Heads out = plan.Like(out_view, plan.shape.heads, plan.shape.value_dim);
  attention::Stats stats;
  std::vector<float> max, sum;
  int64_t rows = 0;
  if (in.lse != nullptr) {
    const bool packed = in.call.layout == "TND";
    for (const auto& item : plan.items) rows = std::max(rows, packed ? item.q_begin + item.q_rows : item.q_rows);
    if (!packed) rows = in.lse->Numel() / std::max<int64_t>(1, plan.batch * plan.shape.heads);
    max.assign(U(in.lse->Numel()), 0.0F), sum.assign(U(in.lse->Numel()), 0.0F);
    // [batch, heads, rows], or [tokens, heads] for packed sequences.
    const attention::Heads grid{
        max.data(), DType::f32, packed ? 0 : plan.shape.heads * rows, packed ? 1 : rows, packed ? plan.shape.heads : 1,
        0};
    stats.max = stats.sum = grid;
    stats.sum.data = sum.data();
    stats.repeat = 1;
  }
  NPU_TRY(attention::Forward(c.parallel, plan.shape, plan.q, plan.k, plan.v, out, stats));
  if (in.lse != nullptr) {
    for (size_t i = 0; i < max.size(); ++i) max[i] = sum[i] > 0 ? max[i] + std::log(sum[i]) : INFINITY;
    simd::Copy(MakeContiguous(max.data(), DType::f32, in.lse->Shape()), *in.lse, c.parallel);
  }
  return {};
}

// Everything that only Prepare's loop over names looks at counts as used.
template <class A>
consteval Builder UsesAll() {
  Builder b = Op<A>().Rules(rule::Attended(A::attentionOut));
  for (uint8_t i = 0; i < std::size(A::kParams); ++i) {
    b = b.Uses(Token{i});
    if (A::kParams[i].kind == Kind::tensor && A::kParams[i].role == Role::in && A::kParams[i].name != "query")
      b = b.Optional(Token{i});
    if (A::kParams[i].kind == Kind::ints) b = b.Optional(Token{i});
  }
  return b.Tolerance("accumulated").Like("attention(query, key, value)").Prepares(Prepare<A>).Does(Run<A>);
}

}  // namespace

NPU_OP(FusedInferAttentionScoreV2) = UsesAll<FusedInferAttentionScoreV2>()
                                         .Rules(rule::Attended(FusedInferAttentionScoreV2::softmaxLse))
                                         .Optional(FusedInferAttentionScoreV2::softmaxLse);
NPU_OP(FusedInferAttentionScoreV3) = UsesAll<FusedInferAttentionScoreV3>()
                                         .Rules(rule::Attended(FusedInferAttentionScoreV3::softmaxLse))
                                         .Optional(FusedInferAttentionScoreV3::softmaxLse);
NPU_OP(PromptFlashAttentionV3) = UsesAll<PromptFlashAttentionV3>().Required(PromptFlashAttentionV3::key,
                                                                            PromptFlashAttentionV3::value);
NPU_OP(IncreFlashAttentionV4) = UsesAll<IncreFlashAttentionV4>();

}  // namespace npu::ops
