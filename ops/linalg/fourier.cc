// Short-time Fourier transform: frames of the signal times a matrix of cosines and one of sines.
#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <vector>

#include "gen/abi/ops.h"
#include "kernels/gemm/gemm.h"
#include "ops/common/dims.h"
#include "ops/common/values.h"

namespace npu::ops {

using namespace rule;  // NOLINT(google-build-using-namespace)
using abi::Stft;

namespace {

// self is [length] or [batch, length]; the result [batch, frequencies, frames], complex or with the parts behind.
struct Frames {
  int64_t batch, length, count, frequencies;
};
Frames FramesOf(const Args& a) {
  const Tensor& x = a[Stft::self];
  const int64_t n = a[Stft::nFft], length = SizeAt(x, 0);
  return {x.rank == 2 ? x.shape[0] : 1, length, (length - n) / a[Stft::hopLength] + 1,
          a[Stft::onesided] ? n / 2 + 1 : n};
}

}  // namespace

NPU_OP(Stft) =
    Op<Stft>()
        .Rules(DtypeIn(Stft::self, TypeSet{DType::f32, DType::f64}),
               DtypeIn(Stft::windowOptional, TypeSet{DType::f32, DType::f64}), AnyShape(Stft::out),
               DtypeIn(Stft::out, TypeSet{DType::f32, DType::f64, DType::c64, DType::c128}))
        .Uses(Stft::nFft, Stft::hopLength, Stft::winLength, Stft::normalized, Stft::onesided, Stft::returnComplex)
        .Tolerance("accumulated")
        .Like(
            "torch.stft(self, nFft, hopLength, winLength, windowOptional, False, 'reflect', normalized, onesided, "
            "True)")
        .Prepares([](Planning& p) -> Status {
          const Tensor &x = p.args[Stft::self], &out = p.args[Stft::out];
          const int64_t n = p.args[Stft::nFft], hop = p.args[Stft::hopLength], win = p.args[Stft::winLength];
          if (x.rank < 1 || x.rank > 2)
            return p.Refuse("self has shape {}.", ShapeText(x.Shape())).Remedy("It is a signal or a batch of them.");
          if (n < 1 || n > SizeAt(x, 0) || hop < 1 || win < 1 || win > n)
            return p
                .Refuse("nFft is {}, hopLength {}, winLength {} and the signal has {} values.", n, hop, win,
                        SizeAt(x, 0))
                .Remedy("All are at least 1; nFft is no longer than the signal and winLength no longer than nFft.");
          if (const Tensor* w = p.args[Stft::windowOptional]; w != nullptr && w->Numel() != win)
            return p.Refuse("windowOptional has shape {}, but winLength is {}.", ShapeText(w->Shape()), win)
                .Remedy("It has winLength values.");
          const Frames f = FramesOf(p.args);
          Dims want;
          if (x.rank == 2) want.Push(f.batch);
          want.Push(f.frequencies);
          want.Push(f.count);
          if (!IsComplex(out.dtype)) want.Push(2);
          return WantShape(p, Stft::out, want, "it has the frequencies of all frames");
        })
        .Does([](const Call& c) -> Status {
          const Tensor& out = c.args[Stft::out];
          const Frames f = FramesOf(c.args);
          const int64_t n = c.args[Stft::nFft], hop = c.args[Stft::hopLength], win = c.args[Stft::winLength];
          const double norm = c.args[Stft::normalized] ? 1 / std::sqrt(static_cast<double>(n)) : 1;
          return WithFloat(c.args[Stft::self].dtype, [&]<class T>() -> Status {
            const Values<T> x(c.args[Stft::self], c.parallel);
            std::vector<double> window(static_cast<size_t>(n), 0.0);
            std::optional<Values<double>> given;
            if (c.args[Stft::windowOptional] != nullptr) given.emplace(*c.args[Stft::windowOptional], c.parallel);
            for (int64_t i = 0; i < win; ++i)
              window[static_cast<size_t>((n - win) / 2 + i)] = given ? (*given)[i] : 1.0;
            // Column 2f is the cosine of frequency f, column 2f + 1 minus its sine.
            const int64_t columns = 2 * f.frequencies;
            simd::Scratch<T> waves(n * columns), result(f.batch * f.count * columns);
            c.parallel.For(n, Grain(columns), [&](int64_t begin, int64_t end) {
              for (int64_t i = begin; i < end; ++i) {
                for (int64_t k = 0; k < f.frequencies; ++k) {
                  const double angle = 2 * std::numbers::pi * static_cast<double>(i * k % n) / static_cast<double>(n);
                  const double w = window[static_cast<size_t>(i)] * norm;
                  waves[i * columns + 2 * k] = static_cast<T>(w * std::cos(angle));
                  waves[i * columns + 2 * k + 1] = static_cast<T>(-w * std::sin(angle));
                }
              }
            });
            gemm::Problem p;
            const DType t = TypeOf<T>();
            p.m = f.count, p.n = columns, p.k = n;
            p.batch_rank = 1;
            p.batch_shape[0] = f.batch;
            p.a = {const_cast<T*>(x.data()), t, hop, 1, {f.length}};
            p.b = {waves.data(), t, columns, 1, {0}};
            p.c = {result.data(), t, columns, 1, {f.count * columns}};
            NPU_TRY(gemm::Gemm(c.parallel, p));
            // [batch, frames, frequencies, parts] seen as [batch, frequencies, frames, parts].
            Tensor from = MakeContiguous(result.data(), t, std::array<int64_t, 4>{f.batch, f.frequencies, f.count, 2});
            from.strides[0] = f.count * columns, from.strides[1] = 2, from.strides[2] = columns;
            Tensor to = out;
            if (IsComplex(out.dtype)) {
              to.dtype = out.dtype == DType::c64 ? DType::f32 : DType::f64;
              for (int d = 0; d < to.rank; ++d) to.strides[static_cast<size_t>(d)] *= 2;
              to.shape[static_cast<size_t>(to.rank)] = 2;
              to.strides[static_cast<size_t>(to.rank++)] = 1;
            }
            if (to.rank == 3) {  // one signal
              std::copy(from.shape.begin() + 1, from.shape.begin() + 4, from.shape.begin());
              std::copy(from.strides.begin() + 1, from.strides.begin() + 4, from.strides.begin());
              from.rank = 3;
            }
            simd::Copy(from, to, c.parallel);
            return {};
          });
        });

}  // namespace npu::ops
