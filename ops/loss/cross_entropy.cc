// The loss of classes out of scores, with the logarithms of the probabilities as a second result, and its gradient.
#include <cmath>
#include <vector>

#include "gen/abi/ops.h"
#include "kernels/simd/softmax/softmax.h"
#include "ops/common/dims.h"
#include "ops/common/values.h"

namespace npu::ops {

using namespace rule;  // NOLINT(google-build-using-namespace)
using abi::CrossEntropyLoss, abi::CrossEntropyLossGrad;

namespace {

template <class A>
std::string_view ReductionOf(const Args& a) {
  return a.Null(A::reductionOptional) || a[A::reductionOptional].empty() ? std::string_view("mean")
                                                                         : a[A::reductionOptional];
}

template <class A>
Status CheckLoss(const Planning& p, const Tensor& scores, const Tensor& target) {
  const std::string_view reduction = ReductionOf<A>(p.args);
  if (reduction != "mean" && reduction != "sum" && reduction != "none")
    return p.Refuse("reductionOptional is '{}'.", reduction).Remedy("Pass mean, sum or none.");
  if (p.args[A::lseSquareScaleForZloss] != 0) return NotYet(p.op.name, "the z loss is not computed");
  if (scores.rank != 2 || target.rank != 1 || target.shape[0] != scores.shape[0])
    return p.Refuse("the scores have shape {} and target {}.", ShapeText(scores.Shape()), ShapeText(target.Shape()))
        .Remedy("They are [rows, classes] and [rows].");
  if (const Tensor* w = p.args[A::weightOptional]; w != nullptr && w->Numel() != scores.shape[1])
    return p.Refuse("weightOptional has shape {} for {} classes.", ShapeText(w->Shape()), scores.shape[1])
        .Remedy("There is one for each class.");
  if (!(p.args[A::labelSmoothing] >= 0 && p.args[A::labelSmoothing] <= 1))
    return p.Refuse("labelSmoothing is {}.", p.args[A::labelSmoothing]).Remedy("It is between 0 and 1.");
  return {};
}

// What both directions need of a call.
struct Labels {
  Values<int64_t> target;
  std::vector<double> weight;
  double smoothing, counted = 0, all_weights = 0;  // weights of the counted rows, and of all classes
  int64_t ignored;
  Labels(const Call& c, const Tensor& t, const Tensor* w, int64_t classes, double smooth, int64_t ignore)
      : target(t, c.parallel), weight(static_cast<size_t>(classes), 1.0), smoothing(smooth), ignored(ignore) {
    if (w != nullptr) {
      const Values<double> given(*w, c.parallel);
      std::copy(given.data(), given.data() + classes, weight.begin());
    }
    for (const double v : weight) all_weights += v;
    for (int64_t i = 0; i < target.size(); ++i)
      if (Counts(i)) counted += Of(i);
  }
  bool Counts(int64_t row) const { return target[row] != ignored; }
  double Of(int64_t row) const { return weight[static_cast<size_t>(target[row])]; }
  // Of a row's logarithms of probabilities.
  template <class T>
  double LossOf(int64_t row, const T* logs) const {
    double spread = 0;
    if (smoothing > 0) {
      for (size_t k = 0; k < weight.size(); ++k) spread -= static_cast<double>(logs[k]) * weight[k];
    }
    return (1 - smoothing) * -static_cast<double>(logs[target[row]]) * Of(row) +
           smoothing / static_cast<double>(weight.size()) * spread;
  }
  // For one of a row's scores, of which `log` is the logarithm of its probability; to be multiplied with the row's
  // gradient.
  double SlopeOf(int64_t row, int64_t k, double log) const {
    const double even = smoothing / static_cast<double>(weight.size()), own = (1 - smoothing) * Of(row);
    const double share = even * weight[static_cast<size_t>(k)] + (k == target[row] ? own : 0);
    return std::exp(log) * (own + even * all_weights) - share;
  }
};

Status CheckTargets(const Call& c, const Tensor& t, int64_t classes, int64_t ignore) {
  const Values<int64_t> target(t, c.parallel);
  for (int64_t i = 0; i < target.size(); ++i) {
    if (target[i] == ignore || (target[i] >= 0 && target[i] < classes)) continue;
    return Error(Code::kTaskException, "{}: target[{}] is {}, but there are {} classes.", c.op.name, i, target[i],
                 classes)
        .Remedy("Classes are counted from 0; ignoreIndex names those that do not count.");
  }
  return {};
}

}  // namespace

NPU_OP(CrossEntropyLoss) =
    Op<CrossEntropyLoss>()
        .Optional(CrossEntropyLoss::reductionOptional, CrossEntropyLoss::zlossOut, CrossEntropyLoss::lseForZlossOut)
        .Rules(FloatTensors(CrossEntropyLoss::input, CrossEntropyLoss::weightOptional, CrossEntropyLoss::lossOut,
                            CrossEntropyLoss::logProbOut),
               DtypeIn(CrossEntropyLoss::target, kIndexTypes),
               AnyShapes(CrossEntropyLoss::lossOut, CrossEntropyLoss::zlossOut, CrossEntropyLoss::lseForZlossOut),
               SameShape(CrossEntropyLoss::input, CrossEntropyLoss::logProbOut), AnyDtype(CrossEntropyLoss::zlossOut),
               AnyDtype(CrossEntropyLoss::lseForZlossOut))
        .Uses(CrossEntropyLoss::reductionOptional, CrossEntropyLoss::ignoreIndex, CrossEntropyLoss::labelSmoothing,
              CrossEntropyLoss::lseSquareScaleForZloss, CrossEntropyLoss::returnZloss)
        .Tolerance("accumulated")
        .Like("cross_entropy(input, target)")
        .Prepares([](Planning& p) -> Status {
          using A = CrossEntropyLoss;
          NPU_TRY(CheckLoss<A>(p, p.args[A::input], p.args[A::target]));
          if (p.args[A::returnZloss]) return NotYet(p.op.name, "the z loss is not computed");
          const int64_t want = ReductionOf<A>(p.args) == "none" ? p.args[A::input].shape[0] : 1;
          if (p.args[A::lossOut].Numel() == want) return {};
          return p.Refuse("lossOut has shape {}.", ShapeText(p.args[A::lossOut].Shape()))
              .Remedy("It has {} elements.", want);
        })
        .Does([](const Call& c) -> Status {
          using A = CrossEntropyLoss;
          const int64_t rows = c.args[A::input].shape[0], classes = c.args[A::input].shape[1];
          NPU_TRY(CheckTargets(c, c.args[A::target], classes, c.args[A::ignoreIndex]));
          const Labels labels(c, c.args[A::target], c.args[A::weightOptional], classes, c.args[A::labelSmoothing],
                              c.args[A::ignoreIndex]);
          std::vector<double> loss(static_cast<size_t>(rows), 0.0);
          NPU_TRY(WithFloat(c.args[A::input].dtype, [&]<class T>() -> Status {
            simd::Scratch<T> memory(rows * classes);
            const Tensor logs = MakeContiguous(memory.data(), TypeOf<T>(), c.args[A::input].Shape());
            simd::LogSoftmax(c.args[A::input], 1, logs, c.parallel);
            simd::Copy(logs, c.args[A::logProbOut], c.parallel);
            c.parallel.For(rows, Grain(classes), [&](int64_t begin, int64_t end) {
              for (int64_t r = begin; r < end; ++r) {
                if (labels.Counts(r)) loss[static_cast<size_t>(r)] = labels.LossOf(r, memory.data() + r * classes);
              }
            });
            return {};
          }));
          Results<double> out(c.args[A::lossOut], c.parallel);
          if (ReductionOf<A>(c.args) == "none") {
            std::copy(loss.begin(), loss.end(), out.data());
            return {};
          }
          double sum = 0;
          for (const double v : loss) sum += v;
          out[0] = ReductionOf<A>(c.args) == "mean" ? sum / labels.counted : sum;
          return {};
        });

NPU_OP(CrossEntropyLossGrad) =
    Op<CrossEntropyLossGrad>()
        .Optional(CrossEntropyLossGrad::reductionOptional)
        .Rules(FloatTensors(CrossEntropyLossGrad::gradLoss, CrossEntropyLossGrad::logProb,
                            CrossEntropyLossGrad::weightOptional, CrossEntropyLossGrad::out),
               DtypeIn(CrossEntropyLossGrad::target, kIndexTypes),
               SameShape(CrossEntropyLossGrad::logProb, CrossEntropyLossGrad::out))
        .Uses(CrossEntropyLossGrad::gradZlossOptional, CrossEntropyLossGrad::lseForZlossOptional,
              CrossEntropyLossGrad::reductionOptional, CrossEntropyLossGrad::ignoreIndex,
              CrossEntropyLossGrad::labelSmoothing, CrossEntropyLossGrad::lseSquareScaleForZloss)
        .Tolerance("accumulated")
        .Like("cross_entropy_backward(gradLoss, logProb, target)")
        .Prepares([](Planning& p) -> Status {
          using A = CrossEntropyLossGrad;
          NPU_TRY(CheckLoss<A>(p, p.args[A::logProb], p.args[A::target]));
          const int64_t want = ReductionOf<A>(p.args) == "none" ? p.args[A::logProb].shape[0] : 1;
          if (p.args[A::gradLoss].Numel() == want) return {};
          return p.Refuse("gradLoss has shape {}.", ShapeText(p.args[A::gradLoss].Shape()))
              .Remedy("It has {} elements.", want);
        })
        .Does([](const Call& c) -> Status {
          using A = CrossEntropyLossGrad;
          const int64_t rows = c.args[A::logProb].shape[0], classes = c.args[A::logProb].shape[1];
          NPU_TRY(CheckTargets(c, c.args[A::target], classes, c.args[A::ignoreIndex]));
          const Labels labels(c, c.args[A::target], c.args[A::weightOptional], classes, c.args[A::labelSmoothing],
                              c.args[A::ignoreIndex]);
          const Values<double> grad(c.args[A::gradLoss], c.parallel);
          const bool mean = ReductionOf<A>(c.args) == "mean";
          return WithFloat(c.args[A::out].dtype, [&]<class T>() -> Status {
            const Values<T> logs(c.args[A::logProb], c.parallel);
            Results<T> out(c.args[A::out], c.parallel);
            c.parallel.For(rows, Grain(classes * 4), [&](int64_t begin, int64_t end) {
              for (int64_t r = begin; r < end; ++r) {
                T* to = out.data() + r * classes;
                if (!labels.Counts(r)) {
                  std::fill(to, to + classes, T{0});
                  continue;
                }
                const double g = grad[grad.size() == 1 ? 0 : r] / (mean ? labels.counted : 1);
                for (int64_t k = 0; k < classes; ++k)
                  to[k] = static_cast<T>(g * labels.SlopeOf(r, k, static_cast<double>(logs[r * classes + k])));
              }
            });
            return {};
          });
        });

}  // namespace npu::ops
