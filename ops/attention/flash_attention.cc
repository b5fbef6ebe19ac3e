// Fused attention, as torch's scaled_dot_product_attention on npu uses it, and its gradient. softmaxOut stays empty as
// on the card. innerPrecise and paddingMask have no meaning here: sums are always f32, and the card takes no padding
// mask either.
#include <array>
#include <cmath>
#include <vector>

#include "gen/abi/ops.h"
#include "kernels/attention/blocks.h"
#include "kernels/simd/copy/copy.h"
#include "kernels/simd/reduce/reduce.h"
#include "kernels/simd/rows/dense.h"
#include "kernels/simd/rows/scratch.h"
#include "ops/attention/layout.h"
#include "tensor/shape.h"

namespace npu::ops {
namespace {

using abi::FlashAttentionScore, abi::FlashAttentionScoreV2, abi::FlashAttentionScoreV3, abi::FlashAttentionVarLenScore;
using abi::FlashAttentionScoreGrad, abi::FlashAttentionScoreGradV2, abi::FlashAttentionScoreGradV3;
using abi::FlashAttentionScoreGradV4, abi::FlashAttentionScoreV4;
using abi::FlashAttentionUnpaddingScoreGrad, abi::FlashAttentionUnpaddingScoreGradV4,
    abi::FlashAttentionUnpaddingScoreGradV5;
using abi::FlashAttentionVarLenScoreV4, abi::FlashAttentionVarLenScoreV5;

// The parameters all variants share; V2 and V3 add a bias type, packed sequences their lengths.
template <class A, class Key>
AttentionCall Common(const Args& a, Key key, MaybeIn bias) {
  AttentionCall c;
  c.q = &a[A::query];
  c.k = &a[key];
  c.v = &a[A::value];
  c.mask = a[A::attenMaskOptional];
  c.bias = a[bias];
  c.drop = a[A::dropMaskOptional];
  if constexpr (requires { A::sinkOptional; }) c.sink = a[A::sinkOptional];
  if constexpr (requires { A::sinkInOptional; }) c.sink = a[A::sinkInOptional];
  // Empty tensors stand for absent ones.
  for (const Tensor** t : {&c.mask, &c.bias, &c.drop, &c.sink}) {
    if (*t != nullptr && (*t)->Numel() == 0) *t = nullptr;
  }
  c.layout = a[A::inputLayout];
  c.heads = a[A::headNum];
  c.scale = a[A::scaleValue];
  c.keep = a[A::keepProb];
  c.before = a[A::preTokens];
  c.after = a[A::nextTokens];
  c.sparse_mode = a[A::sparseMode];
  if constexpr (requires { A::pseType; }) c.bias_type = a[A::pseType];
  if constexpr (requires { A::actualSeqQLenOptional; }) {
    c.q_ends = a[A::actualSeqQLenOptional];
    c.k_ends = a[A::actualSeqKvLenOptional];
  }
  return c;
}

template <class A>
Status RefuseRotary(const Planning& p) {
  if constexpr (requires { A::queryRope; }) {
    if (p.args[A::queryRope] != nullptr) return NotYet(A::kName, "a rotary part of the query is not computed yet.");
  }
  // V4 adds these, and scales of 8-bit operands.
  for (size_t i = 0; i < p.op.params.size(); ++i) {
    const std::string_view name = p.op.params[i].name;
    const Token token{static_cast<uint8_t>(i)};
    const bool more = name == "queryRopeOptional" || name == "keyRopeOptional" || name.starts_with("dScale");
    if (more && !p.args.Null(token) && p.args.Many<Tensor>(token)[0].Numel() > 0) {
      return NotYet(A::kName, fmt::format("{} is not taken yet.", name));
    }
  }
  return {};
}

// Both statistics are f32 with eight columns, or absent.
Status CheckStat(std::string_view op, std::string_view name, const Tensor* t, const AttentionPlan& plan, bool needed) {
  if (t == nullptr || t->Numel() == 0) {
    if (!needed) return {};
    return Status(Code::kInvalidParam, fmt::format("{}: {} is missing.", op, name))
        .Remedy("Pass what the forward function wrote there.");
  }
  const bool packed = plan.layout == "TND";
  const int64_t rows = plan.items.empty() ? 0
                       : packed           ? plan.items.back().q_begin + plan.items.back().q_rows
                                          : plan.items[0].q_rows;
  const std::array<int64_t, 4> padded{plan.batch, plan.shape.heads, rows, 8};
  const std::array<int64_t, 3> tokens{rows, plan.shape.heads, 8};
  const std::span<const int64_t> want = packed ? std::span<const int64_t>(tokens) : std::span<const int64_t>(padded);
  if (t->dtype != DType::f32 || !npu::SameShape(t->Shape(), want)) {
    return Status(Code::kInvalidParam,
                  fmt::format("{}: {} is {} of shape {}.", op, name, Name(t->dtype), ShapeText(t->Shape())))
        .Remedy("It is float32 of shape {}.", ShapeText(want));
  }
  return {};
}

void AttentionCost(Planning& p, const AttentionPlan& plan, double products) {
  double scores = 0;
  for (const auto& item : plan.items) scores += static_cast<double>(item.q_rows) * static_cast<double>(item.k_rows);
  p.Cost(5000 +
         products * scores * static_cast<double>(plan.shape.heads * (plan.shape.dim + plan.shape.value_dim)) / 25);
}

attention::Stats StatsOf(const AttentionPlan& plan, const Tensor* max, const Tensor* sum) {
  attention::Stats s;
  if (max != nullptr && max->Numel() > 0) s.max = plan.Stat(*max);
  if (sum != nullptr && sum->Numel() > 0) s.sum = plan.Stat(*sum);
  return s;
}

template <class A>
Status PrepareForward(Planning& p) {
  AttentionPlan plan;
  NPU_TRY(RefuseRotary<A>(p));
  NPU_TRY(PlanAttention(A::kName, Common<A>(p.args, A::key, A::realShiftOptional), &plan));
  const Tensor* out = p.args.Maybe(A::attentionOutOut);
  const Tensor& q = p.args[A::query];
  // Like the query, with the columns of value.
  Dims want = DimsOf(q);
  const bool merged = plan.layout == "BSH" || plan.layout == "SBH";
  want.size[static_cast<size_t>(want.rank - 1)] = plan.shape.value_dim * (merged ? plan.shape.heads : 1);
  if (out == nullptr || !npu::SameShape(out->Shape(), want.Span()) || out->dtype != q.dtype) {
    return p.Refuse("attentionOutOut has shape {}.", out == nullptr ? "(null)" : ShapeText(out->Shape()))
        .Remedy("It is {} of shape {}.", Name(q.dtype), ShapeText(want.Span()));
  }
  NPU_TRY(CheckStat(A::kName, "softmaxMaxOut", p.args.Maybe(A::softmaxMaxOut), plan, false));
  NPU_TRY(CheckStat(A::kName, "softmaxSumOut", p.args.Maybe(A::softmaxSumOut), plan, false));
  AttentionCost(p, plan, 1);
  return {};
}

template <class A>
Status RunForward(const Call& c) {
  AttentionPlan plan;
  NPU_TRY(PlanAttention(A::kName, Common<A>(c.args, A::key, A::realShiftOptional), &plan));
  const attention::Heads out = plan.Like(*c.args.Maybe(A::attentionOutOut), plan.shape.heads, plan.shape.value_dim);
  const attention::Stats stats = StatsOf(plan, c.args.Maybe(A::softmaxMaxOut), c.args.Maybe(A::softmaxSumOut));
  return attention::Forward(c.parallel, plan.shape, plan.q, plan.k, plan.v, out, stats);
}

// The gradient of a position bias, if there is one and it is wanted. A bias is no packed one here: PlanAttention says so.
template <class A>
const Tensor* WantedBias(const Args& a, const AttentionPlan& plan) {
  const Tensor* t = a.Maybe(A::dpseOut);
  return plan.shape.bias.data != nullptr && t != nullptr && t->Numel() > 0 ? t : nullptr;
}

// One number for every score: [batch, heads, rows, columns].
Tensor ScoreGrid(const AttentionPlan& plan, void* data) {
  const attention::Item item = plan.items.empty() ? attention::Item{} : plan.items[0];
  return MakeContiguous(data, DType::f32, std::array<int64_t, 4>{plan.batch, plan.shape.heads, item.q_rows, item.k_rows});
}

// grid summed over what the bias was broadcast along.
void SumBias(const Tensor& grid, const Tensor& out, Parallel& parallel) {
  uint32_t dims = 0;
  Dims kept = DimsOf(grid);
  for (int d = 0; d < 4; ++d) {
    const int mine = d - (4 - out.rank);
    if (mine >= 0 && out.shape[static_cast<size_t>(mine)] == grid.shape[static_cast<size_t>(d)]) continue;
    dims |= simd::Dims(d);
    kept.size[static_cast<size_t>(d)] = 1;
  }
  simd::Scratch<float> memory(kept.Numel());
  const Tensor sums = MakeContiguous(memory.data(), DType::f32, kept.Span());
  simd::Sum(grid, dims, sums, parallel);
  simd::Copy(MakeContiguous(memory.data(), DType::f32, out.Shape()), out, parallel);
}

// A sink's weight in a row is exp(sink - max) / sum; it has no value, so its gradient is minus that times the row's dot product.
void SinkGradient(const AttentionPlan& plan, const attention::Heads& out, const attention::Heads& dout, const attention::Stats& stats, const Tensor& to) {
  const attention::Shape& s = plan.shape;
  std::vector<float> a(static_cast<size_t>(s.value_dim)), b(static_cast<size_t>(s.value_dim));
  std::vector<double> sum(static_cast<size_t>(s.heads), 0.0);
  for (size_t i = 0; i < plan.items.size(); ++i) {
    const attention::Item& item = plan.items[i];
    const auto index = static_cast<int64_t>(i);
    for (int64_t h = 0; h < s.heads; ++h) {
      for (int64_t r = item.q_begin; r < item.q_begin + item.q_rows; ++r) {
        attention::LoadRow(attention::At(out, index, h, r), 0, s.value_dim, a.data());
        attention::LoadRow(attention::At(dout, index, h, r), 0, s.value_dim, b.data());
        double dot = 0;
        for (size_t e = 0; e < a.size(); ++e) dot += static_cast<double>(a[e]) * static_cast<double>(b[e]);
        const float top = *reinterpret_cast<const float*>(attention::At(stats.max, index, h, r).data);
        const float all = *reinterpret_cast<const float*>(attention::At(stats.sum, index, h, r).data);
        if (all != 0) sum[static_cast<size_t>(h)] -= std::exp(static_cast<double>(s.sink[h]) - static_cast<double>(top)) / static_cast<double>(all) * dot;
      }
    }
  }
  simd::StoreDense(sum.data(), to);
}

template <class A>
Status PrepareBackward(Planning& p) {
  const Args& a = p.args;
  AttentionPlan plan;
  NPU_TRY(RefuseRotary<A>(p));
  NPU_TRY(PlanAttention(A::kName, Common<A>(a, A::keyIn, A::pseShiftOptional), &plan));
  if (const Tensor* dbias = WantedBias<A>(a, plan); dbias != nullptr) {
    const Tensor& bias = *a[A::pseShiftOptional];
    if (!npu::SameShape(dbias->Shape(), bias.Shape()) || !(dbias->dtype == DType::f32 || IsHalf(dbias->dtype))) {
      return p.Refuse("dpseOut is {} of shape {}.", Name(dbias->dtype), ShapeText(dbias->Shape()))
          .Remedy("It is of a float type and has the shape {}.", ShapeText(bias.Shape()));
    }
    if (plan.shape.scale == 0) return p.Refuse("scaleValue is 0.").Remedy("A position bias has no gradient then.");
    p.NeedScratch(static_cast<uint64_t>(ScoreGrid(plan, nullptr).Numel()) * sizeof(float));
  }
  if constexpr (requires { A::dsinkOut; }) {
    const Tensor* dsink = a.Maybe(A::dsinkOut);
    if (plan.shape.sink != nullptr && dsink != nullptr && dsink->Numel() > 0 && (dsink->dtype != DType::f32 || dsink->Numel() != plan.shape.heads)) {
      return p.Refuse("dsinkOut is {} of shape {}.", Name(dsink->dtype), ShapeText(dsink->Shape())).Remedy("It is float32 with one value for each head.");
    }
  }
  // Of no rows at all there are none, and torch_npu passes null.
  const bool any = a[A::dy].Numel() > 0;
  NPU_TRY(CheckStat(A::kName, "softmaxMaxOptional", a[A::softmaxMaxOptional], plan, any));
  NPU_TRY(CheckStat(A::kName, "softmaxSumOptional", a[A::softmaxSumOptional], plan, any));
  const Tensor* out = a[A::attentionInOptional];
  if (out == nullptr)
    return p.Refuse("attentionInOptional is missing.").Remedy("Pass the result of the forward function.");
  for (const auto& [t, like, name] : {std::tuple{&a[A::dqOut], &a[A::query], "dqOut"},
                                      {&a[A::dkOut], &a[A::keyIn], "dkOut"},
                                      {&a[A::dvOut], &a[A::value], "dvOut"},
                                      {out, &a[A::dy], "attentionInOptional"}}) {
    const bool type = t->dtype == DType::f32 || IsHalf(t->dtype);
    if (!npu::SameShape(t->Shape(), like->Shape()) || !type) {
      return p.Refuse("{} is {} of shape {}.", name, Name(t->dtype), ShapeText(t->Shape()))
          .Remedy("It is of a float type and has the shape {}.", ShapeText(like->Shape()));
    }
  }
  AttentionCost(p, plan, 2.5);
  return {};
}

template <class A>
Status RunBackward(const Call& c) {
  const Args& a = c.args;
  AttentionPlan plan;
  NPU_TRY(PlanAttention(A::kName, Common<A>(a, A::keyIn, A::pseShiftOptional), &plan));
  const attention::Shape& s = plan.shape;
  attention::Gradients g{plan.Like(a[A::dqOut], s.heads, s.dim), plan.Like(a[A::dkOut], s.kv_heads, s.dim),
                         plan.Like(a[A::dvOut], s.kv_heads, s.value_dim)};
  const Tensor* dbias = WantedBias<A>(a, plan);
  const Tensor grid = ScoreGrid(plan, c.scratch);
  if (dbias != nullptr) {
    const uint64_t zero[2] = {};
    simd::Fill(zero, grid, c.parallel);
    g.dbias = {grid.data, DType::f32, grid.strides[0], grid.strides[1], grid.strides[2], 1};
  }
  const attention::Heads out = plan.Like(*a[A::attentionInOptional], s.heads, s.value_dim), dout = plan.Like(a[A::dy], s.heads, s.value_dim);
  const attention::Stats stats = StatsOf(plan, a[A::softmaxMaxOptional], a[A::softmaxSumOptional]);
  NPU_TRY(attention::Backward(c.parallel, s, plan.q, plan.k, plan.v, out, stats, dout, g));
  if (dbias != nullptr) SumBias(grid, *dbias, c.parallel);
  if constexpr (requires { A::dsinkOut; }) {
    const Tensor* dsink = a.Maybe(A::dsinkOut);
    if (s.sink != nullptr && dsink != nullptr && dsink->Numel() > 0) SinkGradient(plan, out, dout, stats, *dsink);
  }
  return {};
}

// What forward functions have in common; they differ in a few parameters that are named behind it.
template <class A>
consteval Builder ForwardOp() {
  return Op<A>()
      .Rules(rule::Attended(A::softmaxMaxOut), rule::Attended(A::softmaxSumOut), rule::Attended(A::softmaxOutOut),
             rule::Attended(A::attentionOutOut))
      .Optional(A::softmaxMaxOut, A::softmaxSumOut, A::softmaxOutOut)
      .Uses(A::query, A::key, A::value, A::realShiftOptional, A::dropMaskOptional, A::paddingMaskOptional,
            A::attenMaskOptional, A::prefixOptional, A::scaleValue, A::keepProb, A::preTokens, A::nextTokens,
            A::headNum, A::inputLayout, A::innerPrecise, A::sparseMode)
      .Like("attention(query, key, value, attenMaskOptional, scaleValue, headNum, inputLayout, sparseMode)")
      .Tolerance("accumulated")
      .Prepares(PrepareForward<A>)
      .Does(RunForward<A>);
}

template <class A>
consteval Builder BackwardOp() {
  return Op<A>()
      .Rules(rule::Attended(A::dqOut), rule::Attended(A::dkOut), rule::Attended(A::dvOut), rule::Attended(A::dpseOut))
      .Optional(A::dpseOut)
      .Uses(A::query, A::keyIn, A::value, A::dy, A::pseShiftOptional, A::dropMaskOptional, A::paddingMaskOptional,
            A::attenMaskOptional, A::softmaxMaxOptional, A::softmaxSumOptional, A::softmaxInOptional,
            A::attentionInOptional, A::prefixOptional, A::scaleValue, A::keepProb, A::preTokens, A::nextTokens,
            A::headNum, A::inputLayout, A::innerPrecise, A::sparseMode)
      .Like(
          "attention_backward(query, keyIn, value, dy, attenMaskOptional, scaleValue, headNum, inputLayout, "
          "sparseMode)")
      .Tolerance("accumulated")
      .Prepares(PrepareBackward<A>)
      .Does(RunBackward<A>);
}

}  // namespace

NPU_OP(FlashAttentionScore) = ForwardOp<FlashAttentionScore>();
NPU_OP(FlashAttentionScoreV2) = ForwardOp<FlashAttentionScoreV2>().Uses(FlashAttentionScoreV2::qStartIdxOptional,
                                                                        FlashAttentionScoreV2::kvStartIdxOptional,
                                                                        FlashAttentionScoreV2::pseType);
NPU_OP(FlashAttentionScoreV3) = ForwardOp<FlashAttentionScoreV3>().Uses(FlashAttentionScoreV3::sinkOptional,
                                                                        FlashAttentionScoreV3::qStartIdxOptional,
                                                                        FlashAttentionScoreV3::kvStartIdxOptional,
                                                                        FlashAttentionScoreV3::pseType);
NPU_OP(FlashAttentionVarLenScore) = ForwardOp<FlashAttentionVarLenScore>().Uses(
    FlashAttentionVarLenScore::actualSeqQLenOptional, FlashAttentionVarLenScore::actualSeqKvLenOptional);

NPU_OP(FlashAttentionScoreGrad) = BackwardOp<FlashAttentionScoreGrad>();
NPU_OP(FlashAttentionScoreGradV2) = BackwardOp<FlashAttentionScoreGradV2>().Uses(
    FlashAttentionScoreGradV2::qStartIdxOptional, FlashAttentionScoreGradV2::kvStartIdxOptional,
    FlashAttentionScoreGradV2::pseType);
NPU_OP(FlashAttentionScoreGradV3) = BackwardOp<FlashAttentionScoreGradV3>()
                                        .Rules(rule::Attended(FlashAttentionScoreGradV3::dsinkOut))
                                        .Optional(FlashAttentionScoreGradV3::dsinkOut)
                                        .Uses(FlashAttentionScoreGradV3::sinkInOptional,
                                              FlashAttentionScoreGradV3::qStartIdxOptional,
                                              FlashAttentionScoreGradV3::kvStartIdxOptional,
                                              FlashAttentionScoreGradV3::pseType);
// For float operands V4 is V3 with packed sequences. Masks of dropout are given, so seed and offset say nothing.
NPU_OP(FlashAttentionScoreV4) =
    ForwardOp<FlashAttentionScoreV4>()
        .Uses(FlashAttentionScoreV4::sinkOptional, FlashAttentionScoreV4::actualSeqQLenOptional, FlashAttentionScoreV4::actualSeqKvLenOptional)
        .Uses(FlashAttentionScoreV4::qStartIdxOptional, FlashAttentionScoreV4::kvStartIdxOptional, FlashAttentionScoreV4::pseType)
        .Uses(FlashAttentionScoreV4::queryRopeOptional, FlashAttentionScoreV4::keyRopeOptional, FlashAttentionScoreV4::dScaleQOptional)
        .Uses(FlashAttentionScoreV4::dScaleKOptional, FlashAttentionScoreV4::dScaleVOptional, FlashAttentionScoreV4::outDtype)
        .Uses(FlashAttentionScoreV4::softmaxOutLayout, FlashAttentionScoreV4::seed, FlashAttentionScoreV4::offset);
NPU_OP(FlashAttentionScoreGradV4) =
    BackwardOp<FlashAttentionScoreGradV4>()
        .Rules(rule::Attended(FlashAttentionScoreGradV4::dsinkOut), rule::Attended(FlashAttentionScoreGradV4::dqRopeOut),
               rule::Attended(FlashAttentionScoreGradV4::dkRopeOut))
        .Optional(FlashAttentionScoreGradV4::dsinkOut, FlashAttentionScoreGradV4::dqRopeOut, FlashAttentionScoreGradV4::dkRopeOut)
        .Uses(FlashAttentionScoreGradV4::sinkInOptional, FlashAttentionScoreGradV4::actualSeqQLenOptional,
              FlashAttentionScoreGradV4::actualSeqKvLenOptional, FlashAttentionScoreGradV4::pseType)
        .Uses(FlashAttentionScoreGradV4::qStartIdxOptional, FlashAttentionScoreGradV4::kvStartIdxOptional, FlashAttentionScoreGradV4::outDtype)
        .Uses(FlashAttentionScoreGradV4::queryRopeOptional, FlashAttentionScoreGradV4::keyRopeOptional, FlashAttentionScoreGradV4::dScaleQOptional)
        .Uses(FlashAttentionScoreGradV4::dScaleKOptional, FlashAttentionScoreGradV4::dScaleVOptional, FlashAttentionScoreGradV4::dScaleDyOptional)
        .Uses(FlashAttentionScoreGradV4::dScaleOOptional, FlashAttentionScoreGradV4::softmaxInLayout, FlashAttentionScoreGradV4::seed,
              FlashAttentionScoreGradV4::offset);
NPU_OP(FlashAttentionUnpaddingScoreGrad) = BackwardOp<FlashAttentionUnpaddingScoreGrad>().Uses(
    FlashAttentionUnpaddingScoreGrad::actualSeqQLenOptional, FlashAttentionUnpaddingScoreGrad::actualSeqKvLenOptional);

// V4 names the layout of the statistics; they lie as the tokens do. V5 adds sinks, and rotary parts, which are refused.
NPU_OP(FlashAttentionVarLenScoreV4) = ForwardOp<FlashAttentionVarLenScoreV4>().Uses(
    FlashAttentionVarLenScoreV4::actualSeqQLenOptional, FlashAttentionVarLenScoreV4::actualSeqKvLenOptional,
    FlashAttentionVarLenScoreV4::softmaxOutLayout);
NPU_OP(FlashAttentionVarLenScoreV5) = ForwardOp<FlashAttentionVarLenScoreV5>().Uses(
    FlashAttentionVarLenScoreV5::actualSeqQLenOptional, FlashAttentionVarLenScoreV5::actualSeqKvLenOptional,
    FlashAttentionVarLenScoreV5::softmaxOutLayout, FlashAttentionVarLenScoreV5::queryRope,
    FlashAttentionVarLenScoreV5::keyRope, FlashAttentionVarLenScoreV5::sinkOptional,
    FlashAttentionVarLenScoreV5::qStartIdxOptional, FlashAttentionVarLenScoreV5::kvStartIdxOptional,
    FlashAttentionVarLenScoreV5::pseType);
NPU_OP(FlashAttentionUnpaddingScoreGradV4) = BackwardOp<FlashAttentionUnpaddingScoreGradV4>().Uses(
    FlashAttentionUnpaddingScoreGradV4::actualSeqQLenOptional,
    FlashAttentionUnpaddingScoreGradV4::actualSeqKvLenOptional, FlashAttentionUnpaddingScoreGradV4::softmaxInLayout);
NPU_OP(FlashAttentionUnpaddingScoreGradV5) = BackwardOp<FlashAttentionUnpaddingScoreGradV5>()
                                                 .Rules(rule::Attended(FlashAttentionUnpaddingScoreGradV5::dsinkOut),
                                                        rule::Attended(FlashAttentionUnpaddingScoreGradV5::dqRopeOut),
                                                        rule::Attended(FlashAttentionUnpaddingScoreGradV5::dkRopeOut))
                                                 .Uses(FlashAttentionUnpaddingScoreGradV5::actualSeqQLenOptional,
                                                       FlashAttentionUnpaddingScoreGradV5::actualSeqKvLenOptional,
                                                       FlashAttentionUnpaddingScoreGradV5::softmaxInLayout,
                                                       FlashAttentionUnpaddingScoreGradV5::queryRope,
                                                       FlashAttentionUnpaddingScoreGradV5::keyInRope,
                                                       FlashAttentionUnpaddingScoreGradV5::sinkInOptional,
                                                       FlashAttentionUnpaddingScoreGradV5::qStartIdxOptional,
                                                       FlashAttentionUnpaddingScoreGradV5::kvStartIdxOptional,
                                                       FlashAttentionUnpaddingScoreGradV5::pseType);

}  // namespace npu::ops
