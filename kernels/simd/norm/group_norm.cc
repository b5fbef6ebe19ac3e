#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/simd/copy/copy.h"
#include "kernels/simd/norm/norm.h"
#include "kernels/simd/norm/vector.h"
#include "kernels/simd/rows/rows.h"
#include "kernels/simd/rows/scratch.h"

namespace npu::simd {
namespace {

// Calls body(begin, length) for pieces of n elements that fit the first-level cache.
template <class F>
void Chunks(int64_t n, const F& body) {
  for (int64_t i = 0; i < n; i += kChunk) body(i, std::min(kChunk, n - i));
}

template <class C>
void Forward(const Tensor& x_any, const GroupShape& s, const Tensor* w, const Tensor* b, double eps, const Tensor& y_any,
             const Tensor* mean, const Tensor* rstd, Parallel& parallel) {
  const DenseIn x(x_any, parallel);
  const DenseOut y(y_any, parallel);
  const int64_t rows = s.batch * s.groups;
  const int64_t per_group = s.channels / s.groups;
  const int64_t n = per_group * s.space;
  const std::vector<C> wv = LoadVector<C>(w), bv = LoadVector<C>(b);
  Scratch<double> means(rows), rstds(rows);
  const RowTable<C>& row = Rows<C>();
  parallel.For(rows, RowsPerBlock(n), [&](int64_t begin, int64_t end) {
    alignas(64) C in[kChunk];
    alignas(64) C out[kChunk];
    for (int64_t r = begin; r < end; ++r) {
      const auto read = [&](int64_t i, int64_t len) { return Read(At(x->data, x->dtype, r * n + i), x->dtype, 1, len, in); };
      double sum = 0, square = 0;
      Chunks(n, [&](int64_t i, int64_t len) { sum += row.fold[kSum](read(i, len), len, 0); });
      const double m = sum / static_cast<double>(n);
      Chunks(n, [&](int64_t i, int64_t len) { square += row.fold[kSumCentered](read(i, len), len, static_cast<C>(m)); });
      const double rs = 1 / std::sqrt(square / static_cast<double>(n) + eps);
      means[r] = m;
      rstds[r] = rs;
      for (int64_t c = 0; c < per_group; ++c) {
        const auto channel = static_cast<size_t>(r % s.groups * per_group + c);
        const double a = wv.empty() ? rs : rs * static_cast<double>(wv[channel]);
        const double shift = (bv.empty() ? 0 : static_cast<double>(bv[channel])) - m * a;
        Chunks(s.space, [&](int64_t i, int64_t len) {
          const int64_t at = c * s.space + i;
          void* to = At(y->data, y->dtype, r * n + at);
          C* result = Target(to, y->dtype, 1, out);
          row.affine(read(at, len), static_cast<C>(a), static_cast<C>(shift), result, len);
          Finish(result, len, to, y->dtype, 1);
        });
      }
    }
  });
  if (mean != nullptr) StoreVector(means.data(), *mean);
  if (rstd != nullptr) StoreVector(rstds.data(), *rstd);
}

template <class C>
void Backward(const Tensor& g_any, const Tensor& x_any, const GroupShape& s, const Tensor& mean, const Tensor& rstd,
              const Tensor* w, const Tensor* dx_any, const Tensor* dw, const Tensor* db, Parallel& parallel) {
  const DenseIn x(x_any, parallel);
  const DenseIn g(g_any, parallel);
  std::optional<DenseOut> dx;
  if (dx_any != nullptr) dx.emplace(*dx_any, parallel);
  const int64_t per_group = s.channels / s.groups;
  const double n = static_cast<double>(per_group * s.space);
  const std::vector<double> wv = LoadVector<double>(w);
  const std::vector<double> means = LoadVector<double>(mean), rstds = LoadVector<double>(rstd);
  const RowTable<C>& row = Rows<C>();
  // For each [batch, channel]: Σ g and Σ g·(x − mean).
  Scratch<double> sum_g(s.batch * s.channels), sum_gx(s.batch * s.channels);
  const auto group_of = [&](int64_t bc) {
    return static_cast<size_t>(bc / s.channels * s.groups + bc % s.channels / per_group);
  };
  const auto read = [&](const Tensor& t, int64_t at, int64_t len, C* buffer) {
    return Read(At(t.data, t.dtype, at), t.dtype, 1, len, buffer);
  };
  parallel.For(s.batch * s.channels, RowsPerBlock(s.space), [&](int64_t begin, int64_t end) {
    alignas(64) C gb[kChunk];
    alignas(64) C xb[kChunk];
    for (int64_t bc = begin; bc < end; ++bc) {
      double sg = 0, sgx = 0;
      const C m = static_cast<C>(means[group_of(bc)]);
      Chunks(s.space, [&](int64_t i, int64_t len) {
        const C* gr = read(*g, bc * s.space + i, len, gb);
        sg += row.fold[kSum](gr, len, 0);
        sgx += row.dot_centered(gr, read(*x, bc * s.space + i, len, xb), m, len);
      });
      sum_g[bc] = sg;
      sum_gx[bc] = sgx;
    }
  });
  if (dx) {
    parallel.For(s.batch * s.groups, RowsPerBlock(per_group * s.space), [&](int64_t begin, int64_t end) {
      alignas(64) C gb[kChunk];
      alignas(64) C xb[kChunk];
      alignas(64) C out[kChunk];
      for (int64_t r = begin; r < end; ++r) {
        const int64_t first = r / s.groups * s.channels + r % s.groups * per_group;
        const double m = means[static_cast<size_t>(r)], rs = rstds[static_cast<size_t>(r)];
        double s0 = 0, s1 = 0;
        for (int64_t c = 0; c < per_group; ++c) {
          const double weight = wv.empty() ? 1 : wv[static_cast<size_t>((first + c) % s.channels)];
          s0 += weight * sum_g[first + c];
          s1 += weight * sum_gx[first + c] * rs;
        }
        const double b = -rs * rs * s1 / n;
        const double shift = -rs * s0 / n - b * m;
        for (int64_t c = 0; c < per_group; ++c) {
          const double weight = wv.empty() ? 1 : wv[static_cast<size_t>((first + c) % s.channels)];
          Chunks(s.space, [&](int64_t i, int64_t len) {
            const int64_t at = (first + c) * s.space + i;
            void* to = At((*dx)->data, (*dx)->dtype, at);
            C* result = Target(to, (*dx)->dtype, 1, out);
            row.mix(read(*g, at, len, gb), static_cast<C>(rs * weight), read(*x, at, len, xb), static_cast<C>(b),
                    static_cast<C>(shift), result, len);
            Finish(result, len, to, (*dx)->dtype, 1);
          });
        }
      }
    });
  }
  std::vector<double> dwv(static_cast<size_t>(s.channels)), dbv(static_cast<size_t>(s.channels));
  for (int64_t b = 0; b < s.batch; ++b) {
    for (int64_t c = 0; c < s.channels; ++c) {
      const int64_t bc = b * s.channels + c;
      dwv[static_cast<size_t>(c)] += sum_gx[bc] * rstds[group_of(bc)];
      dbv[static_cast<size_t>(c)] += sum_g[bc];
    }
  }
  if (dw != nullptr) StoreVector(dwv.data(), *dw);
  if (db != nullptr) StoreVector(dbv.data(), *db);
}

}  // namespace

void GroupNorm(const Tensor& x, const GroupShape& shape, const Tensor* w, const Tensor* b, double eps, const Tensor& y,
               const Tensor* mean, const Tensor* rstd, Parallel& parallel) {
  if (x.dtype == DType::f64) Forward<double>(x, shape, w, b, eps, y, mean, rstd, parallel);
  else Forward<float>(x, shape, w, b, eps, y, mean, rstd, parallel);
}
void GroupNormBackward(const Tensor& grad, const Tensor& x, const GroupShape& shape, const Tensor& mean, const Tensor& rstd,
                       const Tensor* w, const Tensor* dx, const Tensor* dw, const Tensor* db, Parallel& parallel) {
  if (x.dtype == DType::f64) Backward<double>(grad, x, shape, mean, rstd, w, dx, dw, db, parallel);
  else Backward<float>(grad, x, shape, mean, rstd, w, dx, dw, db, parallel);
}

}  // namespace npu::simd
