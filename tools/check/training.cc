// What a training step calls: gradients, losses, normalisation, convolution, fused attention. Judged in double on the
// host.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "tools/check/call.h"
#include "tools/check/operators.h"

namespace npu::check {
namespace {

constexpr int64_t kRows = 13, kCols = 37;
constexpr uint64_t kMean = 1;  // reduction of losses

// Row by row: out(row of a, row of b, row of the result).
template <class F>
std::vector<double> Rows(const std::vector<double>& a, const std::vector<double>& b, size_t width, F&& f) {
  std::vector<double> out(a.size());
  for (size_t at = 0; at < a.size(); at += width) f(a.data() + at, b.data() + at, out.data() + at);
  return out;
}

void SoftmaxGradients(Bench& bench) {
  const Input grad = bench.Drawn({kRows, kCols}, -1, 1), x = bench.Drawn({kRows, kCols}, -1, 1);
  Input soft{x.shape, {}, kFloat}, logs{x.shape, {}, kFloat};
  soft.values = Rows(x.values, x.values, kCols, [](const double* in, const double*, double* out) {
    double sum = 0;
    for (int64_t k = 0; k < kCols; ++k) sum += std::exp(in[k]);
    for (int64_t k = 0; k < kCols; ++k) out[k] = AsType(std::exp(in[k]) / sum, kFloat);
  });
  for (const double p : soft.values) logs.values.push_back(AsType(std::log(p), kFloat));
  bench.Call(
      "aclnnSoftmaxBackward", "aclnnSoftmaxBackward",
      {In(grad), In(soft), Number(1),
       Out(x.shape, kFloat, Rows(grad.values, soft.values, kCols, [](const double* g, const double* p, double* out) {
             double dot = 0;
             for (int64_t k = 0; k < kCols; ++k) dot += g[k] * p[k];
             for (int64_t k = 0; k < kCols; ++k) out[k] = p[k] * (g[k] - dot);
           }))});
  bench.Call(
      "aclnnLogSoftmaxBackward", "aclnnLogSoftmaxBackward",
      {In(grad), In(logs), Number(1),
       Out(x.shape, kFloat, Rows(grad.values, logs.values, kCols, [](const double* g, const double* p, double* out) {
             double sum = 0;
             for (int64_t k = 0; k < kCols; ++k) sum += g[k];
             for (int64_t k = 0; k < kCols; ++k) out[k] = g[k] - std::exp(p[k]) * sum;
           }))});
}

void Losses(Bench& bench) {
  const Input x = bench.Drawn({kRows, kCols}, -2, 2), y = bench.Drawn({kRows, kCols}, -2, 2);
  const Input grad = bench.Drawn({1}, 0.5, 2);
  const auto n = static_cast<double>(x.values.size());
  double squares = 0, sizes = 0;
  std::vector<double> gradient;
  for (size_t i = 0; i < x.values.size(); ++i) {
    const double d = x.values[i] - y.values[i];
    squares += d * d;
    sizes += std::fabs(d);
    gradient.push_back(2 * d * grad.values[0] / n);
  }
  bench.Call("aclnnMseLoss", "aclnnMseLoss", {In(x), In(y), Number(kMean), Out({}, kFloat, {squares / n})});
  bench.Call("aclnnL1Loss", "aclnnL1Loss", {In(x), In(y), Number(kMean), Out({}, kFloat, {sizes / n})});
  bench.Call("aclnnMseLossBackward", "aclnnMseLossBackward",
             {In(grad), In(x), In(y), Number(kMean), Out(x.shape, kFloat, gradient)});

  // The negative log likelihood, with the classes' weights all 1.
  const Input target = bench.Drawn({kRows}, 0, kCols - 1, kInt64), one{{}, {1.25}, kFloat};
  const Input weight{{kCols}, std::vector<double>(kCols, 1), kFloat}, total{{}, {kRows}, kFloat};
  double likelihood = 0;
  std::vector<double> picked(x.values.size());
  for (size_t i = 0; i < kRows; ++i) {
    const size_t at = i * kCols + static_cast<size_t>(target.values[i]);
    likelihood -= x.values[at];
    picked[at] = -one.values[0] / kRows;
  }
  const Argument ignored = Number(static_cast<uint64_t>(int64_t{-100}));
  bench.Call("aclnnNLLLoss", "aclnnNLLLoss",
             {In(x), In(target), In(weight), Number(kMean), ignored, Out({}, kFloat, {likelihood / kRows}),
              Out({}, kFloat, {kRows})});
  bench.Call("aclnnNLLLossBackward", "aclnnNLLLossBackward",
             {In(one), In(x), In(target), In(weight), Number(kMean), ignored, In(total), Out(x.shape, kFloat, picked)});
}

void Normalisation(Bench& bench) {
  constexpr double kEps = 1e-5;
  const Input x = bench.Drawn({kRows, kCols}, -2, 2), grad = bench.Drawn({kRows, kCols}, -1, 1);
  const Input weight = bench.Drawn({kCols}, 0.5, 1.5), bias = bench.Drawn({kCols}, -1, 1);
  std::vector<double> out(x.values.size()), grad_x(x.values.size()), grad_weight(kCols), grad_bias(kCols);
  Input mean{{kRows, 1}, {}, kFloat}, rstd{{kRows, 1}, {}, kFloat};
  for (size_t i = 0; i < kRows; ++i) {
    const double *row = x.values.data() + i * kCols, *g = grad.values.data() + i * kCols;
    double sum = 0, squares = 0;
    for (size_t k = 0; k < kCols; ++k) sum += row[k];
    const double m = sum / kCols;
    for (size_t k = 0; k < kCols; ++k) squares += (row[k] - m) * (row[k] - m);
    const double r = 1 / std::sqrt(squares / kCols + kEps);
    mean.values.push_back(AsType(m, kFloat));
    rstd.values.push_back(AsType(r, kFloat));
    double all = 0, along = 0;
    for (size_t k = 0; k < kCols; ++k) {
      const double normal = (row[k] - m) * r, weighted = g[k] * weight.values[k];
      out[i * kCols + k] = normal * weight.values[k] + bias.values[k];
      grad_weight[k] += g[k] * normal;
      grad_bias[k] += g[k];
      all += weighted;
      along += weighted * normal;
    }
    for (size_t k = 0; k < kCols; ++k) {
      const double normal = (row[k] - m) * r;
      grad_x[i * kCols + k] = r * (g[k] * weight.values[k] - all / kCols - normal * along / kCols);
    }
  }
  bench.Call("aclnnLayerNorm", "aclnnLayerNorm",
             {In(x), Ints({kCols}), In(weight), In(bias), Real(kEps), Out(x.shape, kFloat, out),
              Out(mean.shape, kFloat, mean.values), Out(rstd.shape, kFloat, rstd.values)});
  bench.Call("aclnnLayerNormBackward", "aclnnLayerNormBackward",
             {In(grad), In(x), Ints({kCols}), In(mean), In(rstd), In(weight), In(bias), Bools({1, 1, 1}),
              Out(x.shape, kFloat, grad_x), Out({kCols}, kFloat, grad_weight), Out({kCols}, kFloat, grad_bias)});
}

void Reductions(Bench& bench) {
  const Input x = bench.Drawn({kRows, kCols}, -1, 1);
  std::vector<double> sums(kRows), means(kRows);
  for (size_t i = 0; i < x.values.size(); ++i) sums[i / kCols] += x.values[i];
  for (size_t i = 0; i < kRows; ++i) means[i] = sums[i] / kCols;
  bench.Call("aclnnReduceSum", "aclnnReduceSum",
             {In(x), Ints({1}), Number(0), Number(kFloat), Out({kRows}, kFloat, sums)});
  bench.Call("aclnnMean", "aclnnMean", {In(x), Ints({1}), Number(0), Number(kFloat), Out({kRows}, kFloat, means)});
  const Input grad = bench.Drawn({kRows, kCols}, -1, 1), index = bench.Drawn({kRows}, 0, 4, kInt64);
  std::vector<double> table(5 * kCols);
  for (size_t i = 0; i < kRows; ++i)
    for (size_t k = 0; k < kCols; ++k)
      table[static_cast<size_t>(index.values[i]) * kCols + k] += grad.values[i * kCols + k];
  bench.Call("aclnnEmbeddingDenseBackward", "aclnnEmbeddingDenseBackward",
             {In(grad), In(index), Number(5), Number(std::numeric_limits<uint64_t>::max()), Number(0),
              Out({5, kCols}, kFloat, table)});
}

// Three channels from two, 3 x 3, padding 1, and its three gradients.
void Convolution(Bench& bench) {
  constexpr int64_t kIn = 2, kOut = 3, kSide = 6, kKernel = 3;
  constexpr uint64_t kKeepType = 0;
  const Input x = bench.Drawn({1, kIn, kSide, kSide}, -1, 1), w = bench.Drawn({kOut, kIn, kKernel, kKernel}, -1, 1);
  const Input grad = bench.Drawn({1, kOut, kSide, kSide}, -1, 1);
  std::vector<double> out(grad.values.size()), grad_x(x.values.size()), grad_w(w.values.size()), grad_b(kOut);
  for (int64_t o = 0; o < kOut; ++o)
    for (int64_t row = 0; row < kSide; ++row)
      for (int64_t col = 0; col < kSide; ++col) {
        const auto to = static_cast<size_t>((o * kSide + row) * kSide + col);
        grad_b[static_cast<size_t>(o)] += grad.values[to];
        for (int64_t c = 0; c < kIn; ++c)
          for (int64_t i = 0; i < kKernel; ++i)
            for (int64_t j = 0; j < kKernel; ++j) {
              const int64_t r = row + i - 1, s = col + j - 1;
              if (r < 0 || s < 0 || r >= kSide || s >= kSide) continue;
              const auto from = static_cast<size_t>((c * kSide + r) * kSide + s),
                         tap = static_cast<size_t>(((o * kIn + c) * kKernel + i) * kKernel + j);
              out[to] += x.values[from] * w.values[tap];
              grad_x[from] += grad.values[to] * w.values[tap];
              grad_w[tap] += grad.values[to] * x.values[from];
            }
      }
  const Argument one = Ints({1, 1}), none = Ints({0, 0});
  bench.Call("aclnnConvolution", "aclnnConvolution",
             {In(x, kNchw), In(w, kNchw), Null(), one, one, one, Number(0), none, Number(1),
              Out(grad.shape, kFloat, out, kNchw), Number(kKeepType)});
  bench.Call("aclnnConvolutionBackward", "aclnnConvolutionBackward",
             {In(grad, kNchw), In(x, kNchw), In(w, kNchw), Ints({kOut}), one, one, one, Number(0), none, Number(1),
              Bools({1, 1, 1}), Number(kKeepType), Out(x.shape, kFloat, grad_x, kNchw),
              Out(w.shape, kFloat, grad_w, kNchw), Out({kOut}, kFloat, grad_b)});
}

}  // namespace

void Training(Bench& bench) {
  SoftmaxGradients(bench);
  Losses(bench);
  Normalisation(bench);
  Reductions(bench);
  Convolution(bench);
}

void Attention(Bench& bench, int type, const std::string& suffix) {
  constexpr int64_t kHeads = 2, kLength = 16, kWidth = 16, kCopies = 8;
  const double scale = 1 / std::sqrt(static_cast<double>(kWidth));
  const std::vector<int64_t> shape{1, kHeads, kLength, kWidth}, rows{1, kHeads, kLength, kCopies};
  const Input q = bench.Drawn(shape, -1, 1, type), k = bench.Drawn(shape, -1, 1, type),
              v = bench.Drawn(shape, -1, 1, type), dy = bench.Drawn(shape, -1, 1, type);
  const auto n = q.values.size();
  std::vector<double> out(n), dq(n), dk(n), dv(n);
  Input largest{rows, {}, kFloat}, sums{rows, {}, kFloat}, rounded{shape, {}, type};
  const auto at = [&](size_t head, size_t row, size_t column) { return (head * kLength + row) * kWidth + column; };
  for (size_t h = 0; h < kHeads; ++h)
    for (size_t i = 0; i < kLength; ++i) {
      double score[kLength] = {}, p[kLength] = {}, dp[kLength] = {}, sum = 0, delta = 0;
      for (size_t j = 0; j < kLength; ++j) {
        for (size_t d = 0; d < kWidth; ++d) score[j] += scale * q.values[at(h, i, d)] * k.values[at(h, j, d)];
      }
      const double most = *std::max_element(score, score + kLength);
      for (size_t j = 0; j < kLength; ++j) sum += std::exp(score[j] - most);
      for (size_t j = 0; j < kLength; ++j) {
        p[j] = std::exp(score[j] - most) / sum;
        for (size_t d = 0; d < kWidth; ++d) {
          out[at(h, i, d)] += p[j] * v.values[at(h, j, d)];
          dv[at(h, j, d)] += p[j] * dy.values[at(h, i, d)];
          dp[j] += dy.values[at(h, i, d)] * v.values[at(h, j, d)];
        }
        delta += p[j] * dp[j];
      }
      for (size_t j = 0; j < kLength; ++j)
        for (size_t d = 0; d < kWidth; ++d) {
          const double ds = scale * p[j] * (dp[j] - delta);
          dq[at(h, i, d)] += ds * k.values[at(h, j, d)];
          dk[at(h, j, d)] += ds * q.values[at(h, i, d)];
        }
      largest.values.insert(largest.values.end(), kCopies, AsType(most, kFloat));
      sums.values.insert(sums.values.end(), kCopies, AsType(sum, kFloat));
    }
  for (const double value : out) rounded.values.push_back(AsType(value, type));
  const Argument everything = Number(std::numeric_limits<int32_t>::max());
  bench.Call("aclnnFlashAttentionScore" + suffix, "aclnnFlashAttentionScore",
             {In(q),
              In(k),
              In(v),
              Null(),
              Null(),
              Null(),
              Null(),
              Null(),
              Real(scale),
              Real(1),
              everything,
              everything,
              Number(kHeads),
              Text("BNSD"),
              Number(0),
              Number(0),
              Out(rows, kFloat, {}),
              Out(rows, kFloat, {}),
              Null(),
              Out(shape, type, out)});
  // A card rounds probabilities and their gradients to the half before it multiplies them.
  const auto gradient = [&](const std::vector<double>& wanted) {
    Argument argument = Out(shape, type, wanted);
    argument.tolerance = 2 * ToleranceOf(type);
    return argument;
  };
  bench.Call("aclnnFlashAttentionScoreGrad" + suffix, "aclnnFlashAttentionScoreGrad",
             {In(q),        In(k),        In(v),        In(dy),         Null(),       Null(),    Null(),
              Null(),       In(largest),  In(sums),     Null(),         In(rounded),  Null(),    Real(scale),
              Real(1),      everything,   everything,   Number(kHeads), Text("BNSD"), Number(0), Number(0),
              gradient(dq), gradient(dk), gradient(dv), Null()});
}

}  // namespace npu::check
