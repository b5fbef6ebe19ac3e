// Copies: between types, strides and broadcast shapes.
#include "gen/abi/ops.h"
#include "kernels/simd/pointwise.h"
#include "ops/core/builder.h"
#include "ops/core/rule.h"
#include "tensor/shape.h"

namespace npu::ops {
namespace {

// About 10 GB/s on one thread.
double CopyNs(const Tensor& to) { return 100 + static_cast<double>(to.Numel() * ItemSize(to.dtype)) / 10; }

template <class From, class To>
Status PrepareCopy(Planning& p, From from, To to) {
  const Tensor& s = p.args[from];
  const Tensor& d = p.args[to];
  if (IsComplex(s.dtype) && IsInt(d.dtype) && ItemSize(d.dtype) < 4) {
    return p.Refuse("{} is {} and {} is {}; that conversion is not supported.", p.ParamName(from), Name(s.dtype), p.ParamName(to),
                    Name(d.dtype))
        .Remedy("Take the real part first.");
  }
  p.Cost(CopyNs(d));
  return {};
}

}  // namespace

using abi::InplaceCopy;
NPU_OP(InplaceCopy) = Op<InplaceCopy>()
    .Rules(rule::ExpandsTo(InplaceCopy::src, InplaceCopy::selfRef), rule::AnyDtype(InplaceCopy::selfRef))
    .Like("src.expand(selfRef.shape).to(selfRef.dtype)")
    .Tolerance("exact")
    .Prepares([](Planning& p) -> Status { return PrepareCopy(p, InplaceCopy::src, InplaceCopy::selfRef); })
    .Does([](const Call& c) -> Status {
      simd::CopyTensor(c.args[InplaceCopy::src], c.args[InplaceCopy::selfRef], c.parallel);
      return {};
    });

using abi::Cast;
NPU_OP(Cast) = Op<Cast>()
    .Rules(rule::SameShape(Cast::self, Cast::out), rule::DtypeIs(Cast::out, Cast::dtype))
    .Like("self.to(dtype)")
    .Tolerance("exact")
    .Prepares([](Planning& p) -> Status { return PrepareCopy(p, Cast::self, Cast::out); })
    .Does([](const Call& c) -> Status {
      simd::CopyTensor(c.args[Cast::self], c.args[Cast::out], c.parallel);
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
    .Rules(rule::Broadcast(Complex::real, Complex::imag, Complex::out), rule::SameDtype(Complex::real, Complex::imag),
           rule::DtypeIn(Complex::real, kFloats), rule::DtypeIn(Complex::out, kComplexes))
    .Like("torch.complex(real, imag)")
    .Tolerance("exact")
    .Prepares([](Planning& p) -> Status {
      const Tensor& part = p.args[Complex::real];
      if (2 * ItemSize(part.dtype) == ItemSize(p.args[Complex::out].dtype)) return {};
      return p.Refuse("real is {}, but out is {}.", Name(part.dtype), Name(p.args[Complex::out].dtype))
          .Remedy("float32 parts make complex64, float64 parts make complex128.");
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
