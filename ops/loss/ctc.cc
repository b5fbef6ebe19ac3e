// CTC loss and its gradient, in the log domain. Plain loops, one sequence a task.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "gen/abi/ops.h"
#include "ops/common/dims.h"
#include "ops/common/values.h"

namespace npu::ops {

using namespace rule;  // NOLINT(google-build-using-namespace)

namespace {

using abi::CtcLoss, abi::CtcLossBackward;

size_t U(int64_t i) { return static_cast<size_t>(i); }

// Sequences: sizes, and where the labels of each begin. alpha_width is what the caller made of the states.
struct Sequences {
  int64_t steps = 0, batch = 0, classes = 0, blank = 0;
  std::vector<int64_t> begin, stride;
};

Status ReadSequences(std::string_view op, const Tensor& probs, const Tensor& targets, std::span<const int64_t> inputs,
                     std::span<const int64_t> labels, int64_t blank, const Tensor& alpha, Sequences* s) {
  auto refuse = [&](std::string text, std::string remedy) {
    return Status(Code::kInvalidParam, fmt::format("{}: {}", op, text)).Remedy("{}", remedy);
  };
  if (probs.rank != 3)
    return refuse(fmt::format("logProbs has shape {}.", ShapeText(probs.Shape())), "Pass [steps, batch, classes].");
  s->steps = probs.shape[0], s->batch = probs.shape[1], s->classes = probs.shape[2], s->blank = blank;
  if (blank < 0 || blank >= s->classes)
    return refuse(fmt::format("blank is {} of {} classes.", blank, s->classes), "It is one of the classes.");
  if (static_cast<int64_t>(inputs.size()) != s->batch || static_cast<int64_t>(labels.size()) != s->batch)
    return refuse(fmt::format("there are {} and {} lengths for {} sequences.", inputs.size(), labels.size(), s->batch),
                  "Pass one for each.");
  int64_t total = 0, longest = 0;
  for (size_t b = 0; b < inputs.size(); ++b) {
    if (inputs[b] < 0 || inputs[b] > s->steps || labels[b] < 0)
      return refuse(fmt::format("sequence {} has {} steps and {} labels.", b, inputs[b], labels[b]),
                    "Steps are those of logProbs at most.");
    s->begin.push_back(targets.rank == 2 ? static_cast<int64_t>(b) * targets.shape[1] : total);
    total += labels[b];
    longest = std::max(longest, labels[b]);
  }
  if (targets.rank == 2 ? targets.shape[0] != s->batch || targets.shape[1] < longest
                        : targets.rank != 1 || targets.shape[0] < total)
    return refuse(fmt::format("targets has shape {}.", ShapeText(targets.Shape())),
                  "Pass [batch, longest], or all labels in one row.");
  if (alpha.rank != 3 || alpha.shape[0] != s->batch || alpha.shape[1] != s->steps || alpha.shape[2] < 2 * longest + 1)
    return refuse(fmt::format("logAlpha has shape {}.", ShapeText(alpha.Shape())),
                  fmt::format("It is [batch, steps, at least {}].", 2 * longest + 1));
  return {};
}

template <class T>
T LogAdd(T a, T b) {
  const T big = std::max(a, b);
  if (big == -std::numeric_limits<T>::infinity()) return big;
  return big + std::log(std::exp(a - big) + std::exp(b - big));
}

// Label of state s: blanks stand between the labels.
int64_t LabelAt(const Values<int64_t>& targets, int64_t begin, int64_t s, int64_t blank) {
  return s % 2 == 0 ? blank : targets[begin + s / 2];
}

Status CheckLabels(const Call& c, Token name, const Values<int64_t>& targets, const Sequences& s,
                   std::span<const int64_t> labels) {
  for (int64_t b = 0; b < s.batch; ++b) {
    for (int64_t k = 0; k < labels[U(b)]; ++k) {
      const int64_t label = targets[s.begin[U(b)] + k];
      if (label < 0 || label >= s.classes)
        return IndexError(c, name, Token{0}, {label, s.begin[U(b)] + k, 2, s.classes});
    }
  }
  return {};
}

template <class T>
struct States {
  const T* probs;  // of this sequence: [step][class] by strides
  int64_t step, states;
  const Values<int64_t>* targets;
  int64_t begin, blank;
  T At(int64_t t, int64_t s) const { return probs[t * step + LabelAt(*targets, begin, s, blank)]; }
  bool Skips(int64_t s) const {
    return s >= 2 && LabelAt(*targets, begin, s, blank) != LabelAt(*targets, begin, s - 2, blank);
  }
};

}  // namespace

NPU_OP(CtcLoss) =
    Op<CtcLoss>()
        .Rules(FloatTensors(CtcLoss::logProbs, CtcLoss::negLogLikelihoodOut, CtcLoss::logAlphaOut),
               AnyShapes(CtcLoss::negLogLikelihoodOut, CtcLoss::logAlphaOut), DtypeIn(CtcLoss::targets, kReals))
        .Uses(CtcLoss::inputLengths, CtcLoss::targetlengths, CtcLoss::blank, CtcLoss::zeroInfinity)
        .Tolerance("accumulated")
        .Like("torch.ops.aten._ctc_loss(logProbs, targets, inputLengths, targetlengths, blank, zeroInfinity)")
        .Prepares([](Planning& p) -> Status {
          const Args& a = p.args;
          Sequences s;
          NPU_TRY(ReadSequences(p.op.name, a[CtcLoss::logProbs], a[CtcLoss::targets], a[CtcLoss::inputLengths],
                                a[CtcLoss::targetlengths], a[CtcLoss::blank], a[CtcLoss::logAlphaOut], &s));
          return WantShape(p, CtcLoss::negLogLikelihoodOut, {1, {s.batch}}, "there is one for each sequence");
        })
        .Does([](const Call& c) -> Status {
          const Args& a = c.args;
          Sequences s;
          NPU_TRY(ReadSequences(c.op.name, a[CtcLoss::logProbs], a[CtcLoss::targets], a[CtcLoss::inputLengths],
                                a[CtcLoss::targetlengths], a[CtcLoss::blank], a[CtcLoss::logAlphaOut], &s));
          const Values<int64_t> targets(a[CtcLoss::targets], c.parallel);
          NPU_TRY(CheckLabels(c, CtcLoss::targets, targets, s, a[CtcLoss::targetlengths]));
          return WithFloat(a[CtcLoss::logProbs].dtype, [&]<class T>() -> Status {
            constexpr T kNone = -std::numeric_limits<T>::infinity();
            const Values<T> probs(a[CtcLoss::logProbs], c.parallel);
            Results<T> loss(a[CtcLoss::negLogLikelihoodOut], c.parallel), alpha(a[CtcLoss::logAlphaOut], c.parallel);
            const int64_t width = a[CtcLoss::logAlphaOut].shape[2];
            std::fill(alpha.data(), alpha.data() + alpha.size(), kNone);
            c.parallel.For(s.batch, 1, [&](int64_t first, int64_t end) {
              for (int64_t b = first; b < end; ++b) {
                const int64_t steps = a[CtcLoss::inputLengths][U(b)], labels = a[CtcLoss::targetlengths][U(b)],
                              states = 2 * labels + 1;
                const States<T> x{
                    probs.data() + b * s.classes, s.batch * s.classes, states, &targets, s.begin[U(b)], s.blank};
                T* row = alpha.data() + b * s.steps * width;
                if (steps == 0) {
                  loss[b] = labels == 0 ? T{0} : -kNone;
                  continue;
                }
                row[0] = x.At(0, 0);
                if (labels > 0) row[1] = x.At(0, 1);
                for (int64_t t = 1; t < steps; ++t) {
                  const T* before = row;
                  row += width;
                  for (int64_t k = 0; k < states; ++k) {
                    T sum = before[k];
                    if (k > 0) sum = LogAdd(sum, before[k - 1]);
                    if (x.Skips(k)) sum = LogAdd(sum, before[k - 2]);
                    row[k] = sum + x.At(t, k);
                  }
                }
                loss[b] = -(labels > 0 ? LogAdd(row[states - 1], row[states - 2]) : row[0]);
              }
            });
            return {};
          });
        });

NPU_OP(CtcLossBackward) =
    Op<CtcLossBackward>()
        .Rules(FloatTensors(CtcLossBackward::gradOut, CtcLossBackward::logProbs, CtcLossBackward::negLogLikelihood,
                            CtcLossBackward::logAlpha, CtcLossBackward::out),
               SameShape(CtcLossBackward::logProbs, CtcLossBackward::out), DtypeIn(CtcLossBackward::targets, kReals))
        .Uses(CtcLossBackward::inputLengths, CtcLossBackward::targetLengths, CtcLossBackward::blank,
              CtcLossBackward::zeroInfinity)
        .Tolerance("accumulated")
        .Like(
            "torch.ops.aten._ctc_loss_backward(gradOut, logProbs, targets, inputLengths, targetLengths, "
            "negLogLikelihood, logAlpha, blank, zeroInfinity)")
        .Prepares([](Planning& p) -> Status {
          using B = CtcLossBackward;
          const Args& a = p.args;
          Sequences s;
          NPU_TRY(ReadSequences(p.op.name, a[B::logProbs], a[B::targets], a[B::inputLengths], a[B::targetLengths],
                                a[B::blank], a[B::logAlpha], &s));
          if (a[B::gradOut].Numel() == s.batch && a[B::negLogLikelihood].Numel() == s.batch) return {};
          return p
              .Refuse("gradOut has {} and negLogLikelihood {} elements.", a[B::gradOut].Numel(),
                      a[B::negLogLikelihood].Numel())
              .Remedy("There is one for each sequence.");
        })
        .Does([](const Call& c) -> Status {
          using B = CtcLossBackward;
          const Args& a = c.args;
          Sequences s;
          NPU_TRY(ReadSequences(c.op.name, a[B::logProbs], a[B::targets], a[B::inputLengths], a[B::targetLengths],
                                a[B::blank], a[B::logAlpha], &s));
          const Values<int64_t> targets(a[B::targets], c.parallel);
          NPU_TRY(CheckLabels(c, B::targets, targets, s, a[B::targetLengths]));
          return WithFloat(a[B::logProbs].dtype, [&]<class T>() -> Status {
            constexpr T kNone = -std::numeric_limits<T>::infinity();
            const Values<T> probs(a[B::logProbs], c.parallel), alpha(a[B::logAlpha], c.parallel),
                loss(a[B::negLogLikelihood], c.parallel), dy(a[B::gradOut], c.parallel);
            Results<T> out(a[B::out], c.parallel);
            const int64_t width = a[B::logAlpha].shape[2], step = s.batch * s.classes;
            std::fill(out.data(), out.data() + out.size(), T{0});
            c.parallel.For(s.batch, 1, [&](int64_t first, int64_t end) {
              for (int64_t b = first; b < end; ++b) {
                const int64_t steps = a[B::inputLengths][U(b)], labels = a[B::targetLengths][U(b)],
                              states = 2 * labels + 1;
                if (steps == 0 || (a[B::zeroInfinity] && loss[b] == -kNone)) continue;
                const States<T> x{probs.data() + b * s.classes, step, states, &targets, s.begin[U(b)], s.blank};
                std::vector<T> beta(U(states), kNone), later, sums(U(s.classes));
                for (int64_t t = steps - 1; t >= 0; --t) {
                  if (t == steps - 1) {
                    beta[U(states - 1)] = x.At(t, states - 1);
                    if (labels > 0) beta[U(states - 2)] = x.At(t, states - 2);
                  } else {
                    later = beta;
                    for (int64_t k = 0; k < states; ++k) {
                      T sum = later[U(k)];
                      if (k + 1 < states) sum = LogAdd(sum, later[U(k + 1)]);
                      if (k + 2 < states && x.Skips(k + 2)) sum = LogAdd(sum, later[U(k + 2)]);
                      beta[U(k)] = sum + x.At(t, k);
                    }
                  }
                  std::fill(sums.begin(), sums.end(), kNone);
                  for (int64_t k = 0; k < states; ++k) {
                    T& to = sums[U(LabelAt(targets, s.begin[U(b)], k, s.blank))];
                    to = LogAdd(to, alpha[(b * s.steps + t) * width + k] + beta[U(k)]);
                  }
                  for (int64_t k = 0; k < s.classes; ++k) {
                    const T p = x.probs[t * step + k];
                    out[t * step + b * s.classes + k] = (std::exp(p) - std::exp(sums[U(k)] + loss[b] - p)) * dy[b];
                  }
                }
              }
            });
            return {};
          });
        });

}  // namespace npu::ops
