// Largest, smallest, all, any, and positions.
#include "gen/abi/ops.h"
#include "kernels/simd/reduce/reduce.h"
#include "kernels/simd/sort/sort.h"
#include "ops/common/dims.h"

namespace npu::ops {

using namespace rule;  // NOLINT(google-build-using-namespace)

namespace {

Tensor Flat0(Tensor t) {
  t.rank = 0;
  return t;
}

}  // namespace

using abi::Amax, abi::Amin, abi::Max, abi::Min;
NPU_OP(Amax) = Op<Amax>()
    .Rules(DtypeIn(Amax::self, kReals), Reduced(Amax::self, Amax::dim, Amax::keepDim, Amax::out), SameDtype(Amax::self, Amax::out),
           NotEmptyDims(Amax::self, Amax::dim))
    .Tolerance("exact")
    .Like("torch.amax(self, dim, keepDim)")
    .Does([](const Call& c) -> Status {
      const Tensor& self = c.args[Amax::self];
      simd::Max(self, MaskOf(c.args[Amax::dim], self.rank), c.args[Amax::out], c.parallel);
      return {};
    });
NPU_OP(Amin) = Op<Amin>()
    .Rules(DtypeIn(Amin::self, kReals), Reduced(Amin::self, Amin::dim, Amin::keepDim, Amin::out), SameDtype(Amin::self, Amin::out),
           NotEmptyDims(Amin::self, Amin::dim))
    .Tolerance("exact")
    .Like("torch.amin(self, dim, keepDim)")
    .Does([](const Call& c) -> Status {
      const Tensor& self = c.args[Amin::self];
      simd::Min(self, MaskOf(c.args[Amin::dim], self.rank), c.args[Amin::out], c.parallel);
      return {};
    });
NPU_OP(Max) = Op<Max>()
    .Rules(DtypeIn(Max::self, kReals), ReducedAll(Max::self, Max::out), SameDtype(Max::self, Max::out), NotEmpty(Max::self))
    .Tolerance("exact")
    .Like("torch.max(self)")
    .Does([](const Call& c) -> Status {
      simd::Max(c.args[Max::self], AllDims(c.args[Max::self]), Flat0(c.args[Max::out]), c.parallel);
      return {};
    });
NPU_OP(Min) = Op<Min>()
    .Rules(DtypeIn(Min::self, kReals), ReducedAll(Min::self, Min::out), SameDtype(Min::self, Min::out), NotEmpty(Min::self))
    .Tolerance("exact")
    .Like("torch.min(self)")
    .Does([](const Call& c) -> Status {
      simd::Min(c.args[Min::self], AllDims(c.args[Min::self]), Flat0(c.args[Min::out]), c.parallel);
      return {};
    });

using abi::MaxDim, abi::MinDim, abi::ArgMax, abi::ArgMin;
NPU_OP(MaxDim) = Op<MaxDim>()
    .Rules(DtypeIn(MaxDim::self, kReals), ReducedDim(MaxDim::self, MaxDim::dim, MaxDim::keepdim, MaxDim::out),
           ReducedDim(MaxDim::self, MaxDim::dim, MaxDim::keepdim, MaxDim::indices), SameDtype(MaxDim::self, MaxDim::out),
           DtypeIn(MaxDim::indices, kIndexTypes), NotEmptyDim(MaxDim::self, MaxDim::dim))
    .Tolerance("exact")
    .Like("torch.max(self, dim, keepdim)")
    .Does([](const Call& c) -> Status {
      const Tensor& self = c.args[MaxDim::self];
      simd::Extreme(self, WrapDim(c.args[MaxDim::dim], self.rank), true, &c.args[MaxDim::out], &c.args[MaxDim::indices], c.parallel);
      return {};
    });
NPU_OP(MinDim) = Op<MinDim>()
    .Rules(DtypeIn(MinDim::self, kReals), ReducedDim(MinDim::self, MinDim::dim, MinDim::keepdim, MinDim::out),
           ReducedDim(MinDim::self, MinDim::dim, MinDim::keepdim, MinDim::indices), SameDtype(MinDim::self, MinDim::out),
           DtypeIn(MinDim::indices, kIndexTypes), NotEmptyDim(MinDim::self, MinDim::dim))
    .Tolerance("exact")
    .Like("torch.min(self, dim, keepdim)")
    .Does([](const Call& c) -> Status {
      const Tensor& self = c.args[MinDim::self];
      simd::Extreme(self, WrapDim(c.args[MinDim::dim], self.rank), false, &c.args[MinDim::out], &c.args[MinDim::indices], c.parallel);
      return {};
    });
NPU_OP(ArgMax) = Op<ArgMax>()
    .Rules(DtypeIn(ArgMax::self, kReals), ReducedDim(ArgMax::self, ArgMax::dim, ArgMax::keepdim, ArgMax::out),
           DtypeIn(ArgMax::out, kIndexTypes), NotEmptyDim(ArgMax::self, ArgMax::dim))
    .Tolerance("exact")
    .Like("torch.argmax(self, dim, keepdim)")
    .Does([](const Call& c) -> Status {
      const Tensor& self = c.args[ArgMax::self];
      simd::Extreme(self, WrapDim(c.args[ArgMax::dim], self.rank), true, nullptr, &c.args[ArgMax::out], c.parallel);
      return {};
    });
NPU_OP(ArgMin) = Op<ArgMin>()
    .Required(ArgMin::self)
    .Rules(DtypeIn(ArgMin::self, kReals), ReducedDim(ArgMin::self, ArgMin::dim, ArgMin::keepdim, ArgMin::out),
           DtypeIn(ArgMin::out, kIndexTypes), NotEmptyDim(ArgMin::self, ArgMin::dim))
    .Tolerance("exact")
    .Like("torch.argmin(self, dim, keepdim)")
    .Does([](const Call& c) -> Status {
      const Tensor& self = *c.args[ArgMin::self];
      simd::Extreme(self, WrapDim(c.args[ArgMin::dim], self.rank), false, nullptr, &c.args[ArgMin::out], c.parallel);
      return {};
    });

using abi::All, abi::Any;
NPU_OP(All) = Op<All>()
    .Rules(DtypeIn(All::self, kReals), Reduced(All::self, All::dim, All::keepdim, All::out), DtypeIn(All::out, kBool | TypeSet{DType::u8}))
    .Tolerance("exact")
    .Like("torch.all(self, tuple(dim) or None, keepdim)")
    .Does([](const Call& c) -> Status {
      const Tensor& self = c.args[All::self];
      simd::All(self, MaskOf(c.args[All::dim], self.rank), c.args[All::out], c.parallel);
      return {};
    });
NPU_OP(Any) = Op<Any>()
    .Rules(DtypeIn(Any::self, kReals), Reduced(Any::self, Any::dim, Any::keepdim, Any::out), DtypeIn(Any::out, kBool | TypeSet{DType::u8}))
    .Tolerance("exact")
    .Like("torch.any(self, tuple(dim) or None, keepdim)")
    .Does([](const Call& c) -> Status {
      const Tensor& self = c.args[Any::self];
      simd::Any(self, MaskOf(c.args[Any::dim], self.rank), c.args[Any::out], c.parallel);
      return {};
    });

using abi::Aminmax, abi::AminmaxAll, abi::AminmaxDim;
NPU_OP(Aminmax) = Op<Aminmax>()
    .Rules(DtypeIn(Aminmax::self, kReals), Reduced(Aminmax::self, Aminmax::dim, Aminmax::keepDim, Aminmax::minOut),
           Reduced(Aminmax::self, Aminmax::dim, Aminmax::keepDim, Aminmax::maxOut), SameDtype(Aminmax::self, Aminmax::minOut),
           SameDtype(Aminmax::self, Aminmax::maxOut), NotEmptyDims(Aminmax::self, Aminmax::dim))
    .Tolerance("exact")
    .Like("(torch.amin(self, dim, keepDim), torch.amax(self, dim, keepDim))")
    .Does([](const Call& c) -> Status {
      const Tensor& self = c.args[Aminmax::self];
      const uint32_t mask = MaskOf(c.args[Aminmax::dim], self.rank);
      simd::Min(self, mask, c.args[Aminmax::minOut], c.parallel);
      simd::Max(self, mask, c.args[Aminmax::maxOut], c.parallel);
      return {};
    });
NPU_OP(AminmaxAll) = Op<AminmaxAll>()
    .Rules(DtypeIn(AminmaxAll::self, kReals), ReducedAll(AminmaxAll::self, AminmaxAll::minOut),
           ReducedAll(AminmaxAll::self, AminmaxAll::maxOut), SameDtype(AminmaxAll::self, AminmaxAll::minOut),
           SameDtype(AminmaxAll::self, AminmaxAll::maxOut), NotEmpty(AminmaxAll::self))
    .Tolerance("exact")
    .Like("(torch.min(self), torch.max(self))")
    .Does([](const Call& c) -> Status {
      const Tensor& self = c.args[AminmaxAll::self];
      simd::Min(self, AllDims(self), Flat0(c.args[AminmaxAll::minOut]), c.parallel);
      simd::Max(self, AllDims(self), Flat0(c.args[AminmaxAll::maxOut]), c.parallel);
      return {};
    });
NPU_OP(AminmaxDim) = Op<AminmaxDim>()
    .Rules(DtypeIn(AminmaxDim::self, kReals), ReducedDim(AminmaxDim::self, AminmaxDim::dim, AminmaxDim::keepDim, AminmaxDim::minOut),
           ReducedDim(AminmaxDim::self, AminmaxDim::dim, AminmaxDim::keepDim, AminmaxDim::maxOut),
           SameDtype(AminmaxDim::self, AminmaxDim::minOut), SameDtype(AminmaxDim::self, AminmaxDim::maxOut),
           NotEmptyDim(AminmaxDim::self, AminmaxDim::dim))
    .Tolerance("exact")
    .Like("torch.aminmax(self, dim=dim, keepdim=keepDim)")
    .Does([](const Call& c) -> Status {
      const Tensor& self = c.args[AminmaxDim::self];
      const int64_t dim[] = {c.args[AminmaxDim::dim]};
      const uint32_t mask = MaskOf(dim, self.rank);
      simd::Min(self, mask, c.args[AminmaxDim::minOut], c.parallel);
      simd::Max(self, mask, c.args[AminmaxDim::maxOut], c.parallel);
      return {};
    });

}  // namespace npu::ops
