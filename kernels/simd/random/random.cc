#include "kernels/simd/random/random.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "kernels/simd/copy/copy.h"
#include "kernels/simd/random/philox_rows.h"
#include "kernels/simd/rows/dense.h"
#include "kernels/simd/rows/scratch.h"

namespace npu::simd {
namespace {

constexpr int64_t kRun = 2048;        // elements at a time; a multiple of 4
constexpr int64_t kBlock = 16 * kRun;

// Calls f(words, first element, n) for runs of the elements [0, n); `per` words belong to one element.
template <class F>
void EachRun(Philox key, int64_t n, int per, Parallel& parallel, const F& f) {
  parallel.For(n, kBlock, [&](int64_t begin, int64_t end) {
    alignas(64) uint32_t words[2 * kRun + 4];
    for (int64_t i = begin; i < end; i += kRun) {
      const int64_t len = std::min(kRun, end - i);
      PhiloxWords(key, static_cast<uint64_t>(i * per / 4), (len * per + 3) / 4, words);
      f(words, i, len);
    }
  });
}

double Unit53(const uint32_t* w) {
  const uint64_t bits = static_cast<uint64_t>(w[0]) << 32 | w[1];
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

// The largest number of a type (f32 or a half) below `end`. A uniform number that rounding would take to the excluded end
// becomes this one, its neighbour: to send it to the other end would move the mean of halves by up to 2^-8 of the range.
float LastBelow(double end, DType type) {
  const int digits = type == DType::bf16 ? 8 : type == DType::f16 ? 11 : 24;
  const int least = type == DType::f16 ? -24 : type == DType::bf16 ? -133 : -149;  // exponent of the smallest number
  if (end == 0) return static_cast<float>(-std::ldexp(1.0, least));
  int exponent = 0;
  std::frexp(end, &exponent);  // |end| in [2^(exponent-1), 2^exponent)
  if (std::fabs(end) == std::ldexp(0.5, exponent) && end > 0) --exponent;  // below a power of two numbers lie closer
  const double step = std::ldexp(1.0, std::max(exponent - digits, least));
  const double below = std::floor(end / step) * step;
  return static_cast<float>(below < end ? below : below - step);
}

// Fills a tensor run by run through C values.
template <class C, class F>
void Fill(Philox key, int per, const Tensor& out_any, Parallel& parallel, const F& f) {
  const DenseOut out(out_any, parallel);
  EachRun(key, out->Numel(), per, parallel, [&](const uint32_t* words, int64_t first, int64_t n) {
    alignas(64) C values[kRun + 2];
    void* to = At(out->data, out->dtype, first);
    f(words, first, n, values);
    Write(values, n, to, out->dtype, 1);
  });
}

}  // namespace

void PhiloxWords(Philox key, uint64_t first, int64_t blocks, uint32_t* out) {
  PhiloxRows().words(key.seed, key.offset, first, blocks, out);
}

void FillUniform(Philox key, double from, double to, const Tensor& out, Parallel& parallel) {
  if (out.dtype == DType::f64) {
    return Fill<double>(key, 2, out, parallel, [=](const uint32_t* w, int64_t, int64_t n, double* v) {
      for (int64_t i = 0; i < n; ++i) {
        v[i] = from + Unit53(w + 2 * i) * (to - from);
        if (v[i] >= to) v[i] = from;
      }
    });
  }
  const float low = static_cast<float>(from), scale = static_cast<float>(to - from);
  const float last = from == to ? low : std::max(low, LastBelow(to, out.dtype));
  Fill<float>(key, 1, out, parallel, [=](const uint32_t* w, int64_t, int64_t n, float* v) {
    PhiloxRows().uniform(w, scale, low, v, n);
    for (int64_t i = 0; i < n; ++i) v[i] = std::min(v[i], last);
  });
}

void FillNormal(Philox key, const Tensor* mean, double mean_number, const Tensor* deviation, double deviation_number,
                const Tensor& out, Parallel& parallel) {
  std::optional<DenseIn> m, s;
  if (mean != nullptr) m.emplace(*mean, parallel);
  if (deviation != nullptr) s.emplace(*deviation, parallel);
  Fill<double>(key, 1, out, parallel, [&](const uint32_t* w, int64_t first, int64_t n, double* v) {
    alignas(64) float z[kRun + 2];
    alignas(64) double ms[kRun];
    alignas(64) double ss[kRun];
    PhiloxRows().normal(w, z, (n + 1) / 2 * 2);
    if (m) Load(At((*m)->data, (*m)->dtype, first), (*m)->dtype, 1, n, ms);
    if (s) Load(At((*s)->data, (*s)->dtype, first), (*s)->dtype, 1, n, ss);
    for (int64_t i = 0; i < n; ++i) {
      v[i] = (m ? ms[i] : mean_number) + static_cast<double>(z[i]) * (s ? ss[i] : deviation_number);
    }
  });
}
void FillNormal(Philox key, double mean, double deviation, const Tensor& out, Parallel& parallel) {
  if (out.dtype == DType::f64) return FillNormal(key, nullptr, mean, nullptr, deviation, out, parallel);
  const float m = static_cast<float>(mean), s = static_cast<float>(deviation);
  Fill<float>(key, 1, out, parallel, [=](const uint32_t* w, int64_t, int64_t n, float* v) {
    PhiloxRows().normal(w, v, (n + 1) / 2 * 2);
    for (int64_t i = 0; i < n; ++i) v[i] = m + v[i] * s;
  });
}

void FillExponential(Philox key, double rate, const Tensor& out, Parallel& parallel) {
  Fill<double>(key, 2, out, parallel, [=](const uint32_t* w, int64_t, int64_t n, double* v) {
    // 1 − u lies in (0, 1]; the result is kept above 0 as torch does.
    for (int64_t i = 0; i < n; ++i) v[i] = std::max(-std::log1p(-Unit53(w + 2 * i)), 0x1p-54) / rate;
  });
}

void FillIntegers(Philox key, int64_t from, uint64_t range, const Tensor& out, Parallel& parallel) {
  Fill<int64_t>(key, 2, out, parallel, [=](const uint32_t* w, int64_t, int64_t n, int64_t* v) {
    for (int64_t i = 0; i < n; ++i) {
      const uint64_t bits = static_cast<uint64_t>(w[2 * i]) << 32 | w[2 * i + 1];
      v[i] = static_cast<int64_t>(static_cast<uint64_t>(from) + (range == 0 ? bits : bits % range));
    }
  });
}

void FillBernoulli(Philox key, double p, const Tensor& out, Parallel& parallel) {
  const auto threshold = static_cast<uint64_t>(std::clamp(p, 0.0, 1.0) * 0x1p32);
  Fill<int64_t>(key, 1, out, parallel, [=](const uint32_t* w, int64_t, int64_t n, int64_t* v) {
    for (int64_t i = 0; i < n; ++i) v[i] = w[i] < threshold ? 1 : 0;
  });
}
void FillBernoulli(Philox key, const Tensor& p_any, const Tensor& out, Parallel& parallel) {
  const DenseIn p(p_any, parallel);
  Fill<int64_t>(key, 1, out, parallel, [&](const uint32_t* w, int64_t first, int64_t n, int64_t* v) {
    alignas(64) double ps[kRun];
    Load(At(p->data, p->dtype, first), p->dtype, 1, n, ps);
    for (int64_t i = 0; i < n; ++i) v[i] = w[i] < static_cast<uint64_t>(std::clamp(ps[i], 0.0, 1.0) * 0x1p32) ? 1 : 0;
  });
}

void FillPermutation(Philox key, int64_t n, const Tensor& out, Parallel& parallel) {
  Scratch<uint64_t> keys(n);
  Scratch<int64_t> order(n);
  EachRun(key, n, 2, parallel, [&](const uint32_t* w, int64_t first, int64_t len) {
    for (int64_t i = 0; i < len; ++i) keys[first + i] = static_cast<uint64_t>(w[2 * i]) << 32 | w[2 * i + 1];
  });
  std::iota(order.data(), order.data() + n, int64_t{0});
  std::sort(order.data(), order.data() + n,
            [&](int64_t a, int64_t b) { return keys[a] != keys[b] ? keys[a] < keys[b] : a < b; });
  StoreDense(order.data(), out);
}

SampleFault Multinomial(Philox key, const Tensor& probability, int64_t samples, bool replacement, const Tensor& out,
                        Parallel& parallel) {
  const int64_t classes = probability.shape[static_cast<size_t>(probability.rank - 1)];
  const int64_t rows = classes == 0 ? 0 : probability.Numel() / classes;
  Scratch<double> p(rows * classes);
  Scratch<int64_t> picked(rows * samples);
  LoadDense(probability, p.data());
  std::vector<SampleFault> faults(static_cast<size_t>(rows), SampleFault::kNone);
  const int64_t words_per_row = replacement ? 2 * samples : 2 * classes;
  parallel.For(rows, RowsPerBlock(8 * classes), [&](int64_t begin, int64_t end) {
    // Rows begin at whole blocks of four words.
    const int64_t blocks = (words_per_row + 3) / 4;
    Scratch<uint32_t> words(4 * blocks);
    Scratch<double> score(classes);
    std::vector<int64_t> order(static_cast<size_t>(classes));
    for (int64_t r = begin; r < end; ++r) {
      const double* row = p.data() + r * classes;
      double sum = 0;
      int64_t possible = 0;
      for (int64_t c = 0; c < classes; ++c) {
        if (!(row[c] >= 0) || std::isinf(row[c])) faults[static_cast<size_t>(r)] = SampleFault::kBadProbability;
        possible += row[c] > 0;
        sum += row[c];
      }
      SampleFault& fault = faults[static_cast<size_t>(r)];
      if (fault == SampleFault::kNone && sum <= 0) fault = SampleFault::kZeroSum;
      if (fault == SampleFault::kNone && !replacement && possible < samples) fault = SampleFault::kTooFew;
      if (fault != SampleFault::kNone) continue;
      PhiloxWords(key, static_cast<uint64_t>(r * blocks), blocks, words.data());
      int64_t* to = picked.data() + r * samples;
      if (replacement) {
        double acc = 0;
        for (int64_t c = 0; c < classes; ++c) score[c] = acc += row[c];
        for (int64_t s = 0; s < samples; ++s) {
          const double u = Unit53(words.data() + 2 * s) * acc;
          to[s] = std::min<int64_t>(std::upper_bound(score.data(), score.data() + classes, u) - score.data(), classes - 1);
        }
        continue;
      }
      // The smallest of exponential waiting times with these rates come in the order of weighted draws.
      for (int64_t c = 0; c < classes; ++c) {
        const double wait = std::max(-std::log1p(-Unit53(words.data() + 2 * c)), 0x1p-60);
        score[c] = row[c] > 0 ? wait / row[c] : std::numeric_limits<double>::infinity();
      }
      std::iota(order.begin(), order.end(), int64_t{0});
      std::partial_sort(order.begin(), order.begin() + samples, order.end(), [&](int64_t a, int64_t b) {
        return score[a] != score[b] ? score[a] < score[b] : a < b;
      });
      std::copy(order.begin(), order.begin() + samples, to);
    }
  });
  for (const SampleFault f : faults) {
    if (f != SampleFault::kNone) return f;
  }
  StoreDense(picked.data(), out);
  return SampleFault::kNone;
}

void DropoutMask(Philox key, double p, int64_t bytes, uint8_t* mask, Parallel& parallel) {
  const auto threshold = static_cast<uint64_t>(std::clamp(1 - p, 0.0, 1.0) * 0x1p32);
  EachRun(key, 8 * bytes, 1, parallel, [&](const uint32_t* w, int64_t first, int64_t n) {
    for (int64_t i = 0; i < n; i += 8) {
      unsigned bits = 0;
      for (int b = 0; b < 8; ++b) bits |= (w[i + b] < threshold ? 1u : 0u) << b;
      mask[(first + i) / 8] = static_cast<uint8_t>(bits);
    }
  });
}

void ApplyDropoutMask(const Tensor& x_any, const uint8_t* mask, double p, const Tensor& out_any, Parallel& parallel) {
  const DenseIn x(x_any, parallel);
  const DenseOut out(out_any, parallel);
  const auto run = [&]<class C>(C) {
    const C scale = static_cast<C>(p >= 1 ? 0 : 1 / (1 - p));
    parallel.For(x->Numel(), kBlock, [&](int64_t begin, int64_t end) {
      alignas(64) C in[kRun];
      alignas(64) C result[kRun];
      for (int64_t i = begin; i < end; i += kRun) {
        const int64_t n = std::min(kRun, end - i);
        const C* v = Read(At(x->data, x->dtype, i), x->dtype, 1, n, in);
        void* to = At(out->data, out->dtype, i);
        C* y = Target(to, out->dtype, 1, result);
        for (int64_t k = 0; k < n; ++k) y[k] = (mask[(i + k) / 8] >> ((i + k) % 8) & 1) != 0 ? v[k] * scale : C{0};
        Finish(y, n, to, out->dtype, 1);
      }
    });
  };
  if (x->dtype == DType::f64) run(double{});
  else run(float{});
}

}  // namespace npu::simd
