#include "kernels/simd/norm/batch_norm.h"

#include <algorithm>
#include <optional>

#include "kernels/simd/copy/copy.h"
#include "kernels/simd/reduce/reduce.h"
#include "kernels/simd/rows/convert.h"
#include "kernels/simd/rows/rows.h"
#include "kernels/simd/rows/scratch.h"
#include "kernels/simd/rows/walk.h"

namespace npu::simd {
namespace {

uint32_t AllButChannels(const Tensor& x) { return ((1u << x.rank) - 1) & ~Dims(1); }

// Memory is [batch, space, channels]: channels last, or nothing but batch and channels.
bool ChannelsInnermost(const Tensor& x) {
  if (x.rank == 2) return x.Contiguous();
  Tensor t = x;
  for (int d = 1; d + 1 < x.rank; ++d) {
    t.shape[static_cast<size_t>(d)] = x.shape[static_cast<size_t>(d + 1)];
    t.strides[static_cast<size_t>(d)] = x.strides[static_cast<size_t>(d + 1)];
  }
  t.shape[static_cast<size_t>(x.rank - 1)] = x.shape[1];
  t.strides[static_cast<size_t>(x.rank - 1)] = x.strides[1];
  return t.Contiguous();
}
bool SameStrides(const Tensor& a, const Tensor& b) {
  for (int d = 0; d < a.rank; ++d) {
    const auto i = static_cast<size_t>(d);
    if (a.shape[i] != 1 && a.strides[i] != b.strides[i]) return false;
  }
  return true;
}

struct Layout {
  bool columns;            // channels innermost
  int64_t batch, channels, space;
};
Layout LayoutOf(const Tensor& x) {
  const bool columns = ChannelsInnermost(x) && !(x.rank > 2 && x.Contiguous());
  return {columns, x.shape[0], x.shape[1], ChannelSize(x) / std::max<int64_t>(1, x.shape[0])};
}

// Shares the dense runs of memory: of one channel each, or of all channels (columns).
template <class F>
void Runs(const Layout& l, Parallel& parallel, const F& body) {
  if (l.columns) {
    parallel.For(l.batch * l.space, RowsPerBlock(l.channels), [&](int64_t begin, int64_t end) { body(begin, end); });
  } else {
    parallel.For(l.batch * l.channels, RowsPerBlock(l.space), [&](int64_t begin, int64_t end) { body(begin, end); });
  }
}

template <class C>
std::vector<C> Narrow(const Channels& v) { return std::vector<C>(v.begin(), v.end()); }

template <class C>
void Affine(const Tensor& x_any, const Channels& a, const Channels& b, const Tensor& out_any, Parallel& parallel) {
  std::optional<DenseIn> dense;
  std::optional<DenseOut> dense_out;
  Layout l = LayoutOf(x_any);
  const Tensor* x = &x_any;
  const Tensor* out = &out_any;
  if (!(l.columns && SameStrides(x_any, out_any))) {
    dense.emplace(x_any, parallel);
    dense_out.emplace(out_any, parallel);
    x = &**dense;
    out = &**dense_out;
    l = LayoutOf(*x);
  }
  const std::vector<C> av = Narrow<C>(a), bv = Narrow<C>(b);
  const RowTable<C>& row = Rows<C>();
  const int64_t width = l.columns ? l.channels : l.space;
  Runs(l, parallel, [&](int64_t begin, int64_t end) {
    Scratch<C> in(kChunk), result(kChunk);
    for (int64_t r = begin; r < end; ++r) {
      const auto c = static_cast<size_t>(r % l.channels);
      for (int64_t i = 0; i < width; i += kChunk) {
        const int64_t n = std::min(kChunk, width - i);
        const C* v = Read(At(x->data, x->dtype, r * width + i), x->dtype, 1, n, in.data());
        void* to = At(out->data, out->dtype, r * width + i);
        C* y = Target(to, out->dtype, 1, result.data());
        if (l.columns) row.affine_cols(v, av.data() + i, bv.data() + i, y, n);
        else row.affine(v, av[c], bv[c], y, n);
        Finish(y, n, to, out->dtype, 1);
      }
    }
  });
}

template <class C>
void Mix(const Tensor& g_any, const Channels& a, const Tensor& x_any, const Channels& b, const Channels& c_any,
         const Tensor& out_any, Parallel& parallel) {
  std::optional<DenseIn> dense_g, dense_x;
  std::optional<DenseOut> dense_out;
  Layout l = LayoutOf(x_any);
  const Tensor *g = &g_any, *x = &x_any, *out = &out_any;
  if (!(l.columns && SameStrides(x_any, out_any) && SameStrides(x_any, g_any))) {
    dense_g.emplace(g_any, parallel);
    dense_x.emplace(x_any, parallel);
    dense_out.emplace(out_any, parallel);
    g = &**dense_g;
    x = &**dense_x;
    out = &**dense_out;
    l = LayoutOf(*x);
  }
  const std::vector<C> av = Narrow<C>(a), bv = Narrow<C>(b), cv = Narrow<C>(c_any);
  const RowTable<C>& row = Rows<C>();
  const int64_t width = l.columns ? l.channels : l.space;
  Runs(l, parallel, [&](int64_t begin, int64_t end) {
    Scratch<C> gb(kChunk), xb(kChunk), result(kChunk);
    for (int64_t r = begin; r < end; ++r) {
      const auto c = static_cast<size_t>(r % l.channels);
      for (int64_t i = 0; i < width; i += kChunk) {
        const int64_t n = std::min(kChunk, width - i);
        const C* gr = Read(At(g->data, g->dtype, r * width + i), g->dtype, 1, n, gb.data());
        const C* xr = Read(At(x->data, x->dtype, r * width + i), x->dtype, 1, n, xb.data());
        void* to = At(out->data, out->dtype, r * width + i);
        C* y = Target(to, out->dtype, 1, result.data());
        if (l.columns) row.mix_cols(gr, av.data() + i, xr, bv.data() + i, cv.data() + i, y, n);
        else row.mix(gr, av[c], xr, bv[c], cv[c], y, n);
        Finish(y, n, to, out->dtype, 1);
      }
    }
  });
}

template <class C>
void GradSums(const Tensor& g_any, const Tensor& x_any, const Channels& mean, Channels* sum, Channels* dot,
              Parallel& parallel) {
  std::optional<DenseIn> dense_g, dense_x;
  Layout l = LayoutOf(x_any);
  const Tensor *g = &g_any, *x = &x_any;
  if (!(l.columns && SameStrides(x_any, g_any))) {
    dense_g.emplace(g_any, parallel);
    dense_x.emplace(x_any, parallel);
    g = &**dense_g;
    x = &**dense_x;
    l = LayoutOf(*x);
  }
  const std::vector<C> mv = Narrow<C>(mean);
  const RowTable<C>& row = Rows<C>();
  sum->assign(static_cast<size_t>(l.channels), 0);
  dot->assign(static_cast<size_t>(l.channels), 0);
  if (l.columns) {
    const int64_t rows = l.batch * l.space;
    const int64_t block = RowsPerBlock(l.channels);
    const int64_t blocks = (rows + block - 1) / block;
    Scratch<C> sums(blocks * l.channels), dots(blocks * l.channels);
    parallel.For(rows, block, [&](int64_t begin, int64_t end) {
      Scratch<C> gb(kChunk), xb(kChunk);
      C* s = sums.data() + begin / block * l.channels;
      C* t = dots.data() + begin / block * l.channels;
      std::fill(s, s + l.channels, C{0});
      std::fill(t, t + l.channels, C{0});
      for (int64_t r = begin; r < end; ++r) {
        for (int64_t i = 0; i < l.channels; i += kChunk) {
          const int64_t n = std::min(kChunk, l.channels - i);
          const C* gr = Read(At(g->data, g->dtype, r * l.channels + i), g->dtype, 1, n, gb.data());
          const C* xr = Read(At(x->data, x->dtype, r * l.channels + i), x->dtype, 1, n, xb.data());
          row.fold_into[kSum](s + i, gr, nullptr, n);
          row.dot_centered_into(t + i, gr, xr, mv.data() + i, n);
        }
      }
    });
    for (int64_t k = 0; k < blocks; ++k) {
      for (int64_t c = 0; c < l.channels; ++c) {
        (*sum)[static_cast<size_t>(c)] += static_cast<double>(sums[k * l.channels + c]);
        (*dot)[static_cast<size_t>(c)] += static_cast<double>(dots[k * l.channels + c]);
      }
    }
    return;
  }
  Scratch<double> sums(l.batch * l.channels), dots(l.batch * l.channels);
  Runs(l, parallel, [&](int64_t begin, int64_t end) {
    Scratch<C> gb(kChunk), xb(kChunk);
    for (int64_t r = begin; r < end; ++r) {
      double s = 0, t = 0;
      for (int64_t i = 0; i < l.space; i += kChunk) {
        const int64_t n = std::min(kChunk, l.space - i);
        const C* gr = Read(At(g->data, g->dtype, r * l.space + i), g->dtype, 1, n, gb.data());
        const C* xr = Read(At(x->data, x->dtype, r * l.space + i), x->dtype, 1, n, xb.data());
        s += row.fold[kSum](gr, n, 0);
        t += row.dot_centered(gr, xr, mv[static_cast<size_t>(r % l.channels)], n);
      }
      sums[r] = s;
      dots[r] = t;
    }
  });
  for (int64_t r = 0; r < l.batch * l.channels; ++r) {
    (*sum)[static_cast<size_t>(r % l.channels)] += sums[r];
    (*dot)[static_cast<size_t>(r % l.channels)] += dots[r];
  }
}

void FoldChannels(const Tensor& x, Fold fold, const double* centers, Channels* out, Parallel& parallel) {
  out->resize(static_cast<size_t>(x.shape[1]));
  if (x.dtype == DType::f64) FoldTo<double>(x, AllButChannels(x), fold, centers, out->data(), parallel);
  else FoldTo<float>(x, AllButChannels(x), fold, centers, out->data(), parallel);
}

}  // namespace

int64_t ChannelCount(const Tensor& x) { return x.shape[1]; }
int64_t ChannelSize(const Tensor& x) { return ReducedCount(x, AllButChannels(x)); }

void ChannelMoments(const Tensor& x, Channels* mean, Channels* variance, Parallel& parallel) {
  const double n = static_cast<double>(ChannelSize(x));
  FoldChannels(x, kSum, nullptr, mean, parallel);
  for (double& m : *mean) m /= n;
  // Centered at the f32 mean; the difference to the exact mean is put right afterwards.
  FoldChannels(x, kSumCentered, mean->data(), variance, parallel);
  for (size_t c = 0; c < mean->size(); ++c) {
    const double off = x.dtype == DType::f64 ? 0 : (*mean)[c] - static_cast<double>(static_cast<float>((*mean)[c]));
    const double v = (*variance)[c] / n - off * off;
    (*variance)[c] = v < 0 ? 0 : v;
  }
}

void ChannelSums(const Tensor& x, Channels* sum, Channels* square_sum, Parallel& parallel) {
  FoldChannels(x, kSum, nullptr, sum, parallel);
  FoldChannels(x, kSumSquare, nullptr, square_sum, parallel);
}

void ChannelGradSums(const Tensor& grad, const Tensor& x, const Channels& mean, Channels* sum, Channels* dot,
                     Parallel& parallel) {
  if (x.dtype == DType::f64) GradSums<double>(grad, x, mean, sum, dot, parallel);
  else GradSums<float>(grad, x, mean, sum, dot, parallel);
}
void ChannelAffine(const Tensor& x, const Channels& a, const Channels& b, const Tensor& out, Parallel& parallel) {
  if (x.dtype == DType::f64) Affine<double>(x, a, b, out, parallel);
  else Affine<float>(x, a, b, out, parallel);
}
void ChannelMix(const Tensor& grad, const Channels& a, const Tensor& x, const Channels& b, const Channels& c,
                const Tensor& out, Parallel& parallel) {
  if (x.dtype == DType::f64) Mix<double>(grad, a, x, b, c, out, parallel);
  else Mix<float>(grad, a, x, b, c, out, parallel);
}

}  // namespace npu::simd
