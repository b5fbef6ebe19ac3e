// Fused attention for inference: keys and values of a cache, of which each sequence uses its own length. Paged caches
// (blockTable) are laid out in a row first. Quantised caches, shared prefixes and rotary parts are refused by name.
#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "gen/abi/ops.h"
#include "ops/attention/layout.h"
#include "ops/common/dims.h"
#include "ops/common/values.h"

namespace npu::ops {
namespace {

using abi::FusedInferAttentionScoreV2, abi::FusedInferAttentionScoreV3, abi::FusedInferAttentionScoreV4, abi::FusedInferAttentionScoreV5,
    abi::PromptFlashAttentionV3,
    abi::IncreFlashAttentionV4;

size_t U(int64_t i) { return static_cast<size_t>(i); }

// What the variants name differently.
struct Inference {
  AttentionCall call;
  std::span<const int64_t> q_lengths, k_lengths;
  const Tensor *out = nullptr, *lse = nullptr;
  bool output_by_rows = false;  // layout BNSD_BSND
  // A paged cache: the blocks of each sequence, and where they are laid out in a row.
  const Tensor *table = nullptr, *key_pages = nullptr, *value_pages = nullptr;
  Tensor key_row, value_row;
  std::vector<int64_t> ends;
};

const Tensor* Given(const Tensor* t) { return t != nullptr && t->Numel() > 0 ? t : nullptr; }

// Blocks of `size` tokens: [blocks, size, heads * columns] or [blocks, heads, size, columns].
struct Pages {
  int64_t blocks, heads, size, columns;
  int64_t block_step, head_step, row_step, column_step;
};
bool ReadPages(const Tensor& t, int64_t heads, Pages* p) {
  if (t.rank == 3 && heads > 0 && t.shape[2] % heads == 0) {
    const int64_t columns = t.shape[2] / heads;
    *p = {t.shape[0], heads, t.shape[1], columns, t.strides[0], columns * t.strides[2], t.strides[1], t.strides[2]};
    return true;
  }
  if (t.rank != 4) return false;
  *p = {t.shape[0], t.shape[1], t.shape[2], t.shape[3], t.strides[0], t.strides[1], t.strides[2], t.strides[3]};
  return true;
}

// The cache as one tensor of the query's layout, without memory yet.
Tensor InARow(std::string_view layout, const Pages& p, DType type, int64_t batch, int64_t longest, int64_t total) {
  if (layout == "TND") return MakeContiguous(nullptr, type, std::array<int64_t, 3>{total, p.heads, p.columns});
  if (layout == "BSH") return MakeContiguous(nullptr, type, std::array<int64_t, 3>{batch, longest, p.heads * p.columns});
  if (layout == "BSND") return MakeContiguous(nullptr, type, std::array<int64_t, 4>{batch, longest, p.heads, p.columns});
  return MakeContiguous(nullptr, type, std::array<int64_t, 4>{batch, p.heads, longest, p.columns});
}

Status PlanPages(std::string_view op, int64_t kv_heads, Inference* in) {
  AttentionCall& c = in->call;
  const Tensor& table = *in->table;
  Pages keys, values;
  if (!ReadPages(*c.k, kv_heads, &keys) || !ReadPages(*c.v, kv_heads, &values) || keys.blocks != values.blocks || keys.size != values.size || keys.size < 1)
    return NotYet(op, fmt::format("a paged cache of keys {} and values {}", ShapeText(c.k->Shape()), ShapeText(c.v->Shape())));
  if (table.rank != 2 || (table.dtype != DType::i32 && table.dtype != DType::i64) || in->k_lengths.empty())
    return Error(Code::kInvalidParam, "{}: blockTable is {} of shape {} with {} lengths.", op, Name(table.dtype), ShapeText(table.Shape()), in->k_lengths.size())
        .Remedy("It has the blocks of each sequence as int32, and the lengths of the sequences are given.");
  const int64_t batch = table.shape[0];
  if (in->k_lengths.size() != 1 && static_cast<int64_t>(in->k_lengths.size()) != batch)
    return Error(Code::kInvalidParam, "{}: there are {} lengths of keys for {} sequences.", op, in->k_lengths.size(), batch).Remedy("Give one for each, or one for all.");
  int64_t longest = 0, total = 0;
  for (int64_t b = 0; b < batch; ++b) {
    const int64_t n = in->k_lengths[in->k_lengths.size() == 1 ? 0 : U(b)];
    if (n < 0 || n > table.shape[1] * keys.size)
      return Error(Code::kInvalidParam, "{}: sequence {} has {} keys, but its {} blocks hold {}.", op, b, n, table.shape[1], table.shape[1] * keys.size)
          .Remedy("Give it more blocks.");
    longest = std::max(longest, n);
    total += n;
    in->ends.push_back(total);
  }
  in->key_pages = c.k, in->value_pages = c.v;
  in->key_row = InARow(c.layout, keys, c.k->dtype, batch, longest, total);
  in->value_row = InARow(c.layout, values, c.v->dtype, batch, longest, total);
  c.k = &in->key_row, c.v = &in->value_row;
  return {};
}

// Copies the blocks of each sequence one behind the other.
Status GatherPages(const Call& c, const Inference& in, int64_t kv_heads, const Tensor& from, const Tensor& to) {
  Pages p;
  ReadPages(from, kv_heads, &p);
  const Values<int64_t> table(*in.table, c.parallel);
  const int64_t batch = in.table->shape[0], width = in.table->shape[1];
  const bool packed = in.call.layout == "TND";
  for (int64_t b = 0; b < batch; ++b) {
    const int64_t begin = b == 0 ? 0 : in.ends[U(b - 1)], n = in.ends[U(b)] - begin;
    for (int64_t at = 0; at < n; at += p.size) {
      const int64_t block = table[b * width + at / p.size];
      if (block < 0 || block >= p.blocks)
        return Error(Code::kTaskException, "{}: blockTable[{}, {}] is {}, but there are {} blocks.", c.op.name, b, at / p.size, block, p.blocks)
            .Remedy("Blocks are counted from 0.");
      const int64_t rows = std::min(p.size, n - at);
      Tensor source = MakeContiguous(nullptr, from.dtype, std::array<int64_t, 3>{p.heads, rows, p.columns}), place = source;
      source.data = simd::At(from.data, from.dtype, block * p.block_step);
      source.strides = {p.head_step, p.row_step, p.column_step};
      const bool heads_first = in.call.layout == "BNSD";
      const int64_t row_step = heads_first ? p.columns : p.heads * p.columns, head_step = heads_first ? to.shape[2] * p.columns : p.columns;
      place.strides = {head_step, row_step, 1};
      const int64_t first = packed ? (begin + at) * row_step : b * to.strides[0] + at * row_step;
      place.data = simd::At(to.data, to.dtype, first);
      simd::Copy(source, place, c.parallel);
    }
  }
  return {};
}

template <class A>
const Tensor* TableOf(const Args& a) {
  if constexpr (requires { A::blockTableOptional; }) return Given(a[A::blockTableOptional]);
  else if constexpr (requires { A::blockTable; }) return Given(a[A::blockTable]);
  else if constexpr (requires { A::blocktable; }) return Given(a[A::blocktable]);
  else return nullptr;
}
template <class A>
int64_t KeyHeads(const Args& a) {
  const int64_t n = a[A::numKeyValueHeads];
  return n > 0 ? n : a[A::numHeads];
}

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
  if constexpr (requires { A::learnableSinkOptional; }) c.sink = Given(a[A::learnableSinkOptional]);
  if constexpr (requires { A::pseType; }) c.bias_type = a[A::pseType];
  in->out = a.Maybe(A::attentionOut);
  if constexpr (requires { A::softmaxLse; }) in->lse = a[A::softmaxLseFlag] ? &a[A::softmaxLse] : nullptr;
  if (c.layout == "TND") c.q_ends = in->q_lengths, c.k_ends = in->k_lengths;
  if (in->table = TableOf<A>(a); in->table != nullptr) {
    NPU_TRY(PlanPages(op, KeyHeads<A>(a), in));
    if (c.layout == "TND") c.k_ends = in->ends;
  }
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
                         (name.find("lock") != name.npos && !name.starts_with("block")) || name.find("Padding") != name.npos ||
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
  if (in.table != nullptr) {
    p.NeedScratch(static_cast<uint64_t>(in.key_row.Numel() * ItemSize(in.key_row.dtype)));
    p.NeedScratch(static_cast<uint64_t>(in.value_row.Numel() * ItemSize(in.value_row.dtype)));
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
  if (in.table != nullptr) {
    in.key_row.data = c.scratch;
    in.value_row.data = c.scratch + (in.key_row.Numel() * ItemSize(in.key_row.dtype) + 511) / 512 * 512;
    NPU_TRY(GatherPages(c, in, KeyHeads<A>(c.args), *in.key_pages, in.key_row));
    NPU_TRY(GatherPages(c, in, KeyHeads<A>(c.args), *in.value_pages, in.value_row));
  }
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
NPU_OP(FusedInferAttentionScoreV4) = UsesAll<FusedInferAttentionScoreV4>()
                                         .Rules(rule::Attended(FusedInferAttentionScoreV4::softmaxLse))
                                         .Optional(FusedInferAttentionScoreV4::softmaxLse);
NPU_OP(FusedInferAttentionScoreV5) = UsesAll<FusedInferAttentionScoreV5>()
                                         .Rules(rule::Attended(FusedInferAttentionScoreV5::softmaxLse))
                                         .Optional(FusedInferAttentionScoreV5::softmaxLse);
NPU_OP(PromptFlashAttentionV3) = UsesAll<PromptFlashAttentionV3>().Required(PromptFlashAttentionV3::key,
                                                                            PromptFlashAttentionV3::value);
NPU_OP(IncreFlashAttentionV4) = UsesAll<IncreFlashAttentionV4>();

}  // namespace npu::ops
