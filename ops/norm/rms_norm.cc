#include "gen/abi/ops.h"
#include "kernels/simd/norm/norm.h"
#include "ops/norm/rules.h"

namespace npu::ops {

using namespace rule;  // NOLINT(google-build-using-namespace)

using abi::RmsNorm, abi::RmsNormGrad;
NPU_OP(RmsNorm) = Op<RmsNorm>()
    .Rules(FloatTensors(RmsNorm::x, RmsNorm::gamma, RmsNorm::yOut, RmsNorm::rstdOut), SuffixOf(RmsNorm::gamma, RmsNorm::x),
           SameShape(RmsNorm::x, RmsNorm::yOut), AnyShapes(RmsNorm::rstdOut))
    .Uses(RmsNorm::epsilon)
    .Samples(RmsNorm::epsilon, "[1e-6, 1e-3]")
    .Tolerance("accumulated")
    .Like("(lambda r: ((x.float() * r * gamma.float()).to(x.dtype), r))(torch.rsqrt(x.float().square().mean("
          "list(range(-gamma.dim(), 0)), True) + epsilon))")
    .Prepares([](Planning& plan) -> Status {
      const int64_t width = plan.args[RmsNorm::gamma].Numel();
      const Tensor& rstd = plan.args[RmsNorm::rstdOut];
      if (width == 0 || rstd.Numel() == plan.args[RmsNorm::x].Numel() / width) return {};
      return plan.Refuse("rstdOut has shape {}, but there are {} rows of {} elements.", ShapeText(rstd.Shape()),
                         plan.args[RmsNorm::x].Numel() / width, width);
    })
    .Does([](const Call& c) -> Status {
      simd::RmsNorm(c.args[RmsNorm::x], c.args[RmsNorm::gamma].Numel(), &c.args[RmsNorm::gamma], c.args[RmsNorm::epsilon],
                    c.args[RmsNorm::yOut], &c.args[RmsNorm::rstdOut], c.parallel);
      return {};
    });
NPU_OP(RmsNormGrad) = Op<RmsNormGrad>()
    .Rules(FloatTensors(RmsNormGrad::dy, RmsNormGrad::x, RmsNormGrad::rstd, RmsNormGrad::gamma, RmsNormGrad::dxOut, RmsNormGrad::dgammaOut),
           SuffixOf(RmsNormGrad::gamma, RmsNormGrad::x), SameShape(RmsNormGrad::x, RmsNormGrad::dy),
           SameShape(RmsNormGrad::x, RmsNormGrad::dxOut), SameShape(RmsNormGrad::gamma, RmsNormGrad::dgammaOut))
    .Tolerance("accumulated")
    .Like("(lambda h, n, d: ((rstd * (dy.float() * gamma.float() - h * (dy.float() * gamma.float() * h).mean(d, True))).to(x.dtype),"
          " (dy.float() * h).sum(list(range(x.dim() - gamma.dim())))))(x.float() * rstd, gamma.numel(), list(range(-gamma.dim(), 0)))")
    .Prepares([](Planning& plan) -> Status {
      const int64_t width = plan.args[RmsNormGrad::gamma].Numel();
      const Tensor& rstd = plan.args[RmsNormGrad::rstd];
      if (width == 0 || rstd.Numel() == plan.args[RmsNormGrad::x].Numel() / width) return {};
      return plan.Refuse("rstd has shape {}, but there are {} rows of {} elements.", ShapeText(rstd.Shape()),
                         plan.args[RmsNormGrad::x].Numel() / width, width);
    })
    .Does([](const Call& c) -> Status {
      simd::RmsNormBackward(c.args[RmsNormGrad::dy], c.args[RmsNormGrad::x], c.args[RmsNormGrad::gamma].Numel(),
                            c.args[RmsNormGrad::rstd], &c.args[RmsNormGrad::gamma], &c.args[RmsNormGrad::dxOut],
                            &c.args[RmsNormGrad::dgammaOut], c.parallel);
      return {};
    });

}  // namespace npu::ops
