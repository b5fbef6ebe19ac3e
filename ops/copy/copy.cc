// Copies: between types, strides and broadcast shapes.
#include <algorithm>

#include "gen/abi/ops.h"
#include "kernels/simd/pointwise.h"
#include "ops/core/builder.h"
#include "ops/core/rule.h"
#include "tensor/shape.h"

namespace npu::ops {
namespace {

// About 10 GB/s on one thread.
double CopyNs(const Tensor& to) { return 100 + static_cast<double>(to.Numel() * ItemSize(to.dtype)) / 10; }

// Complex numbers become small integers by their real parts.
Tensor RealParts(const Tensor& t) {
  Tensor real = t;
  real.dtype = t.dtype == DType::c128 ? DType::f64 : t.dtype == DType::c64 ? DType::f32 : DType::f16;
  for (int64_t& stride : real.strides) stride *= 2;
  return real;
}

void Convert(const Tensor& from, const Tensor& to, Parallel& parallel) {
  const bool through_real = IsComplex(from.dtype) && IsInt(to.dtype) && ItemSize(to.dtype) < 4;
  simd::CopyTensor(through_real ? RealParts(from) : from, to, parallel);
}

// `t` without the leading dimensions of size 1 that a tensor of `rank` dimensions does not have: a card takes [1] for
// [].
Tensor WithoutLeadingOnes(const Tensor& t, int rank) {
  int drop = 0;
  while (t.rank - drop > rank && t.shape[static_cast<size_t>(drop)] == 1) ++drop;
  if (drop == 0) return t;
  Tensor shorter = t;
  shorter.rank = static_cast<int8_t>(t.rank - drop);
  std::copy(t.shape.begin() + drop, t.shape.begin() + t.rank, shorter.shape.begin());
  std::copy(t.strides.begin() + drop, t.strides.begin() + t.rank, shorter.strides.begin());
  return shorter;
}

Status CheckCopies(const Planning& p, const Rule&) {
  const Tensor& from = p.args[abi::InplaceCopy::src];
  const Tensor& to = p.args[abi::InplaceCopy::selfRef];
  if (ExpandsTo(WithoutLeadingOnes(from, to.rank).Shape(), to.Shape())) return {};
  return p
      .Refuse("src has shape {}, which cannot be expanded to that of selfRef, {}.", ShapeText(from.Shape()),
              ShapeText(to.Shape()))
      .Remedy("Sizes must be equal or 1, counted from the last dimension.");
}
constexpr RuleKind kCopies{"expands_to", CheckCopies, 0, 0};

}  // namespace

using abi::InplaceCopy;
NPU_OP(InplaceCopy) = Op<InplaceCopy>()
                          .Rules(rule::Bind(kCopies, 0, InplaceCopy::src, InplaceCopy::selfRef),
                                 rule::AnyDtype(InplaceCopy::selfRef))
                          .Like("src.expand(selfRef.shape).to(selfRef.dtype)")
                          .Tolerance("exact")
                          .Prepares([](Planning& p) -> Status {
                            p.Cost(CopyNs(p.args[InplaceCopy::selfRef]));
                            return {};
                          })
                          .Does([](const Call& c) -> Status {
                            const Tensor& to = c.args[InplaceCopy::selfRef];
                            Convert(WithoutLeadingOnes(c.args[InplaceCopy::src], to.rank), to, c.parallel);
                            return {};
                          });

using abi::Cast;
NPU_OP(Cast) = Op<Cast>()
                   .Rules(rule::SameShape(Cast::self, Cast::out), rule::DtypeIs(Cast::out, Cast::dtype))
                   .Like("self.to(dtype)")
                   .Tolerance("exact")
                   .Prepares([](Planning& p) -> Status {
                     p.Cost(CopyNs(p.args[Cast::out]));
                     return {};
                   })
                   .Does([](const Call& c) -> Status {
                     Convert(c.args[Cast::self], c.args[Cast::out], c.parallel);
                     return {};
                   });

using abi::ForeachCopy;
NPU_OP(ForeachCopy) = Op<ForeachCopy>()
                          .Rules(rule::SameLists(ForeachCopy::x, ForeachCopy::out))
                          .Like("[a.to(b.dtype) for a, b in zip(x, out)]")
                          .Tolerance("exact")
                          .Does([](const Call& c) -> Status {
                            for (size_t i = 0; i < c.args[ForeachCopy::x].size(); ++i)
                              simd::CopyTensor(c.args[ForeachCopy::x][i], c.args[ForeachCopy::out][i], c.parallel);
                            return {};
                          });

// The two halves of complex numbers, written through a real view of out.
using abi::Complex;
NPU_OP(Complex) = Op<Complex>()
                      .Rules(rule::Broadcast(Complex::real, Complex::imag, Complex::out),
                             rule::SameDtype(Complex::real, Complex::imag), rule::DtypeIn(Complex::real, kFloats),
                             rule::DtypeIn(Complex::out, kComplexes | TypeSet{DType::c32}))
                      .Like("torch.complex(real, imag)")
                      .Tolerance("exact")
                      .Prepares([](Planning& p) -> Status {
                        const Tensor& part = p.args[Complex::real];
                        if (2 * ItemSize(part.dtype) == ItemSize(p.args[Complex::out].dtype)) return {};
                        return p
                            .Refuse("real is {}, but out is {}.", Name(part.dtype), Name(p.args[Complex::out].dtype))
                            .Remedy("float16 parts make complex32, float32 parts complex64, float64 parts complex128.");
                      })
                      .Does([](const Call& c) -> Status {
                        Tensor half = c.args[Complex::out];
                        half.dtype = c.args[Complex::real].dtype;
                        for (int64_t& stride : half.strides) stride *= 2;
                        simd::CopyTensor(c.args[Complex::real], half, c.parallel);
                        half.data = static_cast<char*>(half.data) + ItemSize(half.dtype);
                        simd::CopyTensor(c.args[Complex::imag], half, c.parallel);
                        return {};
                      });

}  // namespace npu::ops
