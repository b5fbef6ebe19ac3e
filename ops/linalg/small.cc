// Cross and outer products, traces: plain loops.
#include <complex>
#include <vector>

#include "gen/abi/ops.h"
#include "ops/common/dims.h"
#include "ops/common/values.h"

namespace npu::ops {

using namespace rule;  // NOLINT(google-build-using-namespace)

namespace {

size_t U(int64_t i) { return static_cast<size_t>(i); }

// f.operator()<T>() for floats, complex numbers and integers.
template <class F>
Status WithAny(DType t, F&& f) {
  if (IsFloat(t) || IsComplex(t)) return WithFloatOrComplex(t, f);
  return f.template operator()<int64_t>();
}

template <class T>
T NumberOf(const Scalar* s, int64_t missing) {
  if (s == nullptr) return static_cast<T>(missing);
  if constexpr (std::is_same_v<T, int64_t>)
    return s->i;
  else if constexpr (std::is_floating_point_v<T>)
    return static_cast<T>(s->re);
  else
    return T(static_cast<typename T::value_type>(s->re), static_cast<typename T::value_type>(s->im));
}

Status WantOuter(const Planning& p, const Tensor& self, TensorToken self_name, const Tensor& a, const Tensor& b,
                 TensorToken out) {
  if (a.rank != 1 || b.rank != 1)
    return p.Refuse("vec1 has {} dimensions and vec2 {}.", a.rank, b.rank).Remedy("Both are vectors.");
  Dims want;
  want.Push(a.shape[0]);
  want.Push(b.shape[0]);
  if (!npu::ExpandsTo(self.Shape(), want.Span())) {
    return p.Refuse("{} has shape {}.", p.ParamName(self_name), ShapeText(self.Shape()))
        .Remedy("It must expand to {}.", ShapeText(want.Span()));
  }
  return WantShape(p, out, want, "that is not the shape of the outer product");
}

Status RunOuter(const Call& c, const Tensor& self, const Tensor& a, const Tensor& b, const Scalar* beta,
                const Scalar* alpha, const Tensor& out) {
  return WithAny(out.dtype, [&]<class T>() -> Status {
    const T factor = NumberOf<T>(alpha, 1), keep = NumberOf<T>(beta, 1);
    const Values<T> x(a, c.parallel), y(b, c.parallel), old(Expanded(self, out.Shape()), c.parallel);
    Results<T> to(out, c.parallel);
    for (int64_t i = 0; i < x.size(); ++i) {
      const T f = factor * x[i];
      for (int64_t j = 0; j < y.size(); ++j) {
        const int64_t at = i * y.size() + j;
        to[at] = keep == T{0} ? f * y[j] : keep * old[at] + f * y[j];
      }
    }
    return {};
  });
}

}  // namespace

using abi::Addr, abi::InplaceAddr, abi::Trace, abi::LinalgCross;
NPU_OP(Addr) = Op<Addr>()
                   .Rules(DtypeIn(Addr::out, kReals | kComplexes), Castable(Addr::self, Addr::out),
                          Castable(Addr::vec1, Addr::out), Castable(Addr::vec2, Addr::out), AnyShape(Addr::out))
                   .Uses(Addr::betaOptional, Addr::alphaOptional)
                   .Tolerance("accumulated")
                   .Like("torch.addr(self, vec1, vec2, beta=betaOptional, alpha=alphaOptional)")
                   .Prepares([](Planning& p) {
                     return WantOuter(p, p.args[Addr::self], Addr::self, p.args[Addr::vec1], p.args[Addr::vec2],
                                      Addr::out);
                   })
                   .Does([](const Call& c) {
                     return RunOuter(c, c.args[Addr::self], c.args[Addr::vec1], c.args[Addr::vec2],
                                     c.args[Addr::betaOptional], c.args[Addr::alphaOptional], c.args[Addr::out]);
                   });
NPU_OP(InplaceAddr) = Op<InplaceAddr>()
                          .Rules(DtypeIn(InplaceAddr::selfRef, kReals | kComplexes),
                                 Castable(InplaceAddr::vec1, InplaceAddr::selfRef),
                                 Castable(InplaceAddr::vec2, InplaceAddr::selfRef))
                          .Uses(InplaceAddr::betaOptional, InplaceAddr::alphaOptional)
                          .Tolerance("accumulated")
                          .Like("selfRef.addr_(vec1, vec2, beta=betaOptional, alpha=alphaOptional)")
                          .Prepares([](Planning& p) {
                            using A = InplaceAddr;
                            return WantOuter(p, p.args[A::selfRef], A::selfRef, p.args[A::vec1], p.args[A::vec2],
                                             A::selfRef);
                          })
                          .Does([](const Call& c) {
                            using A = InplaceAddr;
                            return RunOuter(c, c.args[A::selfRef], c.args[A::vec1], c.args[A::vec2],
                                            c.args[A::betaOptional], c.args[A::alphaOptional], c.args[A::selfRef]);
                          });
NPU_OP(Trace) = Op<Trace>()
                    .Rules(DtypeIn(Trace::self, kReals | kComplexes), RankIs(Trace::self, 2),
                           ReducedAll(Trace::self, Trace::out), DtypeIn(Trace::out, kNumbers | kComplexes))
                    .Tolerance("accumulated")
                    .Like("torch.trace(self)")
                    .Does([](const Call& c) -> Status {
                      const Tensor& self = c.args[Trace::self];
                      Tensor diagonal = self;
                      diagonal.rank = 1;
                      diagonal.shape[0] = std::min(self.shape[0], self.shape[1]);
                      diagonal.strides[0] = self.strides[0] + self.strides[1];
                      return WithAny(c.args[Trace::out].dtype, [&]<class T>() -> Status {
                        const Values<T> x(diagonal, c.parallel);
                        Results<T> out(c.args[Trace::out], c.parallel);
                        out[0] = T{0};
                        for (int64_t i = 0; i < x.size(); ++i) out[0] += x[i];
                        return {};
                      });
                    });
NPU_OP(LinalgCross) = Op<LinalgCross>()
                          .Rules(DtypeIn(LinalgCross::out, kNumbers | kComplexes),
                                 Broadcast(LinalgCross::self, LinalgCross::other, LinalgCross::out),
                                 SameDtype(LinalgCross::self, LinalgCross::out),
                                 SameDtype(LinalgCross::other, LinalgCross::out),
                                 DimInRange(LinalgCross::dim, LinalgCross::out))
                          .Tolerance("accumulated")
                          .Like("torch.linalg.cross(self, other, dim=dim)")
                          .Prepares([](Planning& p) -> Status {
                            const Tensor& out = p.args[LinalgCross::out];
                            const int d = WrapDim(p.args[LinalgCross::dim], out.rank);
                            if (out.rank > 0 && out.shape[U(d)] == 3) return {};
                            return p.Refuse("dim {} of out {} is not of size 3.", d, ShapeText(out.Shape()))
                                .Remedy("Cross products are of three components.");
                          })
                          .Does([](const Call& c) -> Status {
                            const Tensor& out = c.args[LinalgCross::out];
                            const int d = WrapDim(c.args[LinalgCross::dim], out.rank);
                            int64_t inner = 1;
                            for (int k = d + 1; k < out.rank; ++k) inner *= out.shape[U(k)];
                            return WithAny(out.dtype, [&]<class T>() -> Status {
                              const Values<T> a(Expanded(c.args[LinalgCross::self], out.Shape()), c.parallel),
                                  b(Expanded(c.args[LinalgCross::other], out.Shape()), c.parallel);
                              Results<T> to(out, c.parallel);
                              for (int64_t o = 0; o < to.size() / (3 * inner); ++o) {
                                for (int64_t i = 0; i < inner; ++i) {
                                  const int64_t x = o * 3 * inner + i, y = x + inner, z = y + inner;
                                  const T first = a[y] * b[z] - a[z] * b[y], second = a[z] * b[x] - a[x] * b[z],
                                          third = a[x] * b[y] - a[y] * b[x];
                                  to[x] = first, to[y] = second, to[z] = third;
                                }
                              }
                              return {};
                            });
                          });

}  // namespace npu::ops
