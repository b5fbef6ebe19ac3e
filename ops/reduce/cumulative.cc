#include "kernels/simd/cumulative/cumulative.h"

#include "gen/abi/ops.h"
#include "ops/common/dims.h"

namespace npu::ops {

using namespace rule;  // NOLINT(google-build-using-namespace)

using abi::Cumsum, abi::Cumprod, abi::Cummax, abi::Cummin;
NPU_OP(Cumsum) = Op<Cumsum>()
    .Required(Cumsum::out)
    .Rules(DtypeIn(Cumsum::self, kReals | kComplexes), SameShape(Cumsum::self, Cumsum::out), DtypeIs(Cumsum::out, Cumsum::dtype),
           DtypeIn(Cumsum::out, kReals | kComplexes), DimInRange(Cumsum::dim, Cumsum::self))
    .Samples(Cumsum::dtype, "[torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.complex64]")
    .Tolerance("accumulated")
    .Like("torch.cumsum(self, dim, dtype=dtype)")
    .Does([](const Call& c) -> Status {
      const Tensor& self = c.args[Cumsum::self];
      simd::CumSum(self, WrapDim(c.args[Cumsum::dim], self.rank), *c.args[Cumsum::out], c.parallel);
      return {};
    });
NPU_OP(Cumprod) = Op<Cumprod>()
    .Rules(DtypeIn(Cumprod::input, kReals | kComplexes), SameShape(Cumprod::input, Cumprod::out), DtypeIs(Cumprod::out, Cumprod::dtype),
           DtypeIn(Cumprod::out, kReals | kComplexes))
    .Uses(Cumprod::dim)
    .Samples(Cumprod::dim, "[0, -1]")
    .Tolerance("accumulated")
    .Like("torch.cumprod(input, int(dim), dtype=dtype)")
    .Prepares([](Planning& plan) -> Status {
      const Tensor& input = plan.args[Cumprod::input];
      if (WrapDim(plan.args[Cumprod::dim].i, input.rank) >= 0) return {};
      return plan.Refuse("dim is {}, but input has shape {}.", plan.args[Cumprod::dim].i, ShapeText(input.Shape()));
    })
    .Does([](const Call& c) -> Status {
      const Tensor& input = c.args[Cumprod::input];
      simd::CumProd(input, WrapDim(c.args[Cumprod::dim].i, input.rank), c.args[Cumprod::out], c.parallel);
      return {};
    });
NPU_OP(Cummax) = Op<Cummax>()
    .Rules(DtypeIn(Cummax::self, kReals), SameShape(Cummax::self, Cummax::valuesOut), SameShape(Cummax::self, Cummax::indicesOut),
           SameDtype(Cummax::self, Cummax::valuesOut), DtypeIn(Cummax::indicesOut, kIndexTypes), DimInRange(Cummax::dim, Cummax::self))
    .Tolerance("exact")
    .Like("torch.cummax(self, dim)")
    .Does([](const Call& c) -> Status {
      const Tensor& self = c.args[Cummax::self];
      simd::CumExtreme(self, WrapDim(c.args[Cummax::dim], self.rank), true, c.args[Cummax::valuesOut], c.args[Cummax::indicesOut],
                       c.parallel);
      return {};
    });
NPU_OP(Cummin) = Op<Cummin>()
    .Rules(DtypeIn(Cummin::self, kReals), SameShape(Cummin::self, Cummin::valuesOut), SameShape(Cummin::self, Cummin::indicesOut),
           SameDtype(Cummin::self, Cummin::valuesOut), DtypeIn(Cummin::indicesOut, kIndexTypes), DimInRange(Cummin::dim, Cummin::self))
    .Tolerance("exact")
    .Like("torch.cummin(self, dim)")
    .Does([](const Call& c) -> Status {
      const Tensor& self = c.args[Cummin::self];
      simd::CumExtreme(self, WrapDim(c.args[Cummin::dim], self.rank), false, c.args[Cummin::valuesOut], c.args[Cummin::indicesOut],
                       c.parallel);
      return {};
    });

}  // namespace npu::ops
