// Batch normalisation, whole and in the parts that the synchronised form exchanges between cards.
#include "kernels/simd/norm/batch_norm.h"

#include <cmath>

#include "gen/abi/ops.h"
#include "kernels/simd/norm/vector.h"
#include "ops/norm/rules.h"

namespace npu::ops {

using namespace rule;  // NOLINT(google-build-using-namespace)
using simd::Channels;

namespace {

Channels Load(const Tensor& t) { return simd::LoadVector<double>(t); }
Channels LoadOr(const Tensor* t, size_t n, double otherwise) { return t != nullptr ? Load(*t) : Channels(n, otherwise); }
void Store(const Channels& v, const Tensor* t) {
  if (t != nullptr && t->Numel() > 0) simd::StoreVector(v.data(), *t);
}
Channels InverseDeviation(const Channels& variance, double eps) {
  Channels r(variance.size());
  for (size_t c = 0; c < r.size(); ++c) r[c] = 1 / std::sqrt(variance[c] + eps);
  return r;
}
// running = (1 − momentum)·running + momentum·value
void Blend(const Tensor* running, const Channels& value, double momentum) {
  if (running == nullptr || running->Numel() == 0) return;
  Channels r = Load(*running);
  for (size_t c = 0; c < r.size(); ++c) r[c] = (1 - momentum) * r[c] + momentum * value[c];
  Store(r, running);
}
// y = (x − mean)·invstd·weight + bias
void Normalize(const Tensor& x, const Channels& mean, const Channels& invstd, const Tensor* weight, const Tensor* bias,
               const Tensor& out, Parallel& parallel) {
  Channels a = LoadOr(weight, mean.size(), 1), b = LoadOr(bias, mean.size(), 0);
  for (size_t c = 0; c < a.size(); ++c) {
    a[c] *= invstd[c];
    b[c] -= mean[c] * a[c];
  }
  simd::ChannelAffine(x, a, b, out, parallel);
}
// Unbiased variance of n elements from the biased one.
void Unbias(Channels* variance, double n) {
  for (double& v : *variance) v *= n > 1 ? n / (n - 1) : std::nan("");
}

}  // namespace

using abi::BatchNorm;
NPU_OP(BatchNorm) = Op<BatchNorm>()
    .Rules(FloatTensors(BatchNorm::input, BatchNorm::weight, BatchNorm::bias, BatchNorm::runningMean, BatchNorm::runningVar, BatchNorm::output),
           FloatTensors(BatchNorm::saveMean, BatchNorm::saveInvstd), HasChannels(BatchNorm::input),
           SameShape(BatchNorm::input, BatchNorm::output), PerChannel(BatchNorm::input, BatchNorm::weight),
           PerChannel(BatchNorm::input, BatchNorm::bias), PerChannel(BatchNorm::input, BatchNorm::runningMean),
           PerChannel(BatchNorm::input, BatchNorm::runningVar), AnyShapes(BatchNorm::saveMean, BatchNorm::saveInvstd))
    .Uses(BatchNorm::training, BatchNorm::momentum, BatchNorm::eps)
    .Tolerance("accumulated")
    .Like("torch.native_batch_norm(input, weight, bias, runningMean, runningVar, training, momentum, eps)")
    .Prepares([](Planning& plan) -> Status {
      const Args& a = plan.args;
      if (!a[BatchNorm::training] && (a[BatchNorm::runningMean] == nullptr || a[BatchNorm::runningVar] == nullptr)) {
        return plan.Refuse("training is false, but runningMean or runningVar is null.").Remedy("Pass the running statistics.");
      }
      // Without training the real operator leaves the saved statistics alone; they may be empty.
      const int64_t channels = a[BatchNorm::input].shape[1];
      for (const TensorOut t : {BatchNorm::saveMean, BatchNorm::saveInvstd}) {
        const int64_t n = a[t].Numel();
        if (n != channels && (n != 0 || a[BatchNorm::training])) {
          return plan.Refuse("{} has {} elements, but input has {} channels.", plan.ParamName(t), n, channels);
        }
      }
      return {};
    })
    .Does([](const Call& c) -> Status {
      const Args& a = c.args;
      const Tensor& x = a[BatchNorm::input];
      if (x.Numel() == 0) return {};
      Channels mean, variance;
      if (a[BatchNorm::training]) {
        simd::ChannelMoments(x, &mean, &variance, c.parallel);
      } else {
        mean = Load(*a[BatchNorm::runningMean]);
        variance = Load(*a[BatchNorm::runningVar]);
      }
      const Channels invstd = InverseDeviation(variance, a[BatchNorm::eps]);
      Normalize(x, mean, invstd, a[BatchNorm::weight], a[BatchNorm::bias], a[BatchNorm::output], c.parallel);
      if (!a[BatchNorm::training]) return {};
      Store(mean, &a[BatchNorm::saveMean]);
      Store(invstd, &a[BatchNorm::saveInvstd]);
      Blend(a[BatchNorm::runningMean], mean, a[BatchNorm::momentum]);
      Unbias(&variance, static_cast<double>(simd::ChannelSize(x)));
      Blend(a[BatchNorm::runningVar], variance, a[BatchNorm::momentum]);
      return {};
    });

using abi::BatchNormBackward;
NPU_OP(BatchNormBackward) = Op<BatchNormBackward>()
    .Rules(FloatTensors(BatchNormBackward::gradOut, BatchNormBackward::input, BatchNormBackward::weight, BatchNormBackward::runningMean,
                        BatchNormBackward::runningVar),
           FloatTensors(BatchNormBackward::saveMean, BatchNormBackward::saveInvstd, BatchNormBackward::gradInput,
                        BatchNormBackward::gradWeight, BatchNormBackward::gradBias),
           HasChannels(BatchNormBackward::input), SameShape(BatchNormBackward::input, BatchNormBackward::gradOut),
           SameShape(BatchNormBackward::input, BatchNormBackward::gradInput),
           PerChannel(BatchNormBackward::input, BatchNormBackward::weight),
           PerChannel(BatchNormBackward::input, BatchNormBackward::gradWeight),
           PerChannel(BatchNormBackward::input, BatchNormBackward::gradBias))
    .Uses(BatchNormBackward::training, BatchNormBackward::eps, BatchNormBackward::outputMask)
    .Tolerance("accumulated")
    .Like("torch.ops.aten.native_batch_norm_backward(gradOut, input, weight, runningMean, runningVar, saveMean, saveInvstd, training, eps, outputMask)")
    .Prepares([](Planning& plan) -> Status {
      const Args& a = plan.args;
      const bool training = a[BatchNormBackward::training];
      const auto [m, s] = training ? std::pair(BatchNormBackward::saveMean, BatchNormBackward::saveInvstd)
                                   : std::pair(BatchNormBackward::runningMean, BatchNormBackward::runningVar);
      for (const MaybeIn t : {m, s}) {
        const Tensor* stat = a[t];
        if (stat != nullptr && stat->Numel() == a[BatchNormBackward::input].shape[1]) continue;
        return plan.Refuse("training is {}, so {} must have one element for each of the {} channels.", training, plan.ParamName(t),
                           a[BatchNormBackward::input].shape[1]);
      }
      return {};
    })
    .Does([](const Call& c) -> Status {
      const Args& a = c.args;
      const Tensor& x = a[BatchNormBackward::input];
      const Tensor& grad = a[BatchNormBackward::gradOut];
      const bool training = a[BatchNormBackward::training];
      const Channels mean = Load(training ? *a[BatchNormBackward::saveMean] : *a[BatchNormBackward::runningMean]);
      const Channels invstd = training ? Load(*a[BatchNormBackward::saveInvstd])
                                       : InverseDeviation(Load(*a[BatchNormBackward::runningVar]), a[BatchNormBackward::eps]);
      const Channels weight = LoadOr(a[BatchNormBackward::weight], mean.size(), 1);
      Channels sum, dot;
      simd::ChannelGradSums(grad, x, mean, &sum, &dot, c.parallel);
      if (const Tensor* dx = Wanted(c, BatchNormBackward::outputMask, 0, BatchNormBackward::gradInput)) {
        const double n = static_cast<double>(simd::ChannelSize(x));
        Channels ga(mean.size()), xb(mean.size(), 0), shift(mean.size(), 0);
        for (size_t i = 0; i < mean.size(); ++i) {
          ga[i] = weight[i] * invstd[i];
          if (!training) continue;
          xb[i] = -ga[i] * invstd[i] * invstd[i] * dot[i] / n;
          shift[i] = -ga[i] * sum[i] / n - xb[i] * mean[i];
        }
        simd::ChannelMix(grad, ga, x, xb, shift, *dx, c.parallel);
      }
      for (size_t i = 0; i < mean.size(); ++i) dot[i] *= invstd[i];
      Store(dot, Wanted(c, BatchNormBackward::outputMask, 1, BatchNormBackward::gradWeight));
      Store(sum, Wanted(c, BatchNormBackward::outputMask, 2, BatchNormBackward::gradBias));
      return {};
    });

using abi::BatchNormStats;
NPU_OP(BatchNormStats) = Op<BatchNormStats>()
    .Rules(FloatTensors(BatchNormStats::input, BatchNormStats::mean, BatchNormStats::invstd), HasChannels(BatchNormStats::input),
           PerChannel(BatchNormStats::input, BatchNormStats::mean), PerChannel(BatchNormStats::input, BatchNormStats::invstd))
    .Uses(BatchNormStats::eps)
    .Samples(BatchNormStats::eps, "[1e-5]")
    .Tolerance("accumulated")
    .Like("(lambda x: (x.mean(1), (x.var(1, correction=0) + eps).rsqrt()))(input.float().transpose(0, 1).flatten(1))")
    .Does([](const Call& c) -> Status {
      Channels mean, variance;
      simd::ChannelMoments(c.args[BatchNormStats::input], &mean, &variance, c.parallel);
      Store(mean, &c.args[BatchNormStats::mean]);
      Store(InverseDeviation(variance, c.args[BatchNormStats::eps]), &c.args[BatchNormStats::invstd]);
      return {};
    });

using abi::BatchNormElemt;
NPU_OP(BatchNormElemt) = Op<BatchNormElemt>()
    .Rules(FloatTensors(BatchNormElemt::input, BatchNormElemt::weight, BatchNormElemt::bias, BatchNormElemt::mean,
                        BatchNormElemt::invstd, BatchNormElemt::output),
           HasChannels(BatchNormElemt::input), SameShape(BatchNormElemt::input, BatchNormElemt::output),
           PerChannel(BatchNormElemt::input, BatchNormElemt::weight), PerChannel(BatchNormElemt::input, BatchNormElemt::bias),
           PerChannel(BatchNormElemt::input, BatchNormElemt::mean), PerChannel(BatchNormElemt::input, BatchNormElemt::invstd))
    .Uses(BatchNormElemt::eps)
    .Tolerance("accumulated")
    .Like("(lambda v: (input.float() - v(mean)) * v(invstd) * (1 if weight is None else v(weight)) + (0 if bias is None else v(bias)))("
          "lambda t: t.float().view([1, -1] + [1] * (input.dim() - 2)))")
    .Does([](const Call& c) -> Status {
      const Args& a = c.args;
      Normalize(a[BatchNormElemt::input], Load(a[BatchNormElemt::mean]), Load(a[BatchNormElemt::invstd]), a[BatchNormElemt::weight],
                a[BatchNormElemt::bias], a[BatchNormElemt::output], c.parallel);
      return {};
    });

using abi::BatchNormElemtBackward;
NPU_OP(BatchNormElemtBackward) = Op<BatchNormElemtBackward>()
    .Rules(FloatTensors(BatchNormElemtBackward::gradOut, BatchNormElemtBackward::input, BatchNormElemtBackward::mean,
                        BatchNormElemtBackward::invstd, BatchNormElemtBackward::weight, BatchNormElemtBackward::gradInput),
           FloatTensors(BatchNormElemtBackward::sumDy, BatchNormElemtBackward::sumDyXmu), HasChannels(BatchNormElemtBackward::input),
           SameShape(BatchNormElemtBackward::input, BatchNormElemtBackward::gradOut),
           SameShape(BatchNormElemtBackward::input, BatchNormElemtBackward::gradInput),
           PerChannel(BatchNormElemtBackward::input, BatchNormElemtBackward::mean),
           PerChannel(BatchNormElemtBackward::input, BatchNormElemtBackward::invstd),
           PerChannel(BatchNormElemtBackward::input, BatchNormElemtBackward::weight),
           PerChannel(BatchNormElemtBackward::input, BatchNormElemtBackward::sumDy),
           PerChannel(BatchNormElemtBackward::input, BatchNormElemtBackward::sumDyXmu))
    .Uses(BatchNormElemtBackward::counter)
    .Tolerance("accumulated")
    .Like("(lambda v, n: (gradOut.float() - v(sumDy) / n - (input.float() - v(mean)) * v(invstd) ** 2 * v(sumDyXmu) / n) * v(invstd) *"
          " (1 if weight is None else v(weight)))(lambda t: t.float().view([1, -1] + [1] * (input.dim() - 2)), counter.sum().item())")
    .Does([](const Call& c) -> Status {
      const Args& a = c.args;
      const Channels mean = Load(a[BatchNormElemtBackward::mean]), invstd = Load(a[BatchNormElemtBackward::invstd]);
      const Channels sum = Load(a[BatchNormElemtBackward::sumDy]), dot = Load(a[BatchNormElemtBackward::sumDyXmu]);
      const Channels weight = LoadOr(a[BatchNormElemtBackward::weight], mean.size(), 1);
      double n = 0;
      for (const double k : Load(a[BatchNormElemtBackward::counter])) n += k;
      Channels ga(mean.size()), xb(mean.size()), shift(mean.size());
      for (size_t i = 0; i < mean.size(); ++i) {
        ga[i] = weight[i] * invstd[i];
        xb[i] = -ga[i] * invstd[i] * invstd[i] * dot[i] / n;
        shift[i] = -ga[i] * sum[i] / n - xb[i] * mean[i];
      }
      simd::ChannelMix(a[BatchNormElemtBackward::gradOut], ga, a[BatchNormElemtBackward::input], xb, shift,
                       a[BatchNormElemtBackward::gradInput], c.parallel);
      return {};
    });

using abi::BatchNormReduce;
NPU_OP(BatchNormReduce) = Op<BatchNormReduce>()
    .Rules(FloatTensors(BatchNormReduce::x, BatchNormReduce::sum, BatchNormReduce::squareSum), HasChannels(BatchNormReduce::x),
           PerChannel(BatchNormReduce::x, BatchNormReduce::sum), PerChannel(BatchNormReduce::x, BatchNormReduce::squareSum))
    .Tolerance("accumulated")
    .Like("(lambda v: (v.sum(1), v.square().sum(1)))(x.float().transpose(0, 1).flatten(1))")
    .Does([](const Call& c) -> Status {
      Channels sum, square;
      simd::ChannelSums(c.args[BatchNormReduce::x], &sum, &square, c.parallel);
      Store(sum, &c.args[BatchNormReduce::sum]);
      Store(square, &c.args[BatchNormReduce::squareSum]);
      return {};
    });

using abi::BatchNormReduceBackward;
NPU_OP(BatchNormReduceBackward) = Op<BatchNormReduceBackward>()
    .Rules(FloatTensors(BatchNormReduceBackward::gradOut, BatchNormReduceBackward::input, BatchNormReduceBackward::mean,
                        BatchNormReduceBackward::invstd, BatchNormReduceBackward::weight),
           FloatTensors(BatchNormReduceBackward::sumDy, BatchNormReduceBackward::sumDyXmu, BatchNormReduceBackward::gradWeight,
                        BatchNormReduceBackward::gradBias),
           HasChannels(BatchNormReduceBackward::input), SameShape(BatchNormReduceBackward::input, BatchNormReduceBackward::gradOut),
           PerChannel(BatchNormReduceBackward::input, BatchNormReduceBackward::mean),
           PerChannel(BatchNormReduceBackward::input, BatchNormReduceBackward::invstd),
           PerChannel(BatchNormReduceBackward::input, BatchNormReduceBackward::sumDy),
           PerChannel(BatchNormReduceBackward::input, BatchNormReduceBackward::sumDyXmu),
           PerChannel(BatchNormReduceBackward::input, BatchNormReduceBackward::gradWeight),
           PerChannel(BatchNormReduceBackward::input, BatchNormReduceBackward::gradBias))
    .Uses(BatchNormReduceBackward::inputG, BatchNormReduceBackward::weightG, BatchNormReduceBackward::biasG)
    .Tolerance("accumulated")
    .Like("(lambda g, x: (g.sum(1), (g * (x - mean.float()[:, None])).sum(1), (g * (x - mean.float()[:, None])).sum(1) * invstd.float(),"
          " g.sum(1)))(gradOut.float().transpose(0, 1).flatten(1), input.float().transpose(0, 1).flatten(1))")
    .Does([](const Call& c) -> Status {
      const Args& a = c.args;
      const Channels invstd = Load(a[BatchNormReduceBackward::invstd]);
      Channels sum, dot;
      simd::ChannelGradSums(a[BatchNormReduceBackward::gradOut], a[BatchNormReduceBackward::input],
                            Load(a[BatchNormReduceBackward::mean]), &sum, &dot, c.parallel);
      if (a[BatchNormReduceBackward::inputG]) {
        Store(sum, a[BatchNormReduceBackward::sumDy]);
        Store(dot, a[BatchNormReduceBackward::sumDyXmu]);
      }
      if (a[BatchNormReduceBackward::biasG]) Store(sum, a[BatchNormReduceBackward::gradBias]);
      for (size_t i = 0; i < dot.size(); ++i) dot[i] *= invstd[i];
      if (a[BatchNormReduceBackward::weightG]) Store(dot, a[BatchNormReduceBackward::gradWeight]);
      return {};
    });

// Statistics of several cards as one. mean and invstd are [cards, channels], counts [cards].
using abi::BatchNormGatherStatsWithCounts;
NPU_OP(BatchNormGatherStatsWithCounts) = Op<BatchNormGatherStatsWithCounts>()
    .Rules(FloatTensors(BatchNormGatherStatsWithCounts::input, BatchNormGatherStatsWithCounts::mean, BatchNormGatherStatsWithCounts::invstd,
                        BatchNormGatherStatsWithCounts::runningMean, BatchNormGatherStatsWithCounts::runningVar,
                        BatchNormGatherStatsWithCounts::counts),
           FloatTensors(BatchNormGatherStatsWithCounts::meanAll, BatchNormGatherStatsWithCounts::invstdAll),
           HasChannels(BatchNormGatherStatsWithCounts::input),
           PerChannel(BatchNormGatherStatsWithCounts::input, BatchNormGatherStatsWithCounts::runningMean),
           PerChannel(BatchNormGatherStatsWithCounts::input, BatchNormGatherStatsWithCounts::runningVar),
           PerChannel(BatchNormGatherStatsWithCounts::input, BatchNormGatherStatsWithCounts::meanAll),
           PerChannel(BatchNormGatherStatsWithCounts::input, BatchNormGatherStatsWithCounts::invstdAll),
           SameShape(BatchNormGatherStatsWithCounts::mean, BatchNormGatherStatsWithCounts::invstd))
    .Uses(BatchNormGatherStatsWithCounts::momentum, BatchNormGatherStatsWithCounts::eps)
    .Tolerance("accumulated")
    .Like("(lambda n, m, v: (lambda M: (M, ((n * (v + (m - M) ** 2)).sum(0) / n.sum() + eps).rsqrt()))((n * m).sum(0) / n.sum()))("
          "counts.double().view(-1, 1), mean.double(), invstd.double() ** -2 - eps)")
    .Prepares([](Planning& plan) -> Status {
      using G = BatchNormGatherStatsWithCounts;
      const Tensor& mean = plan.args[G::mean];
      if (mean.rank == 2 && mean.shape[1] == plan.args[G::input].shape[1] && mean.shape[0] == plan.args[G::counts].Numel()) return {};
      return plan.Refuse("mean has shape {}, but there are {} counts and {} channels.", ShapeText(mean.Shape()),
                         plan.args[G::counts].Numel(), plan.args[G::input].shape[1])
          .Remedy("mean and invstd are [cards, channels].");
    })
    .Does([](const Call& c) -> Status {
      using G = BatchNormGatherStatsWithCounts;
      const Args& a = c.args;
      const Channels means = Load(a[G::mean]), invstds = Load(a[G::invstd]), counts = Load(a[G::counts]);
      const double eps = a[G::eps];
      const auto n = static_cast<size_t>(a[G::input].shape[1]);
      Channels mean(n, 0), variance(n, 0);
      double total = 0;
      for (size_t k = 0; k < counts.size(); ++k) {
        total += counts[k];
        for (size_t i = 0; i < n; ++i) mean[i] += counts[k] * means[k * n + i];
      }
      for (double& m : mean) m /= total;
      for (size_t k = 0; k < counts.size(); ++k) {
        for (size_t i = 0; i < n; ++i) {
          const double v = 1 / (invstds[k * n + i] * invstds[k * n + i]) - eps, off = means[k * n + i] - mean[i];
          variance[i] += counts[k] * (v + off * off);
        }
      }
      for (double& v : variance) v /= total;
      Store(mean, &a[G::meanAll]);
      Store(InverseDeviation(variance, eps), &a[G::invstdAll]);
      Blend(a[G::runningMean], mean, a[G::momentum]);
      Unbias(&variance, total);
      Blend(a[G::runningVar], variance, a[G::momentum]);
      return {};
    });

// The same from sums: totalSum and totalSquareSum are [cards, channels], sampleCount [cards].
using abi::SyncBatchNormGatherStats;
NPU_OP(SyncBatchNormGatherStats) = Op<SyncBatchNormGatherStats>()
    .Rules(FloatTensors(SyncBatchNormGatherStats::totalSum, SyncBatchNormGatherStats::totalSquareSum, SyncBatchNormGatherStats::mean,
                        SyncBatchNormGatherStats::variance, SyncBatchNormGatherStats::batchMean, SyncBatchNormGatherStats::batchInvstd),
           HasChannels(SyncBatchNormGatherStats::totalSum),
           SameShape(SyncBatchNormGatherStats::totalSum, SyncBatchNormGatherStats::totalSquareSum),
           PerChannel(SyncBatchNormGatherStats::totalSum, SyncBatchNormGatherStats::mean),
           PerChannel(SyncBatchNormGatherStats::totalSum, SyncBatchNormGatherStats::variance),
           PerChannel(SyncBatchNormGatherStats::totalSum, SyncBatchNormGatherStats::batchMean),
           PerChannel(SyncBatchNormGatherStats::totalSum, SyncBatchNormGatherStats::batchInvstd))
    .Uses(SyncBatchNormGatherStats::sampleCount, SyncBatchNormGatherStats::momentum, SyncBatchNormGatherStats::eps)
    .Tolerance("accumulated")
    .Like("(lambda n, s, q: (s / n, (q / n - (s / n) ** 2 + eps).rsqrt()))(sampleCount.double().sum(), totalSum.double().sum(0),"
          " totalSquareSum.double().sum(0))")
    .Does([](const Call& c) -> Status {
      using G = SyncBatchNormGatherStats;
      const Args& a = c.args;
      const Channels sums = Load(a[G::totalSum]), squares = Load(a[G::totalSquareSum]);
      double total = 0;
      for (const double k : Load(a[G::sampleCount])) total += k;
      const auto n = static_cast<size_t>(a[G::totalSum].shape[1]);
      Channels mean(n, 0), variance(n, 0);
      for (size_t i = 0; i < sums.size(); ++i) {
        mean[i % n] += sums[i] / total;
        variance[i % n] += squares[i] / total;
      }
      for (size_t i = 0; i < n; ++i) variance[i] = std::max(variance[i] - mean[i] * mean[i], 0.0);
      Store(mean, &a[G::batchMean]);
      Store(InverseDeviation(variance, a[G::eps]), &a[G::batchInvstd]);
      Blend(&a[G::mean], mean, a[G::momentum]);
      Unbias(&variance, total);
      Blend(&a[G::variance], variance, a[G::momentum]);
      return {};
    });

}  // namespace npu::ops
