// Sequences and the unit matrix.
#include <cmath>

#include "gen/abi/ops.h"
#include "kernels/simd/generate.h"
#include "ops/core/builder.h"
#include "ops/core/rule.h"

namespace npu::ops {
namespace {

bool Whole(const Scalar& s) { return !s.Floating() && !s.Complex(); }

// How many values from start towards end; `closed` counts end itself.
Status CheckRange(const Planning& p, const Scalar& start, const Scalar& end, const Scalar& step, const Tensor& out, bool closed) {
  if (step.IsZero()) return p.Refuse("step is 0.").Remedy("Give a step that leads from start to end.");
  if ((end.re - start.re) / step.re < 0) {
    return p.Refuse("step {} does not lead from start {} to end {}.", step.re, start.re, end.re).Remedy("Change its sign.");
  }
  const double steps = (end.re - start.re) / step.re;
  const double count = closed ? std::floor(steps) + 1 : std::ceil(steps);
  if (static_cast<double>(out.Numel()) == count) return {};
  if (IsInt(out.dtype) && step.i != 0) {  // torch counts integer ranges with truncated bounds, too
    const int64_t span = end.i - start.i;
    if (out.Numel() == (closed ? span / step.i + 1 : (span + step.i - (step.i > 0 ? 1 : -1)) / step.i)) return {};
  }
  return p.Refuse("out has {} elements, but start {}, end {} and step {} give {}.", out.Numel(), start.re, end.re, step.re, count)
      .Remedy("Give out that many.");
}

void FillRange(const Scalar& start, const Scalar& step, const Tensor& out, Parallel& parallel) {
  if (Whole(start) && Whole(step)) {
    simd::Generate<int64_t>(out, [&](int64_t i) { return start.i + i * step.i; }, parallel);
  } else if (IsInt(out.dtype)) {
    // Bounds of an integer range are truncated first.
    simd::Generate<int64_t>(out, [&](int64_t i) { return start.i + i * step.i; }, parallel);
  } else {
    simd::Generate<double>(out, [&](int64_t i) { return start.re + static_cast<double>(i) * step.re; }, parallel);
  }
}

// From both ends, so that first and last are exact; integers step in double.
template <class F>
void FillLinear(double start, double end, const Tensor& out, Parallel& parallel, F&& map) {
  const int64_t n = out.Numel(), half = n / 2;
  const double step = n > 1 ? (end - start) / static_cast<double>(n - 1) : 0;
  simd::Generate<double>(
      out,
      [&](int64_t i) {
        return map(i < half || n == 1 ? start + step * static_cast<double>(i) : end - step * static_cast<double>(n - 1 - i));
      },
      parallel);
}

template <class A>
Status CheckSteps(Planning& p, TensorToken out) {
  const int64_t steps = p.args[A::steps], numel = p.args.Maybe(out)->Numel();
  if (steps == numel) return {};
  return p.Refuse("steps is {}, but {} has {} elements.", steps, p.ParamName(out), numel).Remedy("They must agree.");
}

}  // namespace

using abi::Arange, abi::Range;
NPU_OP(Arange) = Op<Arange>()
    .Rules(rule::AnyShape(Arange::out), rule::DtypeIn(Arange::out, kReals))
    .Uses(Arange::start, Arange::end, Arange::step)
    .Samples(Arange::start, "[0, 3, 0.5]").Samples(Arange::end, "[17, 30]").Samples(Arange::step, "[1, 3]")
    .Like("torch.arange(start, end, step, dtype=dtype_of('out'))")
    .Prepares([](Planning& p) -> Status {
      return CheckRange(p, p.args[Arange::start], p.args[Arange::end], p.args[Arange::step], p.args[Arange::out], false);
    })
    .Does([](const Call& c) -> Status {
      FillRange(c.args[Arange::start], c.args[Arange::step], c.args[Arange::out], c.parallel);
      return {};
    });
NPU_OP(Range) = Op<Range>()
    .Rules(rule::AnyShape(Range::out), rule::DtypeIn(Range::out, kReals))
    .Uses(Range::start, Range::end, Range::step)
    .Samples(Range::start, "[0, 3, 0.5]").Samples(Range::end, "[17, 30]").Samples(Range::step, "[1, 3]")
    .Like("torch.range(start, end, step, dtype=dtype_of('out'))")
    .Prepares([](Planning& p) -> Status {
      return CheckRange(p, p.args[Range::start], p.args[Range::end], p.args[Range::step], p.args[Range::out], true);
    })
    .Does([](const Call& c) -> Status {
      FillRange(c.args[Range::start], c.args[Range::step], c.args[Range::out], c.parallel);
      return {};
    });

using abi::Linspace, abi::LogSpace;
NPU_OP(Linspace) = Op<Linspace>()
    .Rules(rule::AnyShape(Linspace::out), rule::DtypeIn(Linspace::out, kReals))
    .Uses(Linspace::start, Linspace::end, Linspace::steps)
    .Samples(Linspace::start, "[-2.5, 0, 3.0]").Samples(Linspace::end, "[10.0, 100.0]").Samples(Linspace::steps, "[0, 1, 2, 33, 100]")
    .Like("torch.linspace(start, end, steps, dtype=dtype_of('out'))")
    .Prepares([](Planning& p) -> Status { return CheckSteps<Linspace>(p, Linspace::out); })
    .Does([](const Call& c) -> Status {
      double start = c.args[Linspace::start].re, end = c.args[Linspace::end].re;
      const Tensor& out = c.args[Linspace::out];
      if (!IsFloat(out.dtype)) start = std::trunc(start), end = std::trunc(end);  // torch makes the ends integers first
      FillLinear(start, end, out, c.parallel, [](double v) { return v; });
      return {};
    });
NPU_OP(LogSpace) = Op<LogSpace>()
    .Rules(rule::AnyShape(LogSpace::result), rule::DtypeIn(LogSpace::result, kFloats))
    .Uses(LogSpace::start, LogSpace::end, LogSpace::steps, LogSpace::base)
    .Samples(LogSpace::start, "[-1.0, 0.0]").Samples(LogSpace::end, "[1.0, 2.0]").Samples(LogSpace::steps, "[0, 1, 2, 33]").Samples(LogSpace::base, "[2.0, 10.0]")
    .Like("torch.logspace(start, end, steps, base, dtype=dtype_of('result'))")
    .Tolerance("ulp")
    .Prepares([](Planning& p) -> Status { return CheckSteps<LogSpace>(p, LogSpace::result); })
    .Does([](const Call& c) -> Status {
      const double base = c.args[LogSpace::base];
      FillLinear(c.args[LogSpace::start].re, c.args[LogSpace::end].re, c.args[LogSpace::result], c.parallel,
                 [base](double v) { return std::pow(base, v); });
      return {};
    });

using abi::Eye;
NPU_OP(Eye) = Op<Eye>()
    .Rules(rule::AnyShape(Eye::out), rule::DtypeIn(Eye::out, kReals))
    .Uses(Eye::n, Eye::m)
    .Samples(Eye::n, "[0, 1, 5, 17]").Samples(Eye::m, "[1, 4, 17]")
    .Like("torch.eye(n, m, dtype=dtype_of('out'))")
    .Tolerance("exact")
    .Prepares([](Planning& p) -> Status {
      const Tensor& out = p.args[Eye::out];
      if (out.rank == 2 && out.shape[0] == p.args[Eye::n] && out.shape[1] == p.args[Eye::m]) return {};
      return p.Refuse("out has shape {}, but n and m are {} and {}.", ShapeText(out.Shape()), p.args[Eye::n], p.args[Eye::m])
          .Remedy("Give out the shape [n, m].");
    })
    .Does([](const Call& c) -> Status {
      const Tensor& out = c.args[Eye::out];
      simd::FillTensor(out, Scalar::Of(int64_t{0}), c.parallel);
      Tensor diagonal = out;
      diagonal.rank = 1;
      diagonal.shape[0] = std::min(out.shape[0], out.shape[1]);
      diagonal.strides[0] = out.strides[0] + out.strides[1];
      simd::FillTensor(diagonal, Scalar::Of(int64_t{1}), c.parallel);
      return {};
    });

}  // namespace npu::ops
