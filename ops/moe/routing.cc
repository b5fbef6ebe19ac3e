// Tokens to experts and back: rows are copied in the order of their experts, and added up again with weights.
#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include "gen/abi/ops.h"
#include "ops/common/dims.h"
#include "ops/common/values.h"
#include "ops/quant/quantize.h"

namespace npu::ops {

using namespace rule;  // NOLINT(google-build-using-namespace)

namespace {

size_t U(int64_t i) { return static_cast<size_t>(i); }

// Positions of `keys` in ascending order of the keys; equal ones keep theirs.
std::vector<int64_t> SortedPlaces(const Values<int64_t>& keys) {
  std::vector<int64_t> order(U(keys.size()));
  std::iota(order.begin(), order.end(), int64_t{0});
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return keys[a] < keys[b]; });
  return order;
}

Tensor RowOf(const Tensor& t, int64_t row) {
  Tensor r = t;
  r.data = simd::At(t.data, t.dtype, row * t.strides[0]);
  r.rank = static_cast<int8_t>(t.rank - 1);
  for (int d = 0; d < r.rank; ++d) r.shape[U(d)] = t.shape[U(d + 1)], r.strides[U(d)] = t.strides[U(d + 1)];
  return r;
}

// to[i] = from[source[i]] for rows of any shape; rows below 0 become zero.
void CopyRows(const Call& c, const Tensor& from, std::span<const int64_t> source, const Tensor& to) {
  const int64_t width = from.rank < 2 ? 1 : from.Numel() / std::max<int64_t>(1, from.shape[0]);
  c.parallel.For(static_cast<int64_t>(source.size()), Grain(width), [&](int64_t begin, int64_t end) {
    SerialParallel serial;
    for (int64_t i = begin; i < end; ++i) {
      const uint64_t zero[2] = {};
      if (source[U(i)] < 0)
        simd::Fill(zero, RowOf(to, i), serial);
      else
        simd::Copy(RowOf(from, source[U(i)]), RowOf(to, i), serial);
    }
  });
}

Status BadRow(const Call& c, std::string_view name, int64_t at, int64_t value, int64_t size) {
  return Error(Code::kTaskException, "{}: {}[{}] is {}, but there are {} rows.", c.op.name, name, at, value, size)
      .Remedy("Pass what the routing operator gave.");
}

int64_t PerToken(const Tensor& indices) { return indices.rank > 1 ? SizeAt(indices, 0) : 1; }

}  // namespace

using abi::MoeTokenPermute, abi::MoeTokenPermuteGrad, abi::MoeTokenUnpermute, abi::MoeTokenUnpermuteGrad;

// The place of each (token, choice) among all sorted by expert.
NPU_OP(MoeTokenPermute) =
    Op<MoeTokenPermute>()
        .Rules(DtypeIn(MoeTokenPermute::indices, kIndexTypes),
               SameDtype(MoeTokenPermute::tokens, MoeTokenPermute::permuteTokensOut),
               AnyShapes(MoeTokenPermute::permuteTokensOut, MoeTokenPermute::sortedIndicesOut),
               DtypeIn(MoeTokenPermute::sortedIndicesOut, kIndexTypes))
        .Uses(MoeTokenPermute::numOutTokens, MoeTokenPermute::paddedMode)
        .Tolerance("exact")
        .Like("moe_permute(tokens, indices, numOutTokens)")
        .Prepares([](Planning& p) -> Status {
          using A = MoeTokenPermute;
          const Tensor &tokens = p.args[A::tokens], &indices = p.args[A::indices];
          if (p.args[A::paddedMode]) return NotYet(p.op.name, "padded experts are not computed");
          if (tokens.rank != 2 || indices.rank < 1 || indices.rank > 2 || indices.shape[0] != tokens.shape[0])
            return p
                .Refuse("tokens has shape {} and indices {}.", ShapeText(tokens.Shape()), ShapeText(indices.Shape()))
                .Remedy("tokens is [tokens, width], indices [tokens] or [tokens, choices].");
          const int64_t all = indices.Numel(), given = p.args[A::numOutTokens];
          Dims rows, places;
          rows.Push(std::clamp<int64_t>(given <= 0 ? all + given : given, 0, all));
          rows.Push(tokens.shape[1]);
          places.Push(all);
          NPU_TRY(WantShape(p, A::permuteTokensOut, rows, "it has the tokens that are passed on"));
          return WantShape(p, A::sortedIndicesOut, places, "there is one for each choice");
        })
        .Does([](const Call& c) -> Status {
          using A = MoeTokenPermute;
          const Values<int64_t> experts(c.args[A::indices], c.parallel);
          std::vector<int64_t> order = SortedPlaces(experts);
          Results<int64_t> places(c.args[A::sortedIndicesOut], c.parallel);
          for (size_t i = 0; i < order.size(); ++i) places[order[i]] = static_cast<int64_t>(i);
          order.resize(U(c.args[A::permuteTokensOut].shape[0]));
          for (int64_t& o : order) o /= PerToken(c.args[A::indices]);
          CopyRows(c, c.args[A::tokens], order, c.args[A::permuteTokensOut]);
          return {};
        });

namespace {

// out[t] = Σ over its choices of weight · rows[place]; choices that were not passed on add nothing.
Status AddUp(const Call& c, const Tensor& rows_in, const Tensor& sorted, const Tensor* probs, const Tensor& out,
             int64_t choices) {
  return WithFloat(rows_in.dtype, [&]<class T>() -> Status {
    const Values<T> rows(rows_in, c.parallel);
    const Values<int64_t> place(sorted, c.parallel);
    std::optional<Values<T>> weight;
    if (probs != nullptr) weight.emplace(*probs, c.parallel);
    Results<T> sums(out, c.parallel);
    const int64_t width = SizeAt(out, 0), have = rows_in.shape[0];
    for (int64_t i = 0; i < place.size(); ++i)
      if (place[i] < 0) return BadRow(c, "sortedIndices", i, place[i], have);
    c.parallel.For(out.shape[0], Grain(width * choices), [&](int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end; ++t) {
        T* to = sums.data() + t * width;
        std::fill(to, to + width, T{0});
        for (int64_t j = 0; j < choices; ++j) {
          const int64_t at = place[t * choices + j];
          if (at >= have) continue;
          const T w = weight ? (*weight)[t * choices + j] : T{1};
          const T* from = rows.data() + at * width;
          for (int64_t i = 0; i < width; ++i) to[i] += w * from[i];
        }
      }
    });
    return {};
  });
}

Status WantUnpermuted(const Planning& p, const Tensor& rows, const Tensor& sorted, int64_t choices, TensorToken out) {
  if (rows.rank != 2 || sorted.rank != 1 || choices < 1 || sorted.Numel() % choices != 0)
    return p
        .Refuse("the rows have shape {}, sortedIndices {} and there are {} choices for a token.",
                ShapeText(rows.Shape()), ShapeText(sorted.Shape()), choices)
        .Remedy("sortedIndices has the choices of each token.");
  Dims want;
  want.Push(sorted.Numel() / choices);
  want.Push(rows.shape[1]);
  return WantShape(p, out, want, "there is one row for each token");
}

int64_t Choices(const Tensor* probs) { return probs == nullptr ? 1 : PerToken(*probs); }

Status WantProbs(const Planning& p, const Tensor* probs, const Tensor& sorted) {
  if (probs == nullptr || probs->Numel() == sorted.Numel()) return {};
  return p.Refuse("probsOptional has shape {} for {} choices.", ShapeText(probs->Shape()), sorted.Numel())
      .Remedy("There is one for each choice of each token.");
}

}  // namespace

NPU_OP(MoeTokenUnpermute) = Op<MoeTokenUnpermute>()
                                .Rules(FloatTensors(MoeTokenUnpermute::permutedTokens, MoeTokenUnpermute::probsOptional,
                                                    MoeTokenUnpermute::out),
                                       DtypeIn(MoeTokenUnpermute::sortedIndices, kIndexTypes),
                                       AnyShape(MoeTokenUnpermute::out))
                                .Uses(MoeTokenUnpermute::paddedMode, MoeTokenUnpermute::restoreShapeOptional)
                                .Tolerance("accumulated")
                                .Like("moe_unpermute(permutedTokens, sortedIndices, probsOptional)")
                                .Prepares([](Planning& p) -> Status {
                                  using A = MoeTokenUnpermute;
                                  if (p.args[A::paddedMode])
                                    return NotYet(p.op.name, "padded experts are not computed");
                                  NPU_TRY(WantProbs(p, p.args[A::probsOptional], p.args[A::sortedIndices]));
                                  return WantUnpermuted(p, p.args[A::permutedTokens], p.args[A::sortedIndices],
                                                        Choices(p.args[A::probsOptional]), A::out);
                                })
                                .Does([](const Call& c) {
                                  using A = MoeTokenUnpermute;
                                  return AddUp(c, c.args[A::permutedTokens], c.args[A::sortedIndices],
                                               c.args[A::probsOptional], c.args[A::out],
                                               Choices(c.args[A::probsOptional]));
                                });
NPU_OP(MoeTokenPermuteGrad) =
    Op<MoeTokenPermuteGrad>()
        .Rules(FloatTensors(MoeTokenPermuteGrad::permutedOutputGrad, MoeTokenPermuteGrad::out),
               DtypeIn(MoeTokenPermuteGrad::sortedIndices, kIndexTypes), AnyShape(MoeTokenPermuteGrad::out))
        .Uses(MoeTokenPermuteGrad::numTopk, MoeTokenPermuteGrad::paddedMode)
        .Tolerance("accumulated")
        .Like("moe_permute_backward(permutedOutputGrad, sortedIndices, numTopk)")
        .Prepares([](Planning& p) -> Status {
          using A = MoeTokenPermuteGrad;
          if (p.args[A::paddedMode]) return NotYet(p.op.name, "padded experts are not computed");
          return WantUnpermuted(p, p.args[A::permutedOutputGrad], p.args[A::sortedIndices], p.args[A::numTopk], A::out);
        })
        .Does([](const Call& c) {
          using A = MoeTokenPermuteGrad;
          return AddUp(c, c.args[A::permutedOutputGrad], c.args[A::sortedIndices], nullptr, c.args[A::out],
                       c.args[A::numTopk]);
        });
NPU_OP(MoeTokenUnpermuteGrad) =
    Op<MoeTokenUnpermuteGrad>()
        .Optional(MoeTokenUnpermuteGrad::probsGradOut)
        .Rules(FloatTensors(MoeTokenUnpermuteGrad::permuteTokensOptional, MoeTokenUnpermuteGrad::unpermutedTokensGrad,
                            MoeTokenUnpermuteGrad::probsOptional, MoeTokenUnpermuteGrad::permutedTokensGradOut,
                            MoeTokenUnpermuteGrad::probsGradOut),
               DtypeIn(MoeTokenUnpermuteGrad::sortedIndices, kIndexTypes),
               AnyShapes(MoeTokenUnpermuteGrad::permutedTokensGradOut, MoeTokenUnpermuteGrad::probsGradOut))
        .Uses(MoeTokenUnpermuteGrad::paddedMode, MoeTokenUnpermuteGrad::restoreShapeOptional)
        .Tolerance("accumulated")
        .Like("moe_unpermute_backward(permuteTokensOptional, unpermutedTokensGrad, sortedIndices, probsOptional)")
        .Prepares([](Planning& p) -> Status {
          using A = MoeTokenUnpermuteGrad;
          if (p.args[A::paddedMode]) return NotYet(p.op.name, "padded experts are not computed");
          const Tensor &grad = p.args[A::unpermutedTokensGrad], &sorted = p.args[A::sortedIndices],
                       &to = p.args[A::permutedTokensGradOut];
          const int64_t choices = Choices(p.args[A::probsOptional]);
          if (grad.rank != 2 || sorted.rank != 1 || sorted.Numel() != grad.shape[0] * choices || to.rank != 2 ||
              to.shape[1] != grad.shape[1])
            return p
                .Refuse("the gradient has shape {}, sortedIndices {} and permutedTokensGradOut {}.",
                        ShapeText(grad.Shape()), ShapeText(sorted.Shape()), ShapeText(to.Shape()))
                .Remedy("Pass the shapes of the forward call.");
          if (p.args[A::probsOptional] == nullptr) return {};
          if (p.args[A::permuteTokensOptional] == nullptr)
            return Error(Code::kNullPointer, "{}: permuteTokensOptional is null.", p.op.name)
                .Remedy("The gradient of probs needs it.");
          NPU_TRY(WantProbs(p, p.args[A::probsOptional], sorted));
          if (!npu::SameShape(p.args[A::permuteTokensOptional]->Shape(), to.Shape()))
            return p
                .Refuse("permuteTokensOptional has shape {} and permutedTokensGradOut {}.",
                        ShapeText(p.args[A::permuteTokensOptional]->Shape()), ShapeText(to.Shape()))
                .Remedy("The shapes are equal.");
          return WantShape(p, A::probsGradOut, DimsOf(*p.args[A::probsOptional]), "it is the gradient of probs");
        })
        .Does([](const Call& c) -> Status {
          using A = MoeTokenUnpermuteGrad;
          const Tensor *probs = c.args[A::probsOptional], *rows = c.args[A::permuteTokensOptional];
          const int64_t choices = Choices(probs);
          return WithFloat(c.args[A::unpermutedTokensGrad].dtype, [&]<class T>() -> Status {
            const Values<T> grad(c.args[A::unpermutedTokensGrad], c.parallel);
            const Values<int64_t> place(c.args[A::sortedIndices], c.parallel);
            Results<T> to(c.args[A::permutedTokensGradOut], c.parallel);
            const int64_t width = SizeAt(c.args[A::unpermutedTokensGrad], 0),
                          have = c.args[A::permutedTokensGradOut].shape[0];
            for (int64_t i = 0; i < place.size(); ++i)
              if (place[i] < 0) return BadRow(c, "sortedIndices", i, place[i], have);
            std::fill(to.data(), to.data() + to.size(), T{0});
            std::optional<Values<T>> weight, from;
            std::optional<Results<T>> dprobs;
            if (probs != nullptr) {
              weight.emplace(*probs, c.parallel);
              from.emplace(*rows, c.parallel);
              dprobs.emplace(*c.args.Maybe(A::probsGradOut), c.parallel);
            }
            c.parallel.For(place.size(), Grain(width * 2), [&](int64_t begin, int64_t end) {
              for (int64_t i = begin; i < end; ++i) {
                const T* g = grad.data() + i / choices * width;
                const int64_t at = place[i];
                const T w = weight ? (*weight)[i] : T{1};
                double dot = 0;
                if (at < have) {
                  for (int64_t e = 0; e < width; ++e) to[at * width + e] = w * g[e];
                  if (from) {
                    for (int64_t e = 0; e < width; ++e)
                      dot += static_cast<double>(g[e]) * static_cast<double>((*from)[at * width + e]);
                  }
                }
                if (dprobs) (*dprobs)[i] = static_cast<T>(dot);
              }
            });
            return {};
          });
        });

using abi::MoeInitRouting, abi::MoeInitRoutingV2, abi::MoeInitRoutingV3, abi::MoeFinalizeRouting,
    abi::MoeFinalizeRoutingV2, abi::MoeReRouting;

// (token, choice) pairs sorted by expert; rowIdx numbers the pairs choice by choice.
NPU_OP(MoeInitRouting) =
    Op<MoeInitRouting>()
        .Rules(RankIs(MoeInitRouting::x, 2), RankIs(MoeInitRouting::expertIdx, 2),
               DtypeIn(MoeInitRouting::rowIdx, kIndexTypes), DtypeIn(MoeInitRouting::expertIdx, kIndexTypes),
               SameShape(MoeInitRouting::expertIdx, MoeInitRouting::rowIdx),
               SameDtype(MoeInitRouting::x, MoeInitRouting::expandedXOut),
               AnyShapes(MoeInitRouting::expandedXOut, MoeInitRouting::expandedRowIdxOut,
                         MoeInitRouting::expandedExpertIdxOut),
               DtypeIn(MoeInitRouting::expandedRowIdxOut, kIndexTypes),
               DtypeIn(MoeInitRouting::expandedExpertIdxOut, kIndexTypes))
        .Uses(MoeInitRouting::activeNum)
        .Tolerance("exact")
        .Like("moe_init_routing(x, rowIdx, expertIdx, activeNum)")
        .Prepares([](Planning& p) -> Status {
          using A = MoeInitRouting;
          const Tensor &x = p.args[A::x], &experts = p.args[A::expertIdx];
          if (x.shape[0] != experts.shape[0])
            return p.Refuse("x has shape {} and expertIdx {}.", ShapeText(x.Shape()), ShapeText(experts.Shape()))
                .Remedy("They have one row for each token.");
          Dims rows, all;
          rows.Push(std::min(x.shape[0], std::max<int64_t>(0, p.args[A::activeNum])) * experts.shape[1]);
          rows.Push(x.shape[1]);
          all.Push(experts.Numel());
          NPU_TRY(WantShape(p, A::expandedXOut, rows, "it has the rows of the active tokens"));
          NPU_TRY(WantShape(p, A::expandedRowIdxOut, all, "there is one for each choice"));
          return WantShape(p, A::expandedExpertIdxOut, all, "there is one for each choice");
        })
        .Does([](const Call& c) -> Status {
          using A = MoeInitRouting;
          const Values<int64_t> experts(c.args[A::expertIdx], c.parallel), numbers(c.args[A::rowIdx], c.parallel);
          std::vector<int64_t> order = SortedPlaces(experts);
          Results<int64_t> places(c.args[A::expandedRowIdxOut], c.parallel),
              sorted(c.args[A::expandedExpertIdxOut], c.parallel);
          const int64_t tokens = c.args[A::x].shape[0];
          for (size_t i = 0; i < order.size(); ++i) {
            const int64_t number = numbers[order[i]];
            if (number < 0 || number >= places.size()) return BadRow(c, "rowIdx", order[i], number, places.size());
            sorted[static_cast<int64_t>(i)] = experts[order[i]];
            places[number] = static_cast<int64_t>(i);
            order[i] = number % tokens;
          }
          order.resize(U(c.args[A::expandedXOut].shape[0]));
          CopyRows(c, c.args[A::x], order, c.args[A::expandedXOut]);
          return {};
        });

// Pairs are numbered token by token. dropPadMode 1: each expert has expertCapacity places, others are dropped (-1).
NPU_OP(MoeInitRoutingV2) =
    Op<MoeInitRoutingV2>()
        .Required(MoeInitRoutingV2::expandedXOut)
        .Rules(RankIs(MoeInitRoutingV2::x, 2), RankIs(MoeInitRoutingV2::expertIdx, 2),
               DtypeIn(MoeInitRoutingV2::expertIdx, kIndexTypes),
               SameDtype(MoeInitRoutingV2::x, MoeInitRoutingV2::expandedXOut),
               AnyShapes(MoeInitRoutingV2::expandedXOut, MoeInitRoutingV2::expandedRowIdxOut,
                         MoeInitRoutingV2::expertTokensCountOrCumsumOutOptional,
                         MoeInitRoutingV2::expertTokensBeforeCapacityOutOptional),
               DtypeIn(MoeInitRoutingV2::expandedRowIdxOut, kIndexTypes),
               DtypeIn(MoeInitRoutingV2::expertTokensCountOrCumsumOutOptional, kIndexTypes),
               DtypeIn(MoeInitRoutingV2::expertTokensBeforeCapacityOutOptional, kIndexTypes))
        .Uses(MoeInitRoutingV2::activeNumOptional, MoeInitRoutingV2::expertCapacityOptional,
              MoeInitRoutingV2::expertNumOptional, MoeInitRoutingV2::dropPadModeOptional,
              MoeInitRoutingV2::expertTokensCountOrCumsumFlagOptional,
              MoeInitRoutingV2::expertTokensBeforeCapacityFlagOptional)
        .Tolerance("exact")
        .Like("moe_init_routing_v2(x, expertIdx)")
        .Prepares([](Planning& p) -> Status {
          using A = MoeInitRoutingV2;
          const Tensor &x = p.args[A::x], &experts = p.args[A::expertIdx];
          const int64_t active = p.args[A::activeNumOptional], capacity = p.args[A::expertCapacityOptional],
                        count = p.args[A::expertNumOptional];
          const int64_t mode = p.args[A::dropPadModeOptional], flag = p.args[A::expertTokensCountOrCumsumFlagOptional];
          if (x.shape[0] != experts.shape[0])
            return p.Refuse("x has shape {} and expertIdx {}.", ShapeText(x.Shape()), ShapeText(experts.Shape()))
                .Remedy("They have one row for each token.");
          if (mode != 0 && mode != 1)
            return p.Refuse("dropPadModeOptional is {}.", mode).Remedy("0 keeps all, 1 gives each expert its places.");
          if (mode == 1 && (capacity < 1 || count < 1))
            return p.Refuse("there are {} experts of {} places.", count, capacity)
                .Remedy("Both are at least 1 in this mode.");
          Dims rows, all, each;
          if (mode == 1)
            rows.Push(count), rows.Push(capacity);
          else
            rows.Push(active > 0 ? std::min(active, experts.Numel()) : experts.Numel());
          rows.Push(x.shape[1]);
          all.Push(experts.Numel());
          each.Push(count);
          NPU_TRY(WantShape(p, A::expandedXOut, rows, "it has the rows of the experts"));
          NPU_TRY(WantShape(p, A::expandedRowIdxOut, all, "there is one for each choice"));
          if (mode == 0 && flag != 0 && p.args[A::expertTokensCountOrCumsumOutOptional] != nullptr)
            NPU_TRY(WantShape(p, A::expertTokensCountOrCumsumOutOptional, each, "there is one for each expert"));
          if (mode == 1 && p.args[A::expertTokensBeforeCapacityFlagOptional] &&
              p.args[A::expertTokensBeforeCapacityOutOptional] != nullptr)
            NPU_TRY(WantShape(p, A::expertTokensBeforeCapacityOutOptional, each, "there is one for each expert"));
          return {};
        })
        .Does([](const Call& c) -> Status {
          using A = MoeInitRoutingV2;
          const Values<int64_t> experts(c.args[A::expertIdx], c.parallel);
          const int64_t choices = c.args[A::expertIdx].shape[1], capacity = c.args[A::expertCapacityOptional],
                        count = c.args[A::expertNumOptional];
          const int64_t mode = c.args[A::dropPadModeOptional], flag = c.args[A::expertTokensCountOrCumsumFlagOptional];
          const std::vector<int64_t> order = SortedPlaces(experts);
          std::vector<int64_t> tokens(U(std::max<int64_t>(count, 0)), 0);
          for (int64_t i = 0; i < experts.size(); ++i) {
            if (experts[i] >= 0 && experts[i] < count)
              ++tokens[U(experts[i])];
            else if (mode == 1)
              return BadRow(c, "expertIdx", i, experts[i], count);
          }
          Results<int64_t> places(c.args[A::expandedRowIdxOut], c.parallel);
          const Tensor* wanted = mode == 0 ? (flag != 0 ? c.args[A::expertTokensCountOrCumsumOutOptional] : nullptr)
                                           : (c.args[A::expertTokensBeforeCapacityFlagOptional]
                                                  ? c.args[A::expertTokensBeforeCapacityOutOptional]
                                                  : nullptr);
          if (wanted != nullptr) {
            Results<int64_t> out(*wanted, c.parallel);
            int64_t sum = 0;
            for (int64_t e = 0; e < out.size(); ++e) {
              sum += tokens[U(e)];
              out[e] = mode == 0 && flag == 1 ? sum : tokens[U(e)];
            }
          }
          std::vector<int64_t> source;
          if (mode == 0) {
            for (size_t i = 0; i < order.size(); ++i) places[order[i]] = static_cast<int64_t>(i);
            source = order;
            source.resize(U(c.args[A::expandedXOut]->shape[0]));
            for (int64_t& s : source) s /= choices;
            CopyRows(c, c.args[A::x], source, *c.args[A::expandedXOut]);
            return {};
          }
          source.assign(U(count * capacity), -1);
          std::vector<int64_t> filled(U(count), 0);
          for (const int64_t i : order) {
            const int64_t e = experts[i], at = filled[U(e)]++;
            places[i] = at < capacity ? e * capacity + at : -1;
            if (at < capacity) source[U(e * capacity + at)] = i / choices;
          }
          const Tensor& out = *c.args[A::expandedXOut];
          const simd::DenseOut dense(out, c.parallel);
          CopyRows(c, c.args[A::x], source,
                   MakeContiguous(dense->data, out.dtype, std::array<int64_t, 2>{count * capacity, out.shape[2]}));
          return {};
        });

// Only experts of a range take part; pairs of others come last and their rows are zero. rowIdxType 0: the place of each
// pair, -1 for those that take no part; 1: the pair at each place. quantMode 1: rows in int8 with a scale each.
NPU_OP(MoeInitRoutingV3) =
    Op<MoeInitRoutingV3>()
        .Optional(MoeInitRoutingV3::expandedScaleOut)
        .Rules(RankIs(MoeInitRoutingV3::x, 2), RankIs(MoeInitRoutingV3::expertIdx, 2),
               DtypeIn(MoeInitRoutingV3::expertIdx, kIndexTypes),
               FloatTensors(MoeInitRoutingV3::scaleOptional, MoeInitRoutingV3::offsetOptional,
                            MoeInitRoutingV3::expandedScaleOut),
               AnyShapes(MoeInitRoutingV3::expandedXOut, MoeInitRoutingV3::expandedRowIdxOut,
                         MoeInitRoutingV3::expertTokensCountOrCumsumOut, MoeInitRoutingV3::expandedScaleOut),
               AnyDtype(MoeInitRoutingV3::expandedXOut), DtypeIn(MoeInitRoutingV3::expandedRowIdxOut, kIndexTypes),
               DtypeIn(MoeInitRoutingV3::expertTokensCountOrCumsumOut, kIndexTypes))
        .Uses(MoeInitRoutingV3::activeNum, MoeInitRoutingV3::expertCapacity, MoeInitRoutingV3::expertNum,
              MoeInitRoutingV3::dropPadMode, MoeInitRoutingV3::expertTokensNumType,
              MoeInitRoutingV3::expertTokensNumFlag, MoeInitRoutingV3::quantMode,
              MoeInitRoutingV3::activeExpertRangeOptional, MoeInitRoutingV3::rowIdxType)
        .Tolerance("exact")
        .Like("moe_init_routing_v3(x, expertIdx)")
        .Prepares([](Planning& p) -> Status {
          using A = MoeInitRoutingV3;
          const Tensor &x = p.args[A::x], &experts = p.args[A::expertIdx], &out = p.args[A::expandedXOut];
          const auto range = p.args[A::activeExpertRangeOptional];
          const int64_t mode = p.args[A::quantMode], type = p.args[A::expertTokensNumType],
                        kind = p.args[A::rowIdxType];
          if (p.args[A::dropPadMode] != 0)
            return NotYet(p.op.name,
                          "places of a fixed number for each expert (dropPadMode 1) are computed by the V2 form only");
          if (mode != -1 && mode != 1)
            return NotYet(p.op.name, fmt::format("quantMode {} is not computed; -1 (none) and 1 (dynamic) are", mode));
          if (type != 0 && type != 1)
            return NotYet(p.op.name,
                          fmt::format("expertTokensNumType {} is not computed; 0 (sums) and 1 (counts) are", type));
          if (kind != 0 && kind != 1)
            return p.Refuse("rowIdxType is {}.", kind).Remedy("0 is the place of each pair, 1 the pair at each place.");
          if (x.shape[0] != experts.shape[0])
            return p.Refuse("x has shape {} and expertIdx {}.", ShapeText(x.Shape()), ShapeText(experts.Shape()))
                .Remedy("They have one row for each token.");
          if (!range.empty() && (range.size() != 2 || range[0] < 0 || range[1] <= range[0]))
            return p.Refuse("activeExpertRangeOptional is not a range.")
                .Remedy("It is the first expert and the one behind the last.");
          if (out.dtype != (mode == 1 ? DType::i8 : x.dtype))
            return p.Refuse("expandedXOut is {}.", Name(out.dtype))
                .Remedy("It is int8 with quantMode 1, else of the type of x.");
          const int64_t all = experts.Numel(), active = p.args[A::activeNum];
          Dims rows, each, places;
          rows.Push(active > 0 ? std::min(active, all) : all);
          rows.Push(x.shape[1]);
          places.Push(all);
          each.Push(range.empty() ? p.args[A::expertNum] : range[1] - range[0]);
          NPU_TRY(WantShape(p, A::expandedXOut, rows, "it has the rows of the experts"));
          NPU_TRY(WantShape(p, A::expandedRowIdxOut, places, "there is one for each choice"));
          if (p.args[A::expertTokensNumFlag] && p.args[A::expertTokensCountOrCumsumOut] != nullptr)
            NPU_TRY(WantShape(p, A::expertTokensCountOrCumsumOut, each, "there is one for each expert of the range"));
          const Tensor *scale = p.args[A::scaleOptional], *to = p.args.Maybe(A::expandedScaleOut);
          if (mode == 1 && to == nullptr)
            return Error(Code::kNullPointer, "{}: expandedScaleOut is null.", p.op.name)
                .Remedy("The scale of each row needs a place.");
          if (to != nullptr && (mode == 1 || scale != nullptr) && to->Numel() != rows.size[0])
            return p.Refuse("expandedScaleOut has shape {} for {} rows.", ShapeText(to->Shape()), rows.size[0])
                .Remedy("There is one for each row.");
          if (scale == nullptr) return {};
          const int64_t want = mode == -1 ? x.shape[0] : x.shape[1];
          if (scale->Numel() != want && !(mode == 1 && scale->Numel() == each.size[0] * want))
            return p.Refuse("scaleOptional has shape {}.", ShapeText(scale->Shape()))
                .Remedy("It has one value for each token, or with quantMode 1 for each (expert and) column.");
          return {};
        })
        .Does([](const Call& c) -> Status {
          using A = MoeInitRoutingV3;
          const Values<int64_t> experts(c.args[A::expertIdx], c.parallel);
          const auto range = c.args[A::activeExpertRangeOptional];
          const int64_t first = range.empty() ? 0 : range[0], last = range.empty() ? c.args[A::expertNum] : range[1],
                        choices = c.args[A::expertIdx].shape[1];
          std::vector<int64_t> order = SortedPlaces(experts);
          order.erase(std::remove_if(order.begin(), order.end(),
                                     [&](int64_t i) { return experts[i] < first || experts[i] >= last; }),
                      order.end());
          {
            Results<int64_t> places(c.args[A::expandedRowIdxOut], c.parallel);
            std::fill(places.data(), places.data() + places.size(), int64_t{-1});
            for (size_t i = 0; i < order.size(); ++i) {
              if (c.args[A::rowIdxType] == 0)
                places[order[i]] = static_cast<int64_t>(i);
              else
                places[static_cast<int64_t>(i)] = order[i];
            }
          }
          if (c.args[A::expertTokensNumFlag] && c.args[A::expertTokensCountOrCumsumOut] != nullptr) {
            Results<int64_t> counts(*c.args[A::expertTokensCountOrCumsumOut], c.parallel);
            std::fill(counts.data(), counts.data() + counts.size(), int64_t{0});
            for (const int64_t i : order) ++counts[experts[i] - first];
            for (int64_t e = 1; e < counts.size() && c.args[A::expertTokensNumType] == 0; ++e)
              counts[e] += counts[e - 1];
          }
          const Tensor& out = c.args[A::expandedXOut];
          std::vector<int64_t> source(U(out.shape[0]), -1);
          for (size_t i = 0; i < source.size() && i < order.size(); ++i) source[i] = order[i] / choices;
          const Tensor* scale = c.args[A::scaleOptional];
          if (c.args[A::quantMode] == -1) {
            CopyRows(c, c.args[A::x], source, out);
            if (scale != nullptr && c.args.Maybe(A::expandedScaleOut) != nullptr) {
              const Values<float> given(*scale, c.parallel);
              Results<float> to(*c.args.Maybe(A::expandedScaleOut), c.parallel);
              for (size_t i = 0; i < source.size(); ++i)
                to[static_cast<int64_t>(i)] = source[i] < 0 ? 0 : given[source[i]];
            }
            return {};
          }
          const Values<float> x(c.args[A::x], c.parallel);
          std::optional<Values<float>> smooth;
          if (scale != nullptr) smooth.emplace(*scale, c.parallel);
          quant::Bytes bytes(out, c.parallel);
          Results<float> scales(*c.args.Maybe(A::expandedScaleOut), c.parallel);
          const int64_t width = out.shape[1];
          c.parallel.For(out.shape[0], Grain(width), [&](int64_t begin, int64_t end) {
            std::vector<float> row(U(width));
            for (int64_t r = begin; r < end; ++r) {
              std::fill(row.begin(), row.end(), 0.0f);
              if (source[U(r)] >= 0) {
                const int64_t at = smooth && smooth->size() > width ? (experts[order[U(r)]] - first) * width : 0;
                for (int64_t i = 0; i < width; ++i)
                  row[U(i)] = x[source[U(r)] * width + i] * (smooth ? (*smooth)[at + i] : 1.0f);
              }
              scales[r] = quant::RowToBytes(row.data(), width, bytes.data() + r * width);
            }
          });
          return {};
        });

namespace {

// out[t] = x1 + x2 + Σ over choices of scale · (row + bias of its expert). `choice_major`: how expandedRowIdx numbers
// the pairs.
struct Finalize {
  const Tensor *x1, *x2, *bias, *scales, *experts;
  bool choice_major, may_drop;
};

Status WantFinal(const Planning& p, const Tensor& rows, const Tensor& places, const Finalize& f, TensorToken out) {
  const Tensor* to = p.args.Maybe(out);
  if (to == nullptr)
    return Error(Code::kNullPointer, "{}: out is null.", p.op.name).Remedy("The result needs a place.");
  if (to->rank != 2 || rows.rank < 2 || SizeAt(rows, 0) != to->shape[1] || places.rank != 1 || to->shape[0] == 0 ||
      places.Numel() % to->shape[0] != 0)
    return p
        .Refuse("the rows have shape {}, expandedRowIdx {} and out {}.", ShapeText(rows.Shape()),
                ShapeText(places.Shape()), ShapeText(to->Shape()))
        .Remedy("out is [tokens, width], expandedRowIdx has the choices of each token.");
  for (const Tensor* t : {f.x1, f.x2})
    if (t != nullptr && !npu::SameShape(t->Shape(), to->Shape()))
      return p.Refuse("what is added has shape {} for a result of {}.", ShapeText(t->Shape()), ShapeText(to->Shape()))
          .Remedy("The shapes are equal.");
  for (const Tensor* t : {f.scales, f.experts})
    if (t != nullptr && t->Numel() != places.Numel())
      return p.Refuse("scales or experts have shape {} for {} choices.", ShapeText(t->Shape()), places.Numel())
          .Remedy("There is one for each choice.");
  if (f.bias != nullptr && (f.experts == nullptr || f.bias->rank != 2 || f.bias->shape[1] != to->shape[1]))
    return p
        .Refuse("a bias of shape {} is added{}.", ShapeText(f.bias->Shape()),
                f.experts == nullptr ? " without the experts" : "")
        .Remedy("It is [experts, width], and the expert of each choice is given.");
  return {};
}

Status RunFinal(const Call& c, const Tensor& rows_in, const Tensor& places, const Finalize& f, const Tensor& out) {
  const Values<float> rows(rows_in, c.parallel);
  const Values<int64_t> place(places, c.parallel);
  std::optional<Values<float>> x1, x2, bias, scales;
  std::optional<Values<int64_t>> experts;
  if (f.x1 != nullptr) x1.emplace(*f.x1, c.parallel);
  if (f.x2 != nullptr) x2.emplace(*f.x2, c.parallel);
  if (f.bias != nullptr) bias.emplace(*f.bias, c.parallel);
  if (f.scales != nullptr) scales.emplace(*f.scales, c.parallel);
  if (f.experts != nullptr) experts.emplace(*f.experts, c.parallel);
  Results<float> sums(out, c.parallel);
  const int64_t tokens = out.shape[0], width = out.shape[1], choices = place.size() / tokens,
                have = rows.size() / std::max<int64_t>(width, 1);
  for (int64_t i = 0; i < place.size(); ++i)
    if ((place[i] < 0 && !(f.may_drop && place[i] == -1)) || place[i] >= have)
      return BadRow(c, "expandedRowIdx", i, place[i], have);
  if (bias) {
    for (int64_t i = 0; i < experts->size(); ++i)
      if ((*experts)[i] < 0 || (*experts)[i] >= f.bias->shape[0])
        return BadRow(c, "expertIdx", i, (*experts)[i], f.bias->shape[0]);
  }
  c.parallel.For(tokens, Grain(width * choices), [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      float* to = sums.data() + t * width;
      for (int64_t i = 0; i < width; ++i)
        to[i] = (x1 ? (*x1)[t * width + i] : 0.0f) + (x2 ? (*x2)[t * width + i] : 0.0f);
      for (int64_t j = 0; j < choices; ++j) {
        const int64_t at = place[f.choice_major ? j * tokens + t : t * choices + j];
        const float s = scales ? (*scales)[t * choices + j] : 1.0f;
        const float* b = bias ? bias->data() + (*experts)[t * choices + j] * width : nullptr;
        const float* from = at < 0 ? nullptr : rows.data() + at * width;
        for (int64_t i = 0; i < width; ++i)
          to[i] += s * ((from != nullptr ? from[i] : 0.0f) + (b != nullptr ? b[i] : 0.0f));
      }
    }
  });
  return {};
}

template <class A>
Finalize FirstForm(const Args& a) {
  return {a.Maybe(A::x1), a[A::x2Optional], a[A::bias], a[A::scales], a[A::expandedExpertIdx], true, false};
}
template <class A>
Finalize SecondForm(const Args& a) {
  const int64_t mode = a[A::dropPadMode];
  return {a[A::x1Optional],        a[A::x2Optional], a[A::biasOptional], a[A::scalesOptional],
          a[A::expertIdxOptional], mode < 2,         mode % 2 == 1};
}

}  // namespace

NPU_OP(MoeFinalizeRouting) =
    Op<MoeFinalizeRouting>()
        .Rules(FloatTensors(MoeFinalizeRouting::expandedX, MoeFinalizeRouting::x1, MoeFinalizeRouting::x2Optional,
                            MoeFinalizeRouting::bias, MoeFinalizeRouting::scales, MoeFinalizeRouting::out),
               DtypeIn(MoeFinalizeRouting::expandedRowIdx, kIndexTypes),
               DtypeIn(MoeFinalizeRouting::expandedExpertIdx, kIndexTypes), AnyShape(MoeFinalizeRouting::out))
        .Required(MoeFinalizeRouting::out)
        .Tolerance("accumulated")
        .Like("moe_finalize(expandedX, expandedRowIdx)")
        .Prepares([](Planning& p) {
          using A = MoeFinalizeRouting;
          return WantFinal(p, p.args[A::expandedX], p.args[A::expandedRowIdx], FirstForm<A>(p.args), A::out);
        })
        .Does([](const Call& c) {
          using A = MoeFinalizeRouting;
          return RunFinal(c, c.args[A::expandedX], c.args[A::expandedRowIdx], FirstForm<A>(c.args), *c.args[A::out]);
        });
// dropPadMode 0 and 1 number the pairs choice by choice, 2 and 3 token by token; 1 and 3 may have dropped some.
NPU_OP(MoeFinalizeRoutingV2) =
    Op<MoeFinalizeRoutingV2>()
        .Rules(FloatTensors(MoeFinalizeRoutingV2::expandedX, MoeFinalizeRoutingV2::x1Optional,
                            MoeFinalizeRoutingV2::x2Optional, MoeFinalizeRoutingV2::biasOptional,
                            MoeFinalizeRoutingV2::scalesOptional, MoeFinalizeRoutingV2::out),
               DtypeIn(MoeFinalizeRoutingV2::expandedRowIdx, kIndexTypes),
               DtypeIn(MoeFinalizeRoutingV2::expertIdxOptional, kIndexTypes), AnyShape(MoeFinalizeRoutingV2::out))
        .Required(MoeFinalizeRoutingV2::out)
        .Uses(MoeFinalizeRoutingV2::dropPadMode)
        .Tolerance("accumulated")
        .Like("moe_finalize(expandedX, expandedRowIdx)")
        .Prepares([](Planning& p) -> Status {
          using A = MoeFinalizeRoutingV2;
          if (p.args[A::dropPadMode] < 0 || p.args[A::dropPadMode] > 3)
            return p.Refuse("dropPadMode is {}.", p.args[A::dropPadMode]).Remedy("It is 0 to 3.");
          return WantFinal(p, p.args[A::expandedX], p.args[A::expandedRowIdx], SecondForm<A>(p.args), A::out);
        })
        .Does([](const Call& c) {
          using A = MoeFinalizeRoutingV2;
          return RunFinal(c, c.args[A::expandedX], c.args[A::expandedRowIdx], SecondForm<A>(c.args), *c.args[A::out]);
        });

}  // namespace npu::ops
