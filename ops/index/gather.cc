// Reading by index.
#include <cstring>

#include "gen/abi/ops.h"
#include "kernels/simd/copy/copy.h"
#include "kernels/simd/index/index.h"
#include "kernels/simd/rows/convert.h"
#include "kernels/simd/rows/walk.h"
#include "ops/index/rules.h"

namespace npu::ops {

using namespace rule;  // NOLINT(google-build-using-namespace)

using abi::Gather, abi::IndexSelect, abi::Embedding, abi::Index;
NPU_OP(Gather) = Op<Gather>()
    .Rules(GatherShape(Gather::self, Gather::dim, Gather::index, Gather::out), SameDtype(Gather::self, Gather::out),
           DtypeIn(Gather::index, kIndexTypes))
    .Tolerance("exact")
    .Like("torch.gather(self, dim, index)")
    .Does([](const Call& c) -> Status {
      const Tensor& self = c.args[Gather::self];
      return CheckIndex(c, Gather::index, Gather::self,
                        simd::Gather(self, WrapDim(c.args[Gather::dim], self.rank), c.args[Gather::index], c.args[Gather::out], c.parallel));
    });
NPU_OP(IndexSelect) = Op<IndexSelect>()
    .Rules(SelectShape(IndexSelect::self, IndexSelect::dim, IndexSelect::index, IndexSelect::out),
           SameDtype(IndexSelect::self, IndexSelect::out), DtypeIn(IndexSelect::index, kIndexTypes))
    .Tolerance("exact")
    .Like("torch.index_select(self, dim, index)")
    .Does([](const Call& c) -> Status {
      const Tensor& self = c.args[IndexSelect::self];
      Tensor index = c.args[IndexSelect::index];
      // A vector of self's rank stays a vector in out, also when index is 0-d.
      if (index.rank == 0 && self.rank > 0) {
        index.rank = 1;
        index.shape[0] = 1;
        index.strides[0] = 1;
      }
      return CheckIndex(c, IndexSelect::index, IndexSelect::self,
                        simd::IndexSelect(self, WrapDim(c.args[IndexSelect::dim], self.rank), index, c.args[IndexSelect::out], c.parallel));
    });
NPU_OP(Embedding) = Op<Embedding>()
    .Rules(RankIs(Embedding::weight, 2), AnyShape(Embedding::out), SameDtype(Embedding::weight, Embedding::out),
           DtypeIn(Embedding::indices, kInts))
    .Tolerance("exact")
    .Like("torch.nn.functional.embedding(indices, weight)")
    .Prepares([](Planning& plan) -> Status {
      Dims wanted = DimsOf(plan.args[Embedding::indices]);
      if (wanted.rank == kMaxRank) return plan.Refuse("indices has {} dimensions, which leaves none for the result.", wanted.rank);
      wanted.Push(plan.args[Embedding::weight].shape[1]);
      return WantShape(plan, Embedding::out, wanted, "it holds one row of weight for each index");
    })
    .Does([](const Call& c) -> Status {
      return CheckIndex(c, Embedding::indices, Embedding::weight,
                        simd::IndexSelect(c.args[Embedding::weight], 0, c.args[Embedding::indices], c.args[Embedding::out], c.parallel));
    });
NPU_OP(Index) = Op<Index>()
    .Rules(AnyShape(Index::out), SameDtype(Index::self, Index::out))
    .Uses(Index::indices)
    .Samples(Index::indices,
             "[[torch.tensor([0, -1, 0])], [torch.tensor([[0], [-1]])], [torch.arange(self.numel()).view(self.shape) % 3 == 0], "
             "[torch.arange(self.size(0)) % 2 == 0]]")
    .Tolerance("exact")
    .Like("torch.ops.aten.index(self, [None if i is None or i.numel() == 0 else i for i in indices])")
    .Prepares([](Planning& plan) -> Status {
      const Tensor& self = plan.args[Index::self];
      // An index without elements looks like an undefined one; then nothing is selected.
      if (plan.args[Index::out].Numel() == 0 || HasMask(plan.args[Index::indices])) return {};
      IndexList list;
      NPU_TRY(ReadIndexList(plan.op.name, plan.args[Index::indices], self.rank, &list));
      return WantShape(plan, Index::out, IndexedShape(self, list), "that is not the shape of the selection");
    })
    .Does([](const Call& c) -> Status {
      const Tensor& self = c.args[Index::self];
      if (c.args[Index::out].Numel() == 0) return {};
      IndexList list;
      NPU_TRY(ReadIndexList(c, c.args[Index::indices], self, &list));
      const Dims selected = IndexedShape(self, list);
      if (!npu::SameShape(c.args[Index::out].Shape(), selected.Span())) {
        return Error(Code::kTaskException, "{}: out has shape {}, but the selection has {}.", c.op.name,
                     ShapeText(c.args[Index::out].Shape()), ShapeText(selected.Span()))
            .Remedy("Give out as many places as the mask has true elements.");
      }
      return CheckIndex(c, Index::indices, Index::self, simd::IndexGet(self, list.pointers, c.args[Index::out], c.parallel));
    });

using abi::Take;
NPU_OP(Take) = Op<Take>()
    .Rules(SameShape(Take::index, Take::out), SameDtype(Take::self, Take::out), DtypeIn(Take::index, kIndexTypes))
    .Tolerance("exact")
    .Like("torch.take(self, index)")
    .Does([](const Call& c) -> Status {
      const simd::DenseIn self(c.args[Take::self], c.parallel);
      Tensor flat = *self;
      flat.rank = 1;
      flat.shape[0] = self->Numel();
      flat.strides[0] = 1;
      const Tensor* index[] = {&c.args[Take::index]};
      return CheckIndex(c, Take::index, Take::self, simd::IndexGet(flat, index, c.args[Take::out], c.parallel));
    });

using abi::SearchSorted, abi::SearchSorteds, abi::Bucketize;
NPU_OP(SearchSorted) = Op<SearchSorted>()
    .Rules(DtypeIn(SearchSorted::sortedSequence, kNumbers), DtypeIn(SearchSorted::self, kNumbers),
           SameShape(SearchSorted::self, SearchSorted::out), DtypeIn(SearchSorted::out, kIndexTypes),
           SameShape(SearchSorted::sortedSequence, SearchSorted::sorter))
    .Uses(SearchSorted::outInt32, SearchSorted::right)
    .Tolerance("exact")
    .Like("torch.searchsorted(sortedSequence, self, out_int32=outInt32, right=right, sorter=sorter)")
    .Prepares([](Planning& plan) -> Status {
      const Tensor &sorted = plan.args[SearchSorted::sortedSequence], &self = plan.args[SearchSorted::self];
      if (sorted.rank <= 1) return {};
      const auto n = static_cast<size_t>(sorted.rank - 1);
      if (self.rank == sorted.rank && npu::SameShape(sorted.Shape().first(n), self.Shape().first(n))) return {};
      return plan.Refuse("sortedSequence has shape {}, but self has shape {}.", ShapeText(sorted.Shape()), ShapeText(self.Shape()))
          .Remedy("They must agree in all dimensions but the last.");
    })
    .Does([](const Call& c) -> Status {
      simd::SearchSorted(c.args[SearchSorted::sortedSequence], c.args[SearchSorted::self], c.args[SearchSorted::right],
                         c.args[SearchSorted::sorter], c.args[SearchSorted::out], c.parallel);
      return {};
    });
NPU_OP(SearchSorteds) = Op<SearchSorteds>()
    .Rules(DtypeIn(SearchSorteds::sortedSequence, kNumbers), RankIs(SearchSorteds::sortedSequence, 1), AnyShape(SearchSorteds::out),
           DtypeIn(SearchSorteds::out, kIndexTypes), SameShape(SearchSorteds::sortedSequence, SearchSorteds::sorter))
    .Uses(SearchSorteds::self, SearchSorteds::outInt32, SearchSorteds::right)
    .Tolerance("exact")
    .Like("torch.searchsorted(sortedSequence, self, out_int32=outInt32, right=right, sorter=sorter)")
    .Prepares([](Planning& plan) -> Status {
      if (plan.args[SearchSorteds::out].Numel() == 1) return {};
      return WantShape(plan, SearchSorteds::out, Dims{}, "the result is one number");
    })
    .Does([](const Call& c) -> Status {
      Scalar s = c.args[SearchSorteds::self];
      Tensor value{s.Floating() ? static_cast<void*>(&s.re) : &s.i, s.Floating() ? DType::f64 : DType::i64, 0, {}, {}};
      Tensor out = c.args[SearchSorteds::out];
      out.rank = 0;
      simd::SearchSorted(c.args[SearchSorteds::sortedSequence], value, c.args[SearchSorteds::right], c.args[SearchSorteds::sorter],
                         out, c.parallel);
      return {};
    });
NPU_OP(Bucketize) = Op<Bucketize>()
    .Rules(DtypeIn(Bucketize::self, kNumbers), DtypeIn(Bucketize::boundaries, kNumbers), RankIs(Bucketize::boundaries, 1),
           SameShape(Bucketize::self, Bucketize::out), DtypeIn(Bucketize::out, kIndexTypes))
    .Uses(Bucketize::outInt32, Bucketize::right)
    .Tolerance("exact")
    .Like("torch.bucketize(self, boundaries, out_int32=outInt32, right=right)")
    .Does([](const Call& c) -> Status {
      simd::SearchSorted(c.args[Bucketize::boundaries], c.args[Bucketize::self], c.args[Bucketize::right], nullptr,
                         c.args[Bucketize::out], c.parallel);
      return {};
    });

using abi::OneHot;
NPU_OP(OneHot) = Op<OneHot>()
    .Rules(DtypeIn(OneHot::self, kInts), AnyShape(OneHot::out), DtypeIn(OneHot::out, kReals))
    .Uses(OneHot::numClasses, OneHot::onValue, OneHot::offValue, OneHot::axis)
    .Tolerance("exact")
    .Like("torch.nn.functional.one_hot(self.long(), numClasses)")
    .Prepares([](Planning& plan) -> Status {
      const Tensor& self = plan.args[OneHot::self];
      const int64_t axis = plan.args[OneHot::axis];
      if (axis < -1 || axis > self.rank) return plan.Refuse("axis is {}, but self has shape {}.", axis, ShapeText(self.Shape()));
      if (self.rank == kMaxRank) return plan.Refuse("self has {} dimensions, which leaves none for the classes.", self.rank);
      Dims wanted;
      for (int d = 0; d <= self.rank; ++d) {
        if (d == axis || (axis == -1 && d == self.rank)) wanted.Push(plan.args[OneHot::numClasses]);
        if (d < self.rank) wanted.Push(self.shape[static_cast<size_t>(d)]);
      }
      return WantShape(plan, OneHot::out, wanted, "it has the classes along the axis");
    })
    .Does([](const Call& c) -> Status {
      const Tensor &self = c.args[OneHot::self], &out = c.args[OneHot::out];
      const Tensor *on = c.args[OneHot::onValue], *off = c.args[OneHot::offValue];
      const int axis = c.args[OneHot::axis] == -1 ? self.rank : static_cast<int>(c.args[OneHot::axis]);
      // The values in out's type.
      alignas(8) std::byte on_value[16] = {}, off_value[16] = {};
      const double one = on != nullptr ? simd::LoadDouble(on->data, on->dtype) : 1;
      const double zero = off != nullptr ? simd::LoadDouble(off->data, off->dtype) : 0;
      simd::Write(&one, 1, on_value, out.dtype, 1);
      simd::Write(&zero, 1, off_value, out.dtype, 1);
      simd::Fill(off_value, out, c.parallel);
      // self with the class axis as size 1; out of range classes stay off, as the real operator has it.
      simd::Walk<2> walk;
      for (int d = 0; d < self.rank; ++d) {
        walk.Add(self.shape[static_cast<size_t>(d)], {self.strides[static_cast<size_t>(d)], out.strides[static_cast<size_t>(d < axis ? d : d + 1)]});
      }
      walk.Merge();
      const int64_t classes = out.shape[static_cast<size_t>(axis)], step = out.strides[static_cast<size_t>(axis)];
      const auto item = static_cast<size_t>(ItemSize(out.dtype));
      c.parallel.For(self.Numel(), 16384, [&](int64_t begin, int64_t end) {
        simd::Walk<2> w = walk;
        w.Seek(begin);
        for (int64_t i = begin; i < end; ++i, w.Next()) {
          const int64_t k = simd::LoadInt(simd::At(self.data, self.dtype, w.offset[0]), self.dtype);
          if (k >= 0 && k < classes) std::memcpy(simd::At(out.data, out.dtype, w.offset[1] + k * step), on_value, item);
        }
      });
      return {};
    });

}  // namespace npu::ops
