// Selection by condition: results whose size depends on the data.
#include <vector>

#include "gen/abi/ops.h"
#include "kernels/simd/copy/copy.h"
#include "kernels/simd/index/index.h"
#include "kernels/simd/sort/sort.h"
#include "ops/core/object.h"
#include "ops/index/rules.h"

namespace npu::ops {

using namespace rule;  // NOLINT(google-build-using-namespace)

namespace {

// Dense memory of n elements of out's type starting at out, whatever the client's strides: outputs of these operators are
// allocated for the largest result and read with the true shape.
Status WantRoom(const Planning& plan, TensorToken out, int64_t elements) {
  const Tensor* t = plan.args.Maybe(out);
  if (t->Numel() >= elements && t->Contiguous()) return {};
  return plan.Refuse("{} has shape {}, but must be contiguous and have room for {} elements.", plan.ParamName(out),
                     ShapeText(t->Shape()), elements);
}

}  // namespace

using abi::Nonzero, abi::NonzeroV2, abi::MaskedSelect, abi::InplaceMaskedScatter;
NPU_OP(Nonzero) = Op<Nonzero>()
    .Rules(AnyShape(Nonzero::out), DtypeIn(Nonzero::out, TypeSet{DType::i64}), DtypeIn(Nonzero::self, kReals | kComplexes))
    .DataDependent(Nonzero::out)
    .Tolerance("exact")
    .Like("torch.nonzero(self)")
    .Prepares([](Planning& plan) -> Status {
      const Tensor& self = plan.args[Nonzero::self];
      return WantRoom(plan, Nonzero::out, self.Numel() * self.rank);
    })
    .Does([](const Call& c) -> Status {
      const Tensor& self = c.args[Nonzero::self];
      const int64_t count = simd::Nonzero(self, c.args[Nonzero::out].As<int64_t>(), false, c.parallel);
      c.live[0]->SetTrueShape(std::array<int64_t, 2>{count, self.rank});
      return {};
    });
NPU_OP(NonzeroV2) = Op<NonzeroV2>()
    .Rules(AnyShape(NonzeroV2::out), DtypeIn(NonzeroV2::out, TypeSet{DType::i64}), DtypeIn(NonzeroV2::self, kReals | kComplexes))
    .DataDependent(NonzeroV2::out)
    .Tolerance("exact")
    .Like("torch.nonzero(self).t()")
    .Prepares([](Planning& plan) -> Status {
      const Tensor& self = plan.args[NonzeroV2::self];
      return WantRoom(plan, NonzeroV2::out, self.Numel() * self.rank);
    })
    .Does([](const Call& c) -> Status {
      const Tensor& self = c.args[NonzeroV2::self];
      const int64_t count = simd::Nonzero(self, c.args[NonzeroV2::out].As<int64_t>(), true, c.parallel);
      c.live[0]->SetTrueShape(std::array<int64_t, 2>{self.rank, count});
      return {};
    });
NPU_OP(MaskedSelect) = Op<MaskedSelect>()
    .Rules(DtypeIn(MaskedSelect::mask, kBool | TypeSet{DType::u8}), AnyShape(MaskedSelect::out), SameDtype(MaskedSelect::self, MaskedSelect::out))
    .DataDependent(MaskedSelect::out)
    .Tolerance("exact")
    .Like("torch.masked_select(self, mask)")
    .Prepares([](Planning& plan) -> Status {
      const Tensor &self = plan.args[MaskedSelect::self], &mask = plan.args[MaskedSelect::mask];
      Dims dims = DimsOf(self);
      int bad = 0;
      if (!BroadcastInto(&dims, mask.Shape(), &bad)) {
        return plan.Refuse("mask has shape {}, which does not broadcast with self {}.", ShapeText(mask.Shape()), ShapeText(self.Shape()))
            .Remedy("Sizes must be equal or 1, counted from the last dimension.");
      }
      return WantRoom(plan, MaskedSelect::out, dims.Numel());
    })
    .Does([](const Call& c) -> Status {
      Dims dims = DimsOf(c.args[MaskedSelect::self]);
      int bad = 0;
      BroadcastInto(&dims, c.args[MaskedSelect::mask].Shape(), &bad);
      const Tensor self = Expanded(c.args[MaskedSelect::self], dims.Span()), mask = Expanded(c.args[MaskedSelect::mask], dims.Span());
      const int64_t count = simd::MaskedSelect(self, mask, c.args[MaskedSelect::out].data, c.parallel);
      c.live[0]->SetTrueShape(std::array<int64_t, 1>{count});
      return {};
    });
NPU_OP(InplaceMaskedScatter) = Op<InplaceMaskedScatter>()
    .Rules(DtypeIn(InplaceMaskedScatter::mask, kBool | TypeSet{DType::u8}), ExpandsTo(InplaceMaskedScatter::mask, InplaceMaskedScatter::selfRef),
           SameDtype(InplaceMaskedScatter::selfRef, InplaceMaskedScatter::source))
    .Tolerance("exact")
    .Like("selfRef.masked_scatter_(mask, source)")
    .Does([](const Call& c) -> Status {
      const Tensor &self = c.args[InplaceMaskedScatter::selfRef], &source = c.args[InplaceMaskedScatter::source];
      const Tensor mask = Expanded(c.args[InplaceMaskedScatter::mask], self.Shape());
      if (simd::MaskedScatter(self, mask, source, c.parallel)) return {};
      return Error(Code::kTaskException, "{}: mask has more true elements than source has elements, {}.", c.op.name, source.Numel())
          .Remedy("Give one element of source for each true element of mask.");
    });

using abi::Unique, abi::Unique2, abi::UniqueConsecutive;
NPU_OP(Unique) = Op<Unique>()
    .Rules(DtypeIn(Unique::self, kReals), AnyShapes(Unique::valueOut, Unique::inverseOut), SameDtype(Unique::self, Unique::valueOut),
           DtypeIn(Unique::inverseOut, TypeSet{DType::i64}))
    .Uses(Unique::sorted, Unique::returnInverse)
    .DataDependent(Unique::valueOut)
    .Tolerance("exact")
    .Like("torch.unique(self, True, returnInverse)")
    .Prepares([](Planning& plan) -> Status {
      const Tensor& self = plan.args[Unique::self];
      NPU_TRY(WantRoom(plan, Unique::valueOut, self.Numel()));
      return plan.args[Unique::returnInverse] ? WantRoom(plan, Unique::inverseOut, self.Numel()) : Status();
    })
    .Does([](const Call& c) -> Status {
      const Tensor& self = c.args[Unique::self];
      const Tensor inverse = MakeContiguous(c.args[Unique::inverseOut].data, DType::i64, self.Shape());
      const int64_t n = simd::Unique(self, true, c.args[Unique::valueOut].data, c.args[Unique::returnInverse] ? &inverse : nullptr, nullptr);
      c.live[0]->SetTrueShape(std::array<int64_t, 1>{n});
      return {};
    });
NPU_OP(Unique2) = Op<Unique2>()
    .Rules(DtypeIn(Unique2::self, kReals), AnyShapes(Unique2::valueOut, Unique2::inverseOut, Unique2::countsOut),
           SameDtype(Unique2::self, Unique2::valueOut), DtypeIn(Unique2::inverseOut, TypeSet{DType::i64}),
           DtypeIn(Unique2::countsOut, TypeSet{DType::i64}))
    .Uses(Unique2::sorted, Unique2::returnInverse, Unique2::returnCounts)
    .DataDependent(Unique2::valueOut, Unique2::countsOut)
    .Tolerance("exact")
    .Like("torch.unique(self, True, returnInverse, returnCounts)")
    .Prepares([](Planning& plan) -> Status {
      const int64_t n = plan.args[Unique2::self].Numel();
      NPU_TRY(WantRoom(plan, Unique2::valueOut, n));
      if (plan.args[Unique2::returnInverse]) NPU_TRY(WantRoom(plan, Unique2::inverseOut, n));
      return plan.args[Unique2::returnCounts] ? WantRoom(plan, Unique2::countsOut, n) : Status();
    })
    .Does([](const Call& c) -> Status {
      const Tensor& self = c.args[Unique2::self];
      const Tensor inverse = MakeContiguous(c.args[Unique2::inverseOut].data, DType::i64, self.Shape());
      const bool counts = c.args[Unique2::returnCounts];
      const int64_t n = simd::Unique(self, true, c.args[Unique2::valueOut].data, c.args[Unique2::returnInverse] ? &inverse : nullptr,
                                     counts ? c.args[Unique2::countsOut].As<int64_t>() : nullptr);
      c.live[0]->SetTrueShape(std::array<int64_t, 1>{n});
      if (counts) c.live[1]->SetTrueShape(std::array<int64_t, 1>{n});
      return {};
    });
NPU_OP(UniqueConsecutive) = Op<UniqueConsecutive>()
    .Rules(DtypeIn(UniqueConsecutive::self, kReals), AnyShapes(UniqueConsecutive::valueOut, UniqueConsecutive::inverseOut, UniqueConsecutive::countsOut),
           SameDtype(UniqueConsecutive::self, UniqueConsecutive::valueOut), DtypeIn(UniqueConsecutive::inverseOut, TypeSet{DType::i64}),
           DtypeIn(UniqueConsecutive::countsOut, TypeSet{DType::i64}))
    .Uses(UniqueConsecutive::returnInverse, UniqueConsecutive::returnCounts, UniqueConsecutive::dim)
    .Samples(UniqueConsecutive::dim, "[1000]")
    .DataDependent(UniqueConsecutive::valueOut, UniqueConsecutive::countsOut)
    .Tolerance("exact")
    .Like("torch.unique_consecutive(self, returnInverse, returnCounts)")
    .Prepares([](Planning& plan) -> Status {
      const Tensor& self = plan.args[UniqueConsecutive::self];
      // op-plugin passes 1000 where torch has no dim.
      const int64_t dim = plan.args[UniqueConsecutive::dim];
      NPU_TRY(WantRoom(plan, UniqueConsecutive::valueOut, self.Numel()));
      if (dim != 1000 && self.rank > 1) {
        const int d = WrapDim(dim, self.rank);
        if (d < 0) return plan.Refuse("dim is {}, but self has shape {}.", dim, ShapeText(self.Shape())).Remedy("Name a dimension of self.");
        const int64_t slices = self.shape[static_cast<size_t>(d)];
        if (plan.args[UniqueConsecutive::returnInverse]) NPU_TRY(WantRoom(plan, UniqueConsecutive::inverseOut, slices));
        return plan.args[UniqueConsecutive::returnCounts] ? WantRoom(plan, UniqueConsecutive::countsOut, slices) : Status();
      }
      if (plan.args[UniqueConsecutive::returnInverse]) NPU_TRY(WantRoom(plan, UniqueConsecutive::inverseOut, self.Numel()));
      return plan.args[UniqueConsecutive::returnCounts] ? WantRoom(plan, UniqueConsecutive::countsOut, self.Numel()) : Status();
    })
    .Does([](const Call& c) -> Status {
      const Tensor& self = c.args[UniqueConsecutive::self];
      const Tensor inverse = MakeContiguous(c.args[UniqueConsecutive::inverseOut].data, DType::i64, self.Shape());
      const bool counts = c.args[UniqueConsecutive::returnCounts];
      if (c.args[UniqueConsecutive::dim] != 1000 && self.rank > 1) {
        const SlicesOut out{c.args[UniqueConsecutive::valueOut], c.args[UniqueConsecutive::returnInverse] ? &c.args[UniqueConsecutive::inverseOut] : nullptr,
                            counts ? &c.args[UniqueConsecutive::countsOut] : nullptr};
        return UniqueSlices(c, self, WrapDim(c.args[UniqueConsecutive::dim], self.rank), false, out);
      }
      const int64_t n = simd::Unique(self, false, c.args[UniqueConsecutive::valueOut].data,
                                     c.args[UniqueConsecutive::returnInverse] ? &inverse : nullptr,
                                     counts ? c.args[UniqueConsecutive::countsOut].As<int64_t>() : nullptr);
      c.live[0]->SetTrueShape(std::array<int64_t, 1>{n});
      if (counts) c.live[1]->SetTrueShape(std::array<int64_t, 1>{n});
      return {};
    });

}  // namespace npu::ops
