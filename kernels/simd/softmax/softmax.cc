#include "kernels/simd/softmax/softmax.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/simd/rows/for_rows.h"
#include "kernels/simd/rows/rows.h"

namespace npu::simd {
namespace {

// Adds up piecewise(begin, length) over a row in double.
template <class F>
double Pieces(int64_t n, const F& piecewise) {
  double sum = 0;
  for (int64_t i = 0; i < n; i += kChunk) sum += piecewise(i, std::min(kChunk, n - i));
  return sum;
}

template <class C>
void SoftmaxRow(const C* x, C* out, int64_t n) {
  const RowTable<C>& row = Rows<C>();
  const C top = row.fold[kMax](x, n, 0);
  const double sum = Pieces(n, [&](int64_t i, int64_t len) { return row.exp_sub(x + i, top, out + i, len); });
  row.scale(out, static_cast<C>(1 / sum), out, n);
}

template <class C>
void LogSoftmaxRow(const C* x, C* out, int64_t n) {
  const RowTable<C>& row = Rows<C>();
  const C top = row.fold[kMax](x, n, 0);
  const double sum = Pieces(n, [&](int64_t i, int64_t len) { return row.fold[kSumExp](x + i, len, top); });
  const C log_sum = static_cast<C>(std::log(sum));
  // Two steps: top and log(sum) may differ much in size.
  row.shift(x, top, out, n);
  row.shift(out, log_sum, out, n);
}

template <class C>
void Forward(bool log, const Tensor& x, int dim, const Tensor& out, Parallel& parallel) {
  ForRows<C, 1>({&x}, dim, out, parallel, [log](const C* const* in, C* to, int64_t n) {
    if (log) LogSoftmaxRow(in[0], to, n);
    else SoftmaxRow(in[0], to, n);
  });
}

template <class C>
void Backward(bool log, const Tensor& grad, const Tensor& y, int dim, const Tensor& out, Parallel& parallel) {
  const RowTable<C>& row = Rows<C>();
  ForRows<C, 2>({&grad, &y}, dim, out, parallel, [log, &row](const C* const* in, C* to, int64_t n) {
    const C* g = in[0];
    const C* v = in[1];
    if (log) {
      const double sum = Pieces(n, [&](int64_t i, int64_t len) { return row.fold[kSum](g + i, len, 0); });
      row.log_softmax_grad(g, v, static_cast<C>(sum), to, n);
    } else {
      const double dot = Pieces(n, [&](int64_t i, int64_t len) { return row.dot(g + i, v + i, len); });
      row.softmax_grad(g, v, static_cast<C>(dot), to, n);
    }
  });
}

}  // namespace

void Softmax(const Tensor& x, int dim, const Tensor& out, Parallel& parallel) {
  if (x.dtype == DType::f64) Forward<double>(false, x, dim, out, parallel);
  else Forward<float>(false, x, dim, out, parallel);
}
void LogSoftmax(const Tensor& x, int dim, const Tensor& out, Parallel& parallel) {
  if (x.dtype == DType::f64) Forward<double>(true, x, dim, out, parallel);
  else Forward<float>(true, x, dim, out, parallel);
}
void SoftmaxBackward(const Tensor& grad, const Tensor& y, int dim, const Tensor& out, Parallel& parallel) {
  if (grad.dtype == DType::f64) Backward<double>(false, grad, y, dim, out, parallel);
  else Backward<float>(false, grad, y, dim, out, parallel);
}
void LogSoftmaxBackward(const Tensor& grad, const Tensor& y, int dim, const Tensor& out, Parallel& parallel) {
  if (grad.dtype == DType::f64) Backward<double>(true, grad, y, dim, out, parallel);
  else Backward<float>(true, grad, y, dim, out, parallel);
}

}  // namespace npu::simd
