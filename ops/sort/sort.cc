#include "kernels/simd/sort/sort.h"

#include "gen/abi/ops.h"
#include "ops/common/dims.h"

namespace npu::ops {

using namespace rule;  // NOLINT(google-build-using-namespace)

namespace {

Status WantTop(const Planning& plan, const Tensor& self, int64_t k, int64_t dim, TensorToken values, TensorToken indices) {
  const int d = WrapDim(dim, self.rank);
  const int64_t n = self.rank == 0 ? 1 : d < 0 ? 0 : self.shape[static_cast<size_t>(d)];
  if (k < 0 || k > n) {
    return plan.Refuse("k is {}, but dim {} of self has size {}.", k, dim, n).Remedy("It must be between 0 and that size.");
  }
  Dims wanted = DimsOf(self);
  if (self.rank > 0) wanted.size[static_cast<size_t>(d)] = k;
  NPU_TRY(WantShape(plan, values, wanted, fmt::format("{} elements of dim {} are wanted", k, dim)));
  return WantShape(plan, indices, wanted, fmt::format("{} elements of dim {} are wanted", k, dim));
}

}  // namespace

using abi::Sort, abi::Topk, abi::TopkV2, abi::Kthvalue;
NPU_OP(Sort) = Op<Sort>()
    .Rules(DtypeIn(Sort::self, kReals), SameShape(Sort::self, Sort::valuesOut), SameShape(Sort::self, Sort::indicesOut),
           SameDtype(Sort::self, Sort::valuesOut), DtypeIn(Sort::indicesOut, TypeSet{DType::i64}), DimInRange(Sort::dim, Sort::self))
    .Uses(Sort::stable, Sort::descending)
    .Tolerance("exact")
    .Like("torch.sort(self, dim=dim, descending=descending, stable=True)")
    .Does([](const Call& c) -> Status {
      const Tensor& self = c.args[Sort::self];
      simd::Sort(self, WrapDim(c.args[Sort::dim], self.rank), c.args[Sort::descending], c.args[Sort::valuesOut], c.args[Sort::indicesOut],
                 c.parallel);
      return {};
    });
NPU_OP(Topk) = Op<Topk>()
    .Required(Topk::valuesOut, Topk::indicesOut)
    .Rules(DtypeIn(Topk::self, kReals), AnyShapes(Topk::valuesOut, Topk::indicesOut), SameDtype(Topk::self, Topk::valuesOut),
           DtypeIn(Topk::indicesOut, TypeSet{DType::i64}), DimInRange(Topk::dim, Topk::self))
    .Uses(Topk::k, Topk::largest, Topk::sorted)
    .Samples(Topk::k, "[1, 2]")
    .Tolerance("exact")
    .Like("torch.topk(self, k, dim, largest, True)")
    .Prepares([](Planning& plan) {
      return WantTop(plan, plan.args[Topk::self], plan.args[Topk::k], plan.args[Topk::dim], Topk::valuesOut, Topk::indicesOut);
    })
    .Does([](const Call& c) -> Status {
      const Tensor& self = c.args[Topk::self];
      simd::TopK(self, WrapDim(c.args[Topk::dim], self.rank), c.args[Topk::k], c.args[Topk::largest], *c.args[Topk::valuesOut],
                 *c.args[Topk::indicesOut], c.parallel);
      return {};
    });
NPU_OP(TopkV2) = Op<TopkV2>()
    .Rules(DtypeIn(TopkV2::self, kReals), AnyShapes(TopkV2::values, TopkV2::indices), SameDtype(TopkV2::self, TopkV2::values),
           DtypeIn(TopkV2::indices, TypeSet{DType::i64}), DimInRange(TopkV2::dim, TopkV2::self))
    .Uses(TopkV2::k, TopkV2::largest, TopkV2::sorted, TopkV2::sortPolicy)
    .Samples(TopkV2::k, "[1, 2]")
    .Tolerance("exact")
    .Like("torch.topk(self, k, dim, largest, True)")
    .Prepares([](Planning& plan) {
      return WantTop(plan, plan.args[TopkV2::self], plan.args[TopkV2::k], plan.args[TopkV2::dim], TopkV2::values, TopkV2::indices);
    })
    .Does([](const Call& c) -> Status {
      const Tensor& self = c.args[TopkV2::self];
      simd::TopK(self, WrapDim(c.args[TopkV2::dim], self.rank), c.args[TopkV2::k], c.args[TopkV2::largest], c.args[TopkV2::values],
                 c.args[TopkV2::indices], c.parallel);
      return {};
    });
NPU_OP(Kthvalue) = Op<Kthvalue>()
    .Rules(DtypeIn(Kthvalue::self, kReals), ReducedDim(Kthvalue::self, Kthvalue::dim, Kthvalue::keepdim, Kthvalue::valuesOut),
           ReducedDim(Kthvalue::self, Kthvalue::dim, Kthvalue::keepdim, Kthvalue::indicesOut), SameDtype(Kthvalue::self, Kthvalue::valuesOut),
           DtypeIn(Kthvalue::indicesOut, TypeSet{DType::i64}), NotEmptyDim(Kthvalue::self, Kthvalue::dim))
    .Uses(Kthvalue::k)
    .Samples(Kthvalue::k, "[1]")
    .Tolerance("exact")
    .Like("torch.kthvalue(self, k, dim, keepdim)")
    .Prepares([](Planning& plan) -> Status {
      const Tensor& self = plan.args[Kthvalue::self];
      const int64_t k = plan.args[Kthvalue::k];
      const int64_t n = self.rank == 0 ? 1 : self.shape[static_cast<size_t>(WrapDim(plan.args[Kthvalue::dim], self.rank))];
      if (k >= 1 && k <= n) return {};
      return plan.Refuse("k is {}, but dim {} of self has size {}.", k, plan.args[Kthvalue::dim], n).Remedy("k runs from 1 to that size.");
    })
    .Does([](const Call& c) -> Status {
      const Tensor& self = c.args[Kthvalue::self];
      simd::KthValue(self, WrapDim(c.args[Kthvalue::dim], self.rank), c.args[Kthvalue::k], c.args[Kthvalue::valuesOut],
                     c.args[Kthvalue::indicesOut], c.parallel);
      return {};
    });

}  // namespace npu::ops
