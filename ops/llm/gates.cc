// Gated activations and the fused addition with RMS norm. Plain loops in the compute type.
#include <cmath>
#include <numbers>

#include "gen/abi/ops.h"
#include "ops/common/dims.h"
#include "ops/common/values.h"

namespace npu::ops {

using namespace rule;  // NOLINT(google-build-using-namespace)

namespace {

size_t U(int64_t i) { return static_cast<size_t>(i); }

struct Halves {
  int64_t outer = 1, half = 0;  // elements of a half of one slice
  Halves(const Tensor& x, int64_t dim) {
    const int d = WrapDim(dim, x.rank);
    half = 1;
    for (int k = 0; k < x.rank; ++k) (k < d ? outer : half) *= k == d ? x.shape[U(k)] / 2 : x.shape[U(k)];
  }
};

Status WantHalf(const Planning& p, const Tensor& x, int64_t dim, TensorToken out) {
  const int d = WrapDim(dim, x.rank);
  if (x.rank == 0 || d < 0 || x.shape[U(d)] % 2 != 0) {
    return p.Refuse("dim is {} of shape {}.", dim, ShapeText(x.Shape())).Remedy("Name a dimension of even size.");
  }
  Dims want = DimsOf(x);
  want.size[U(d)] /= 2;
  return WantShape(p, out, want, "it is half of the input");
}

template <class T>
T Sigmoid(T x) {
  return 1 / (1 + std::exp(-x));
}

template <class T>
T Gelu(T x, bool tanh) {
  if (!tanh) return T(0.5) * x * (1 + std::erf(x / std::numbers::sqrt2_v<T>));
  const T inner = T(0.7978845608028654) * (x + T(0.044715) * x * x * x);
  return T(0.5) * x * (1 + std::tanh(inner));
}
template <class T>
T GeluSlope(T x, bool tanh) {
  if (!tanh)
    return T(0.5) * (1 + std::erf(x / std::numbers::sqrt2_v<T>)) + x * std::exp(-x * x / 2) * T(0.3989422804014327);
  const T inner = T(0.7978845608028654) * (x + T(0.044715) * x * x * x), t = std::tanh(inner);
  return T(0.5) * (1 + t) + T(0.5) * x * (1 - t * t) * T(0.7978845608028654) * (1 + 3 * T(0.044715) * x * x);
}

}  // namespace

using abi::SwiGlu, abi::SwiGluGrad, abi::GeGluV3, abi::GeGluV3Backward;
// silu(first half) · second half
NPU_OP(SwiGlu) = Op<SwiGlu>()
                     .Rules(FloatTensors(SwiGlu::x, SwiGlu::out), AnyShape(SwiGlu::out),
                            SameDtype(SwiGlu::x, SwiGlu::out))
                     .Uses(SwiGlu::dim)
                     .Tolerance("accumulated")
                     .Like("torch.nn.functional.silu(x.chunk(2, dim)[0]) * x.chunk(2, dim)[1]")
                     .Prepares([](Planning& p) {
                       return WantHalf(p, p.args[SwiGlu::x], p.args[SwiGlu::dim], SwiGlu::out);
                     })
                     .Does([](const Call& c) -> Status {
                       const Halves h(c.args[SwiGlu::x], c.args[SwiGlu::dim]);
                       return WithFloat(c.args[SwiGlu::x].dtype, [&]<class T>() -> Status {
                         const Values<T> x(c.args[SwiGlu::x], c.parallel);
                         Results<T> out(c.args[SwiGlu::out], c.parallel);
                         c.parallel.For(h.outer, Grain(h.half * 8), [&](int64_t begin, int64_t end) {
                           for (int64_t o = begin; o < end; ++o)
                             for (int64_t i = 0; i < h.half; ++i) {
                               const T a = x[o * 2 * h.half + i], b = x[(o * 2 + 1) * h.half + i];
                               out[o * h.half + i] = a * Sigmoid(a) * b;
                             }
                         });
                         return {};
                       });
                     });
NPU_OP(SwiGluGrad) = Op<SwiGluGrad>()
                         .Rules(FloatTensors(SwiGluGrad::yGrad, SwiGluGrad::x, SwiGluGrad::out),
                                SameShape(SwiGluGrad::x, SwiGluGrad::out))
                         .Uses(SwiGluGrad::dim)
                         .Tolerance("accumulated")
                         .Like("swiglu_backward(yGrad, x, dim)")
                         .Prepares([](Planning& p) {
                           return WantHalf(p, p.args[SwiGluGrad::x], p.args[SwiGluGrad::dim], SwiGluGrad::yGrad);
                         })
                         .Does([](const Call& c) -> Status {
                           const Halves h(c.args[SwiGluGrad::x], c.args[SwiGluGrad::dim]);
                           return WithFloat(c.args[SwiGluGrad::x].dtype, [&]<class T>() -> Status {
                             const Values<T> x(c.args[SwiGluGrad::x], c.parallel),
                                 dy(c.args[SwiGluGrad::yGrad], c.parallel);
                             Results<T> dx(c.args[SwiGluGrad::out], c.parallel);
                             c.parallel.For(h.outer, Grain(h.half * 8), [&](int64_t begin, int64_t end) {
                               for (int64_t o = begin; o < end; ++o)
                                 for (int64_t i = 0; i < h.half; ++i) {
                                   const int64_t first = o * 2 * h.half + i, second = first + h.half;
                                   const T a = x[first], b = x[second], s = Sigmoid(a), g = dy[o * h.half + i];
                                   dx[first] = g * b * s * (1 + a * (1 - s));
                                   dx[second] = g * a * s;
                                 }
                             });
                             return {};
                           });
                         });
// approximate: 0 erf, 1 tanh.
NPU_OP(GeGluV3) = Op<GeGluV3>()
                      .Rules(FloatTensors(GeGluV3::self, GeGluV3::out, GeGluV3::outGelu),
                             AnyShapes(GeGluV3::out, GeGluV3::outGelu))
                      .Uses(GeGluV3::dim, GeGluV3::approximate, GeGluV3::activateLeft)
                      .Tolerance("accumulated")
                      .Like("geglu(self, dim, approximate, activateLeft)")
                      .Prepares([](Planning& p) -> Status {
                        NPU_TRY(WantHalf(p, p.args[GeGluV3::self], p.args[GeGluV3::dim], GeGluV3::out));
                        return WantHalf(p, p.args[GeGluV3::self], p.args[GeGluV3::dim], GeGluV3::outGelu);
                      })
                      .Does([](const Call& c) -> Status {
                        const Halves h(c.args[GeGluV3::self], c.args[GeGluV3::dim]);
                        const bool left = c.args[GeGluV3::activateLeft], tanh = c.args[GeGluV3::approximate] == 1;
                        return WithFloat(c.args[GeGluV3::self].dtype, [&]<class T>() -> Status {
                          const Values<T> x(c.args[GeGluV3::self], c.parallel);
                          Results<T> out(c.args[GeGluV3::out], c.parallel), gelu(c.args[GeGluV3::outGelu], c.parallel);
                          for (int64_t o = 0; o < h.outer; ++o)
                            for (int64_t i = 0; i < h.half; ++i) {
                              const T first = x[o * 2 * h.half + i], second = x[(o * 2 + 1) * h.half + i];
                              const T active = Gelu(left ? first : second, tanh);
                              gelu[o * h.half + i] = active;
                              out[o * h.half + i] = active * (left ? second : first);
                            }
                          return {};
                        });
                      });
NPU_OP(GeGluV3Backward) = Op<GeGluV3Backward>()
                              .Rules(FloatTensors(GeGluV3Backward::gradOutput, GeGluV3Backward::self,
                                                  GeGluV3Backward::gelu, GeGluV3Backward::gradInput),
                                     SameShape(GeGluV3Backward::self, GeGluV3Backward::gradInput),
                                     SameShape(GeGluV3Backward::gradOutput, GeGluV3Backward::gelu))
                              .Uses(GeGluV3Backward::dim, GeGluV3Backward::approximate, GeGluV3Backward::activateLeft)
                              .Tolerance("accumulated")
                              .Like("geglu_backward(gradOutput, self, gelu, dim, approximate, activateLeft)")
                              .Prepares([](Planning& p) {
                                return WantHalf(p, p.args[GeGluV3Backward::self], p.args[GeGluV3Backward::dim],
                                                GeGluV3Backward::gradOutput);
                              })
                              .Does([](const Call& c) -> Status {
                                using B = GeGluV3Backward;
                                const Halves h(c.args[B::self], c.args[B::dim]);
                                const bool left = c.args[B::activateLeft], tanh = c.args[B::approximate] == 1;
                                return WithFloat(c.args[B::self].dtype, [&]<class T>() -> Status {
                                  const Values<T> x(c.args[B::self], c.parallel), gelu(c.args[B::gelu], c.parallel),
                                      dy(c.args[B::gradOutput], c.parallel);
                                  Results<T> dx(c.args[B::gradInput], c.parallel);
                                  for (int64_t o = 0; o < h.outer; ++o)
                                    for (int64_t i = 0; i < h.half; ++i) {
                                      const int64_t at = o * h.half + i, first = o * 2 * h.half + i,
                                                    second = first + h.half, active = left ? first : second,
                                                    plain = left ? second : first;
                                      dx[plain] = dy[at] * gelu[at];
                                      dx[active] = dy[at] * x[plain] * GeluSlope(x[active], tanh);
                                    }
                                  return {};
                                });
                              });

namespace {

// x = a + b, rstd = 1 / sqrt(mean(x²) + eps) over gamma's dimensions, y = x · rstd · gamma.
Status WantNormed(const Planning& p, const Tensor& x, const Tensor& gamma, TensorToken rstd) {
  if (gamma.rank < 1 || gamma.rank > x.rank || !npu::SameShape(gamma.Shape(), x.Shape().last(U(gamma.rank)))) {
    return p.Refuse("gamma has shape {} for rows of {}.", ShapeText(gamma.Shape()), ShapeText(x.Shape()))
        .Remedy("It has the last dimensions of the sum.");
  }
  Dims want = DimsOf(x);
  for (int d = x.rank - gamma.rank; d < x.rank; ++d) want.size[U(d)] = 1;
  return WantShape(p, rstd, want, "there is one for each row");
}

Status AddAndNorm(const Call& c, const Tensor& a, const Tensor& b, const Tensor& gamma, double eps, const Tensor& y,
                  const Tensor& rstd, const Tensor& x) {
  return WithFloat(a.dtype, [&]<class T>() -> Status {
    const Values<T> first(a, c.parallel), second(b, c.parallel), scale(gamma, c.parallel);
    Results<T> sum(x, c.parallel), out(y, c.parallel), spread(rstd, c.parallel);
    const int64_t n = scale.size();
    c.parallel.For(n == 0 ? 0 : first.size() / n, Grain(n), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        double squares = 0;
        for (int64_t i = r * n; i < (r + 1) * n; ++i) {
          const T v = first[i] + second[i];
          sum[i] = v;
          squares += static_cast<double>(v) * static_cast<double>(v);
        }
        const T factor = static_cast<T>(1 / std::sqrt(squares / static_cast<double>(n) + eps));
        spread[r] = factor;
        for (int64_t i = 0; i < n; ++i) out[r * n + i] = sum[r * n + i] * factor * scale[i];
      }
    });
    return {};
  });
}

}  // namespace

using abi::AddRmsNorm, abi::InplaceAddRmsNorm;
NPU_OP(AddRmsNorm) = Op<AddRmsNorm>()
                         .Rules(FloatTensors(AddRmsNorm::x1, AddRmsNorm::x2, AddRmsNorm::gamma, AddRmsNorm::yOut,
                                             AddRmsNorm::rstdOut, AddRmsNorm::xOut),
                                SameShape(AddRmsNorm::x1, AddRmsNorm::x2), SameShape(AddRmsNorm::x1, AddRmsNorm::yOut),
                                SameShape(AddRmsNorm::x1, AddRmsNorm::xOut), AnyShape(AddRmsNorm::rstdOut))
                         .Uses(AddRmsNorm::epsilon)
                         .Tolerance("accumulated")
                         .Like("add_rms_norm(x1, x2, gamma, epsilon)")
                         .Prepares([](Planning& p) {
                           return WantNormed(p, p.args[AddRmsNorm::x1], p.args[AddRmsNorm::gamma], AddRmsNorm::rstdOut);
                         })
                         .Does([](const Call& c) {
                           using A = AddRmsNorm;
                           return AddAndNorm(c, c.args[A::x1], c.args[A::x2], c.args[A::gamma], c.args[A::epsilon],
                                             c.args[A::yOut], c.args[A::rstdOut], c.args[A::xOut]);
                         });
// x1 becomes the norm, x2 the sum.
NPU_OP(InplaceAddRmsNorm) = Op<InplaceAddRmsNorm>()
                                .Rules(FloatTensors(InplaceAddRmsNorm::x1Ref, InplaceAddRmsNorm::x2Ref,
                                                    InplaceAddRmsNorm::gamma, InplaceAddRmsNorm::rstdOut),
                                       SameShape(InplaceAddRmsNorm::x1Ref, InplaceAddRmsNorm::x2Ref),
                                       AnyShape(InplaceAddRmsNorm::rstdOut))
                                .Uses(InplaceAddRmsNorm::epsilon)
                                .Tolerance("accumulated")
                                .Like("add_rms_norm(x1Ref, x2Ref, gamma, epsilon)")
                                .Prepares([](Planning& p) {
                                  return WantNormed(p, p.args[InplaceAddRmsNorm::x1Ref],
                                                    p.args[InplaceAddRmsNorm::gamma], InplaceAddRmsNorm::rstdOut);
                                })
                                .Does([](const Call& c) {
                                  using A = InplaceAddRmsNorm;
                                  return AddAndNorm(c, c.args[A::x1Ref], c.args[A::x2Ref], c.args[A::gamma],
                                                    c.args[A::epsilon], c.args[A::x1Ref], c.args[A::rstdOut],
                                                    c.args[A::x2Ref]);
                                });

}  // namespace npu::ops
