// Layer and RMS normalisation: the same rows, with or without a mean.
#include <cmath>
#include <numeric>
#include <vector>

#include "kernels/simd/copy/copy.h"
#include "kernels/simd/norm/norm.h"
#include "kernels/simd/norm/vector.h"
#include "kernels/simd/rows/rows.h"
#include "kernels/simd/rows/scratch.h"

namespace npu::simd {
namespace {

constexpr double kHardlyVaries = 8;  // mean over deviation

template <class C>
double RowSum(Fold fold, const C* x, int64_t n, C c) {
  double sum = 0;
  for (int64_t i = 0; i < n; i += kChunk) sum += Rows<C>().fold[fold](x + i, n - i < kChunk ? n - i : kChunk, c);
  return sum;
}

template <class C>
void Forward(bool centered, const Tensor& x_any, int64_t width, const Tensor* w, const Tensor* b, double eps,
             const Tensor& y_any, const Tensor* mean, const Tensor* rstd, Parallel& parallel) {
  const int64_t total = x_any.Numel();
  if (total == 0 || width == 0) return;
  const DenseIn x(x_any, parallel);
  const DenseOut y(y_any, parallel);
  const int64_t rows = total / width;
  const std::vector<C> wv = LoadVector<C>(w), bv = LoadVector<C>(b);
  Scratch<double> means(rows), rstds(rows);
  const RowTable<C>& row = Rows<C>();
  parallel.For(rows, RowsPerBlock(width), [&](int64_t begin, int64_t end) {
    Scratch<C> in(width), out(width);
    for (int64_t r = begin; r < end; ++r) {
      const C* xr = Read(At(x->data, x->dtype, r * width), x->dtype, 1, width, in.data());
      void* to = At(y->data, y->dtype, r * width);
      C* yr = Target(to, y->dtype, 1, out.data());
      double m = centered ? RowSum<C>(kSum, xr, width, 0) / static_cast<double>(width) : 0;
      const auto inverse_deviation = [&] {
        const double square = RowSum<C>(centered ? kSumCentered : kSumSquare, xr, width, static_cast<C>(m));
        return 1 / std::sqrt(square / static_cast<double>(width) + eps);
      };
      double rs = inverse_deviation();
      // Where a row hardly varies, what the sum was rounded by would be seen as its variation.
      if (centered && std::abs(m) * rs > kHardlyVaries) {
        m += std::accumulate(xr, xr + width, 0.0, [m](double sum, C v) { return sum + (static_cast<double>(v) - m); }) /
             static_cast<double>(width);
        rs = inverse_deviation();
      }
      means[r] = m;
      rstds[r] = rs;
      row.normalize(xr, static_cast<C>(m), static_cast<C>(rs), DataOrNull(wv), DataOrNull(bv), yr, width);
      Finish(yr, width, to, y->dtype, 1);
    }
  });
  if (mean != nullptr) StoreVector(means.data(), *mean);
  if (rstd != nullptr) StoreVector(rstds.data(), *rstd);
}

template <class C>
void Backward(bool centered, const Tensor& g_any, const Tensor& x_any, int64_t width, const Tensor* mean,
              const Tensor& rstd, const Tensor* w, const Tensor* dx_any, const Tensor* dw, const Tensor* db,
              Parallel& parallel) {
  const int64_t total = x_any.Numel();
  const int64_t rows = width == 0 ? 0 : total / width;
  const DenseIn x(x_any, parallel);
  const DenseIn g(g_any, parallel);
  std::optional<DenseOut> dx;
  if (dx_any != nullptr) dx.emplace(*dx_any, parallel);
  const std::vector<C> wv = LoadVector<C>(w);
  const std::vector<double> means = LoadVector<double>(mean), rstds = LoadVector<double>(rstd);
  const RowTable<C>& row = Rows<C>();
  // Each block of rows sums its part of dw and db; the parts are added in order.
  const int64_t block = RowsPerBlock(width);
  const int64_t blocks = (rows + block - 1) / block;
  Scratch<C> dw_parts(dw != nullptr ? blocks * width : 1), db_parts(db != nullptr ? blocks * width : 1);
  parallel.For(rows, block, [&](int64_t begin, int64_t end) {
    Scratch<C> gb(width), xb(width), out(width);
    C* dwp = dw != nullptr ? dw_parts.data() + begin / block * width : nullptr;
    C* dbp = db != nullptr ? db_parts.data() + begin / block * width : nullptr;
    if (dwp != nullptr) std::fill(dwp, dwp + width, C{0});
    if (dbp != nullptr) std::fill(dbp, dbp + width, C{0});
    for (int64_t r = begin; r < end; ++r) {
      const C* gr = Read(At(g->data, g->dtype, r * width), g->dtype, 1, width, gb.data());
      const C* xr = Read(At(x->data, x->dtype, r * width), x->dtype, 1, width, xb.data());
      const C m = centered ? static_cast<C>(means[static_cast<size_t>(r)]) : C{0};
      const C rs = static_cast<C>(rstds[static_cast<size_t>(r)]);
      double s0 = 0, s1 = 0;
      for (int64_t i = 0; i < width; i += kChunk) {
        const int64_t n = width - i < kChunk ? width - i : kChunk;
        C sums[2];
        row.normalize_sums(gr + i, xr + i, m, rs, wv.empty() ? nullptr : wv.data() + i, dwp != nullptr ? dwp + i : nullptr,
                           dbp != nullptr ? dbp + i : nullptr, sums, n);
        s0 += sums[0];
        s1 += sums[1];
      }
      if (!dx) continue;
      void* to = At((*dx)->data, (*dx)->dtype, r * width);
      C* dr = Target(to, (*dx)->dtype, 1, out.data());
      const double n = static_cast<double>(width);
      row.normalize_grad(gr, xr, m, rs, DataOrNull(wv), static_cast<C>(centered ? s0 / n : 0), static_cast<C>(s1 / n), dr,
                         width);
      Finish(dr, width, to, (*dx)->dtype, 1);
    }
  });
  const auto combine = [&](const Tensor* out, C* parts) {
    if (out == nullptr) return;
    Scratch<double> sum(width);
    parallel.For(width, kGrain / 8, [&](int64_t begin, int64_t end) {
      std::fill(sum.data() + begin, sum.data() + end, 0.0);
      for (int64_t k = 0; k < blocks; ++k) {
        for (int64_t i = begin; i < end; ++i) sum[i] += static_cast<double>(parts[k * width + i]);
      }
    });
    StoreVector(sum.data(), *out);
  };
  combine(dw, dw_parts.data());
  combine(db, db_parts.data());
}

}  // namespace

void LayerNorm(const Tensor& x, int64_t width, const Tensor* w, const Tensor* b, double eps, const Tensor& y,
               const Tensor* mean, const Tensor* rstd, Parallel& parallel) {
  if (x.dtype == DType::f64) Forward<double>(true, x, width, w, b, eps, y, mean, rstd, parallel);
  else Forward<float>(true, x, width, w, b, eps, y, mean, rstd, parallel);
}
void LayerNormBackward(const Tensor& grad, const Tensor& x, int64_t width, const Tensor& mean, const Tensor& rstd,
                       const Tensor* w, const Tensor* dx, const Tensor* dw, const Tensor* db, Parallel& parallel) {
  if (x.dtype == DType::f64) Backward<double>(true, grad, x, width, &mean, rstd, w, dx, dw, db, parallel);
  else Backward<float>(true, grad, x, width, &mean, rstd, w, dx, dw, db, parallel);
}
void RmsNorm(const Tensor& x, int64_t width, const Tensor* w, double eps, const Tensor& y, const Tensor* rstd,
             Parallel& parallel) {
  if (x.dtype == DType::f64) Forward<double>(false, x, width, w, nullptr, eps, y, nullptr, rstd, parallel);
  else Forward<float>(false, x, width, w, nullptr, eps, y, nullptr, rstd, parallel);
}
void RmsNormBackward(const Tensor& grad, const Tensor& x, int64_t width, const Tensor& rstd, const Tensor* w,
                     const Tensor* dx, const Tensor* dw, Parallel& parallel) {
  if (x.dtype == DType::f64) Backward<double>(false, grad, x, width, nullptr, rstd, w, dx, dw, nullptr, parallel);
  else Backward<float>(false, grad, x, width, nullptr, rstd, w, dx, dw, nullptr, parallel);
}

}  // namespace npu::simd
