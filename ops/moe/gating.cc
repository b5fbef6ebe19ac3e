// Which experts a token goes to: softmax or sigmoid of its scores, then the largest k.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "gen/abi/ops.h"
#include "ops/common/dims.h"
#include "ops/common/values.h"

namespace npu::ops {

using namespace rule;  // NOLINT(google-build-using-namespace)

namespace {

size_t U(int64_t i) { return static_cast<size_t>(i); }

Status WantChosen(const Planning& p, const Tensor& x, int64_t k, std::initializer_list<TensorToken> outs) {
  if (x.rank < 1 || k < 1 || k > SizeAt(x, 0))
    return p.Refuse("k is {}, but x has shape {}.", k, ShapeText(x.Shape()))
        .Remedy("It is between 1 and the number of experts.");
  Dims want = DimsOf(x);
  want.size[U(x.rank - 1)] = k;
  for (const TensorToken out : outs)
    if (p.args.Maybe(out) != nullptr) NPU_TRY(WantShape(p, out, want, "there are k experts for each row"));
  return {};
}

Status WantFlags(const Planning& p, TensorToken finished, const Tensor& x) {
  const Tensor* t = p.args.Maybe(finished);
  const int64_t rows = x.Numel() / std::max<int64_t>(1, SizeAt(x, 0));
  if (t == nullptr || t->Numel() == rows) return {};
  return p.Refuse("{} has shape {} for {} rows.", p.ParamName(finished), ShapeText(t->Shape()), rows)
      .Remedy("There is one for each row.");
}

// Positions of the k largest; of equal ones the first.
void Largest(const float* v, int64_t n, int64_t k, std::vector<int64_t>* order) {
  order->resize(U(n));
  std::iota(order->begin(), order->end(), int64_t{0});
  std::partial_sort(order->begin(), order->begin() + k, order->end(), [v](int64_t a, int64_t b) {
    if (v[a] != v[b]) return v[a] > v[b] || (std::isnan(v[a]) && !std::isnan(v[b]));
    return a < b;
  });
}

void Softmax(const float* x, int64_t n, float* out) {
  const float top = *std::max_element(x, x + n);
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) {
    out[i] = std::exp(x[i] - top);
    sum += static_cast<double>(out[i]);
  }
  for (int64_t i = 0; i < n; ++i) out[i] = static_cast<float>(static_cast<double>(out[i]) / sum);
}

// Runs `row(r, scores, order)` for each token.
template <class F>
void ForTokens(const Call& c, const Values<float>& x, int64_t experts, F&& row) {
  c.parallel.For(experts == 0 ? 0 : x.size() / experts, Grain(experts * 4), [&](int64_t begin, int64_t end) {
    std::vector<float> scores(U(experts)), choice(U(experts));
    std::vector<int64_t> order;
    for (int64_t r = begin; r < end; ++r) row(r, x.data() + r * experts, scores, choice, order);
  });
}

// Rows that need no expert any more; empty: none is finished.
using Flags = std::vector<uint8_t>;
bool Finished(const Flags& finished, int64_t row) { return !finished.empty() && finished[U(row)] != 0; }

Flags FinishedOf(const Call& c, const Tensor* t) {
  if (t == nullptr) return {};
  Tensor bytes = *t;
  bytes.dtype = DType::u8;
  const Values<uint8_t> flags(bytes, c.parallel);
  return Flags(flags.data(), flags.data() + flags.size());
}

}  // namespace

using abi::MoeGatingTopK, abi::MoeGatingTopKSoftmax, abi::MoeGatingTopKSoftmaxV2, abi::MoeComputeExpertTokens;

// Rows that are finished name the expert behind the last.
NPU_OP(MoeGatingTopKSoftmax) =
    Op<MoeGatingTopKSoftmax>()
        .Required(MoeGatingTopKSoftmax::yOut, MoeGatingTopKSoftmax::expertIdxOut, MoeGatingTopKSoftmax::rowIdxOut)
        .Rules(FloatTensors(MoeGatingTopKSoftmax::x, MoeGatingTopKSoftmax::yOut),
               DtypeIn(MoeGatingTopKSoftmax::finishedOptional, kBool),
               AnyShapes(MoeGatingTopKSoftmax::yOut, MoeGatingTopKSoftmax::expertIdxOut,
                         MoeGatingTopKSoftmax::rowIdxOut),
               DtypeIn(MoeGatingTopKSoftmax::expertIdxOut, kIndexTypes),
               DtypeIn(MoeGatingTopKSoftmax::rowIdxOut, kIndexTypes))
        .Uses(MoeGatingTopKSoftmax::k)
        .Tolerance("accumulated")
        .Like("gating_softmax(x, finishedOptional, k)")
        .Prepares([](Planning& p) -> Status {
          using A = MoeGatingTopKSoftmax;
          NPU_TRY(WantFlags(p, A::finishedOptional, p.args[A::x]));
          return WantChosen(p, p.args[A::x], p.args[A::k], {A::yOut, A::expertIdxOut, A::rowIdxOut});
        })
        .Does([](const Call& c) -> Status {
          using A = MoeGatingTopKSoftmax;
          const Values<float> x(c.args[A::x], c.parallel);
          const auto finished = FinishedOf(c, c.args[A::finishedOptional]);
          Results<float> y(*c.args[A::yOut], c.parallel);
          Results<int32_t> expert(*c.args[A::expertIdxOut], c.parallel), source(*c.args[A::rowIdxOut], c.parallel);
          const int64_t experts = SizeAt(c.args[A::x], 0), k = c.args[A::k], rows = x.size() / experts;
          ForTokens(c, x, experts, [&](int64_t r, const float* in, auto& scores, auto&, auto& order) {
            Softmax(in, experts, scores.data());
            Largest(scores.data(), experts, k, &order);
            for (int64_t j = 0; j < k; ++j) {
              y[r * k + j] = scores[U(order[U(j)])];
              expert[r * k + j] = static_cast<int32_t>(Finished(finished, r) ? experts : order[U(j)]);
              source[r * k + j] = static_cast<int32_t>(j * rows + r);
            }
          });
          return {};
        });

// renorm 0: the softmax of all, then k of them; 1: k of them, then their softmax.
NPU_OP(MoeGatingTopKSoftmaxV2) =
    Op<MoeGatingTopKSoftmaxV2>()
        .Required(MoeGatingTopKSoftmaxV2::yOut, MoeGatingTopKSoftmaxV2::expertIdxOut)
        .Rules(FloatTensors(MoeGatingTopKSoftmaxV2::x, MoeGatingTopKSoftmaxV2::yOut,
                            MoeGatingTopKSoftmaxV2::softmaxResultOutOptional),
               DtypeIn(MoeGatingTopKSoftmaxV2::finishedOptional, kBool),
               AnyShapes(MoeGatingTopKSoftmaxV2::yOut, MoeGatingTopKSoftmaxV2::expertIdxOut,
                         MoeGatingTopKSoftmaxV2::softmaxResultOutOptional),
               DtypeIn(MoeGatingTopKSoftmaxV2::expertIdxOut, kIndexTypes))
        .Uses(MoeGatingTopKSoftmaxV2::k, MoeGatingTopKSoftmaxV2::renorm,
              MoeGatingTopKSoftmaxV2::outputSoftmaxResultFlag)
        .Tolerance("accumulated")
        .Like("gating_softmax(x, finishedOptional, k)")
        .Prepares([](Planning& p) -> Status {
          using A = MoeGatingTopKSoftmaxV2;
          if (p.args[A::renorm] != 0 && p.args[A::renorm] != 1)
            return p.Refuse("renorm is {}.", p.args[A::renorm]).Remedy("0 normalises all scores, 1 the chosen ones.");
          NPU_TRY(WantFlags(p, A::finishedOptional, p.args[A::x]));
          NPU_TRY(WantChosen(p, p.args[A::x], p.args[A::k], {A::yOut, A::expertIdxOut}));
          if (!p.args[A::outputSoftmaxResultFlag] || p.args[A::renorm] == 1 ||
              p.args[A::softmaxResultOutOptional] == nullptr)
            return {};
          return WantShape(p, A::softmaxResultOutOptional, DimsOf(p.args[A::x]), "it is the softmax of x");
        })
        .Does([](const Call& c) -> Status {
          using A = MoeGatingTopKSoftmaxV2;
          const Values<float> x(c.args[A::x], c.parallel);
          const auto finished = FinishedOf(c, c.args[A::finishedOptional]);
          Results<float> y(*c.args[A::yOut], c.parallel);
          Results<int32_t> expert(*c.args[A::expertIdxOut], c.parallel);
          std::optional<Results<float>> all;
          const bool renorm = c.args[A::renorm] == 1;
          if (c.args[A::outputSoftmaxResultFlag] && !renorm && c.args[A::softmaxResultOutOptional] != nullptr)
            all.emplace(*c.args[A::softmaxResultOutOptional], c.parallel);
          const int64_t experts = SizeAt(c.args[A::x], 0), k = c.args[A::k];
          ForTokens(c, x, experts, [&](int64_t r, const float* in, auto& scores, auto& chosen, auto& order) {
            if (!renorm) Softmax(in, experts, scores.data());
            Largest(renorm ? in : scores.data(), experts, k, &order);
            if (renorm) {
              for (int64_t j = 0; j < k; ++j) chosen[U(j)] = in[order[U(j)]];
              Softmax(chosen.data(), k, scores.data());
            }
            if (all) std::copy(scores.begin(), scores.end(), all->data() + r * experts);
            for (int64_t j = 0; j < k; ++j) {
              y[r * k + j] = renorm ? scores[U(j)] : scores[U(order[U(j)])];
              expert[r * k + j] = static_cast<int32_t>(Finished(finished, r) ? experts : order[U(j)]);
            }
          });
          return {};
        });

// Scores by softmax (normType 0) or sigmoid (1); a bias only moves the choice. Groups of experts are chosen first, by
// their best (groupSelectMode 0) or the sum of their two best (1).
NPU_OP(MoeGatingTopK) =
    Op<MoeGatingTopK>()
        .Rules(FloatTensors(MoeGatingTopK::x, MoeGatingTopK::biasOptional, MoeGatingTopK::yOut, MoeGatingTopK::outOut),
               AnyShapes(MoeGatingTopK::yOut, MoeGatingTopK::expertIdxOut, MoeGatingTopK::outOut),
               DtypeIn(MoeGatingTopK::expertIdxOut, kIndexTypes))
        .Uses(MoeGatingTopK::k, MoeGatingTopK::kGroup, MoeGatingTopK::groupCount, MoeGatingTopK::groupSelectMode,
              MoeGatingTopK::renorm, MoeGatingTopK::normType, MoeGatingTopK::outFlag,
              MoeGatingTopK::routedScalingFactor, MoeGatingTopK::eps)
        .Tolerance("accumulated")
        .Like("gating(x, biasOptional, k)")
        .Prepares([](Planning& p) -> Status {
          using A = MoeGatingTopK;
          const Tensor& x = p.args[A::x];
          NPU_TRY(WantChosen(p, x, p.args[A::k], {A::yOut, A::expertIdxOut}));
          const int64_t experts = SizeAt(x, 0), groups = p.args[A::groupCount], kept = p.args[A::kGroup];
          if (groups < 1 || experts % groups != 0 || kept < 1 || kept > groups ||
              p.args[A::k] > kept * (experts / groups))
            return p.Refuse("{} of {} groups of {} experts are kept for k = {}.", kept, groups, experts, p.args[A::k])
                .Remedy("Groups divide the experts, and the kept ones hold k.");
          if (p.args[A::biasOptional] != nullptr && p.args[A::biasOptional]->Numel() != experts)
            return p.Refuse("biasOptional has shape {} for {} experts.", ShapeText(p.args[A::biasOptional]->Shape()),
                            experts);
          if (p.args[A::normType] != 0 && p.args[A::normType] != 1)
            return p.Refuse("normType is {}.", p.args[A::normType]).Remedy("0 is softmax, 1 sigmoid.");
          if (p.args[A::groupSelectMode] != 0 && p.args[A::groupSelectMode] != 1)
            return p.Refuse("groupSelectMode is {}.", p.args[A::groupSelectMode])
                .Remedy("0 is the best, 1 the sum of the two best.");
          if (p.args[A::renorm] != 0) return NotYet(p.op.name, "renorm other than 0 is not computed");
          if (!p.args[A::outFlag]) return {};
          return WantShape(p, A::outOut, DimsOf(x), "it has the normalised scores");
        })
        .Does([](const Call& c) -> Status {
          using A = MoeGatingTopK;
          const Values<float> x(c.args[A::x], c.parallel);
          std::optional<Values<float>> bias;
          if (c.args[A::biasOptional] != nullptr) bias.emplace(*c.args[A::biasOptional], c.parallel);
          Results<float> y(c.args[A::yOut], c.parallel);
          Results<int32_t> expert(c.args[A::expertIdxOut], c.parallel);
          std::optional<Results<float>> all;
          if (c.args[A::outFlag]) all.emplace(c.args[A::outOut], c.parallel);
          const int64_t experts = SizeAt(c.args[A::x], 0), k = c.args[A::k], groups = c.args[A::groupCount],
                        kept = c.args[A::kGroup], width = experts / groups;
          const bool sigmoid = c.args[A::normType] == 1, two = c.args[A::groupSelectMode] == 1;
          const auto factor = static_cast<float>(c.args[A::routedScalingFactor]),
                     eps = static_cast<float>(c.args[A::eps]);
          ForTokens(c, x, experts, [&](int64_t r, const float* in, auto& scores, auto& choice, auto& order) {
            if (sigmoid) {
              for (int64_t i = 0; i < experts; ++i) scores[U(i)] = 1 / (1 + std::exp(-in[i]));
            } else {
              Softmax(in, experts, scores.data());
            }
            if (all) std::copy(scores.begin(), scores.end(), all->data() + r * experts);
            for (int64_t i = 0; i < experts; ++i) choice[U(i)] = scores[U(i)] + (bias ? (*bias)[i] : 0.0f);
            if (kept < groups) {
              std::vector<float> best(U(groups));
              for (int64_t g = 0; g < groups; ++g) {
                Largest(choice.data() + g * width, width, std::min<int64_t>(two ? 2 : 1, width), &order);
                best[U(g)] =
                    choice[U(g * width + order[0])] + (two && width > 1 ? choice[U(g * width + order[1])] : 0.0f);
              }
              Largest(best.data(), groups, kept, &order);
              std::vector<bool> in_reach(U(groups), false);
              for (int64_t g = 0; g < kept; ++g) in_reach[U(order[U(g)])] = true;
              for (int64_t i = 0; i < experts; ++i)
                if (!in_reach[U(i / width)]) choice[U(i)] = -INFINITY;
            }
            Largest(choice.data(), experts, k, &order);
            float sum = 0;
            for (int64_t j = 0; j < k; ++j) sum += scores[U(order[U(j)])];
            for (int64_t j = 0; j < k; ++j) {
              const float v = scores[U(order[U(j)])];
              y[r * k + j] = (sigmoid ? v / (sum + eps) : v) * factor;
              expert[r * k + j] = static_cast<int32_t>(order[U(j)]);
            }
          });
          return {};
        });

// How many of the sorted tokens go to the experts up to each.
NPU_OP(MoeComputeExpertTokens) =
    Op<MoeComputeExpertTokens>()
        .Rules(DtypeIn(MoeComputeExpertTokens::sortedExperts, kIndexTypes),
               RankIs(MoeComputeExpertTokens::sortedExperts, 1), AnyShape(MoeComputeExpertTokens::out),
               DtypeIn(MoeComputeExpertTokens::out, kIndexTypes))
        .Uses(MoeComputeExpertTokens::numExperts)
        .Tolerance("exact")
        .Like("torch.bincount(sortedExperts, minlength=numExperts)[:numExperts].cumsum(0)")
        .Prepares([](Planning& p) -> Status {
          using A = MoeComputeExpertTokens;
          if (p.args[A::numExperts] < 1)
            return p.Refuse("numExperts is {}.", p.args[A::numExperts]).Remedy("It is at least 1.");
          Dims want;
          want.Push(p.args[A::numExperts]);
          return WantShape(p, A::out, want, "there is one for each expert");
        })
        .Does([](const Call& c) -> Status {
          using A = MoeComputeExpertTokens;
          const Values<int64_t> sorted(c.args[A::sortedExperts], c.parallel);
          Results<int64_t> out(c.args[A::out], c.parallel);
          for (int64_t e = 0; e < out.size(); ++e)
            out[e] = std::upper_bound(sorted.data(), sorted.data() + sorted.size(), e) - sorted.data();
          return {};
        });

}  // namespace npu::ops
