#include "kernels/simd/optim/optim.h"

#include <algorithm>
#include <cmath>

#include "kernels/simd/copy/copy.h"
#include "kernels/simd/rows/convert.h"
#include "kernels/simd/optim/optim_rows.h"
#include "kernels/simd/rows/walk.h"

namespace npu::simd {
namespace {

// Dense pieces of n elements of a tensor, converted.
template <class C>
struct Piece {
  alignas(64) C buffer[kChunk];
  C* Open(const Tensor& t, int64_t at, int64_t n) {
    void* p = At(t.data, t.dtype, at);
    C* row = Target(p, t.dtype, 1, buffer);
    if (row == buffer) Load(p, t.dtype, 1, n, buffer);
    return row;
  }
  void Close(const C* row, const Tensor& t, int64_t at, int64_t n) { Finish(row, n, At(t.data, t.dtype, at), t.dtype, 1); }
};

template <class C>
void AdamAny(const AdamStep& s, const Tensor& w_any, const Tensor& grad_any, const Tensor& m_any, const Tensor& v_any,
             const Tensor* max_any, Parallel& parallel) {
  const DenseOut w(w_any, parallel, true), m(m_any, parallel, true), v(v_any, parallel, true);
  const DenseIn grad(grad_any, parallel);
  std::optional<DenseOut> max_v;
  if (s.amsgrad && max_any != nullptr) max_v.emplace(*max_any, parallel, true);
  const double correction1 = 1 - std::pow(s.beta1, s.step), correction2 = 1 - std::pow(s.beta2, s.step);
  const AdamRow<C> row{static_cast<C>(s.beta1), static_cast<C>(s.beta2), static_cast<C>(1 - s.beta1), static_cast<C>(1 - s.beta2),
                       static_cast<C>(s.lr / correction1), static_cast<C>(1 / std::sqrt(correction2)), static_cast<C>(s.eps),
                       static_cast<C>(s.decoupled ? 1 - s.lr * s.weight_decay : 1),
                       static_cast<C>(s.decoupled ? 0 : s.weight_decay),
                       static_cast<C>((s.maximize ? -1 : 1) / s.grad_scale)};
  const int64_t n = w->Numel();
  parallel.For(n, kChunk * 8, [&](int64_t begin, int64_t end) {
    Piece<C> wp, gp, mp, vp, xp;
    for (int64_t i = begin; i < end; i += kChunk) {
      const int64_t len = std::min(kChunk, end - i);
      C *wr = wp.Open(*w, i, len), *mr = mp.Open(*m, i, len), *vr = vp.Open(*v, i, len);
      C* xr = max_v ? xp.Open(**max_v, i, len) : nullptr;
      const C* gr = Read(At(grad->data, grad->dtype, i), grad->dtype, 1, len, gp.buffer);
      OptimRows<C>().adam(row, wr, gr, mr, vr, xr, len);
      wp.Close(wr, *w, i, len);
      mp.Close(mr, *m, i, len);
      vp.Close(vr, *v, i, len);
      if (max_v) xp.Close(xr, **max_v, i, len);
    }
  });
}

template <class C>
void SgdAny(const SgdStep& s, const Tensor& w_any, const Tensor& grad_any, const Tensor* buffer_any, Parallel& parallel) {
  const DenseOut w(w_any, parallel, true);
  const DenseIn grad(grad_any, parallel);
  std::optional<DenseOut> buffer;
  if (s.momentum != 0 && buffer_any != nullptr) buffer.emplace(*buffer_any, parallel, true);
  const SgdRow<C> row{static_cast<C>((s.maximize ? -1 : 1) / s.grad_scale), static_cast<C>(s.weight_decay),
                      static_cast<C>(s.first_step ? 0 : s.momentum), static_cast<C>(s.first_step ? 1 : 1 - s.dampening),
                      static_cast<C>(s.momentum), static_cast<C>(s.lr), s.nesterov};
  parallel.For(w->Numel(), kChunk * 8, [&](int64_t begin, int64_t end) {
    Piece<C> wp, gp, bp;
    for (int64_t i = begin; i < end; i += kChunk) {
      const int64_t len = std::min(kChunk, end - i);
      C* wr = wp.Open(*w, i, len);
      C* br = buffer ? bp.Open(**buffer, i, len) : nullptr;
      // The first step does not look at what the buffer held before.
      if (br != nullptr && s.first_step) std::fill(br, br + len, C{0});
      OptimRows<C>().sgd(row, wr, Read(At(grad->data, grad->dtype, i), grad->dtype, 1, len, gp.buffer), br, len);
      wp.Close(wr, *w, i, len);
      if (buffer) bp.Close(br, **buffer, i, len);
    }
  });
}

}  // namespace

void Adam(const AdamStep& s, const Tensor& w, const Tensor& grad, const Tensor& m, const Tensor& v, const Tensor* max_v,
          Parallel& parallel) {
  if (w.dtype == DType::f64) AdamAny<double>(s, w, grad, m, v, max_v, parallel);
  else AdamAny<float>(s, w, grad, m, v, max_v, parallel);
}
void Sgd(const SgdStep& s, const Tensor& w, const Tensor& grad, const Tensor* momentum_buffer, Parallel& parallel) {
  if (w.dtype == DType::f64) SgdAny<double>(s, w, grad, momentum_buffer, parallel);
  else SgdAny<float>(s, w, grad, momentum_buffer, parallel);
}

}  // namespace npu::simd
