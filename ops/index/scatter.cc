// Writing by index.
#include "gen/abi/ops.h"
#include "kernels/simd/copy/copy.h"
#include "kernels/simd/index/index.h"
#include "kernels/simd/rows/convert.h"
#include "kernels/simd/rows/dense.h"
#include "ops/index/rules.h"

namespace npu::ops {

using namespace rule;  // NOLINT(google-build-using-namespace)
using simd::Combine;

namespace {

// The real operators' numbers: 0 replace, 1 add, 2 multiply, 3 maximum, 4 minimum, 5 mean.
Status ReadCombine(const Planning& plan, int64_t reduce) {
  if (reduce >= 0 && reduce <= 5) return {};
  return plan.Refuse("reduce is {}.", reduce)
      .Remedy("Use 0 replace, 1 add, 2 multiply, 3 maximum, 4 minimum or 5 mean.");
}
Status ReadCombine(const Planning& plan, int64_t reduce, const Tensor& self) {
  NPU_TRY(ReadCombine(plan, reduce));
  if (IsComplex(self.dtype) && reduce > 1)
    return NotYet(plan.op.name, "complex numbers are set and added by index, not multiplied or compared");
  return {};
}
Status RealFactor(const Planning& plan, const Scalar& alpha) {
  if (alpha.im != 0) return NotYet(plan.op.name, "a complex alpha is not multiplied in");
  return {};
}
Combine AsCombine(int64_t reduce) { return static_cast<Combine>(reduce); }

Status RunScatter(const Call& c, const Tensor& out, int64_t dim, Token index_name, const Tensor& index, Token self_name,
                  const Tensor& src, Combine combine, bool include_self) {
  return CheckIndex(c, index_name, self_name,
                    simd::Scatter(out, WrapDim(dim, out.rank), index, src, combine, include_self, c.parallel));
}

// A number in a tensor's type, seen as a tensor of the index's shape.
struct NumberTensor {
  alignas(16) std::byte value[16] = {};
  Tensor tensor;
  NumberTensor(const Scalar& s, DType type, std::span<const int64_t> shape) {
    const DType part = type == DType::c64 ? DType::f32 : type == DType::c128 ? DType::f64 : type;
    if (part != type) {
      simd::Write(&s.re, 1, value, part, 1);
      simd::Write(&s.im, 1, value + ItemSize(part), part, 1);
    } else if (s.Floating() || s.Complex()) {
      simd::Write(&s.re, 1, value, type, 1);
    } else {
      simd::Write(&s.i, 1, value, type, 1);
    }
    tensor = Tensor{value, type, 0, {}, {}};
    tensor = Expanded(tensor, shape);
  }
};

}  // namespace

using abi::Scatter, abi::InplaceScatter, abi::ScatterAdd, abi::ScatterReduce, abi::InplaceScatterReduce;
NPU_OP(Scatter) = Op<Scatter>()
                      .Rules(DtypeIn(Scatter::self, kReals | kComplexes),
                             ScatterShape(Scatter::self, Scatter::dim, Scatter::index, Scatter::src),
                             SameDtype(Scatter::self, Scatter::src), SameShape(Scatter::self, Scatter::out),
                             SameDtype(Scatter::self, Scatter::out), DtypeIn(Scatter::index, kIndexTypes))
                      .Uses(Scatter::reduce)
                      .Samples(Scatter::reduce, "[0, 1, 2]")
                      .Tolerance("accumulated")
                      .Like(
                          "torch.scatter(self, dim, index, src) if reduce == 0 else torch.scatter(self, dim, index, "
                          "src, reduce=['', 'add', 'multiply'][reduce])")
                      .Prepares([](Planning& plan) { return ReadCombine(plan, plan.args[Scatter::reduce], plan.args[Scatter::self]); })
                      .Does([](const Call& c) -> Status {
                        StartFrom(c, c.args[Scatter::self], c.args[Scatter::out]);
                        return RunScatter(c, c.args[Scatter::out], c.args[Scatter::dim], Scatter::index,
                                          c.args[Scatter::index], Scatter::self, c.args[Scatter::src],
                                          AsCombine(c.args[Scatter::reduce]), true);
                      });
NPU_OP(InplaceScatter) =
    Op<InplaceScatter>()
        .Rules(DtypeIn(InplaceScatter::selfRef, kReals | kComplexes),
               ScatterShape(InplaceScatter::selfRef, InplaceScatter::dim, InplaceScatter::index, InplaceScatter::src),
               SameDtype(InplaceScatter::selfRef, InplaceScatter::src), DtypeIn(InplaceScatter::index, kIndexTypes))
        .Uses(InplaceScatter::reduce)
        .Samples(InplaceScatter::reduce, "[0, 1, 2]")
        .Tolerance("accumulated")
        .Like(
            "selfRef.scatter_(dim, index, src) if reduce == 0 else selfRef.scatter_(dim, index, src, reduce=['', "
            "'add', 'multiply'][reduce])")
        .Prepares([](Planning& plan) { return ReadCombine(plan, plan.args[InplaceScatter::reduce], plan.args[InplaceScatter::selfRef]); })
        .Does([](const Call& c) -> Status {
          return RunScatter(c, c.args[InplaceScatter::selfRef], c.args[InplaceScatter::dim], InplaceScatter::index,
                            c.args[InplaceScatter::index], InplaceScatter::selfRef, c.args[InplaceScatter::src],
                            AsCombine(c.args[InplaceScatter::reduce]), true);
        });
NPU_OP(ScatterAdd) = Op<ScatterAdd>()
                         .Rules(DtypeIn(ScatterAdd::self, kReals | kComplexes),
                                ScatterShape(ScatterAdd::self, ScatterAdd::dim, ScatterAdd::index, ScatterAdd::src),
                                SameDtype(ScatterAdd::self, ScatterAdd::src),
                                SameShape(ScatterAdd::self, ScatterAdd::out),
                                SameDtype(ScatterAdd::self, ScatterAdd::out), DtypeIn(ScatterAdd::index, kIndexTypes))
                         .Tolerance("accumulated")
                         .Like("torch.scatter_add(self, dim, index, src)")
                         .Does([](const Call& c) -> Status {
                           StartFrom(c, c.args[ScatterAdd::self], c.args[ScatterAdd::out]);
                           return RunScatter(c, c.args[ScatterAdd::out], c.args[ScatterAdd::dim], ScatterAdd::index,
                                             c.args[ScatterAdd::index], ScatterAdd::self, c.args[ScatterAdd::src],
                                             Combine::kAdd, true);
                         });
NPU_OP(ScatterReduce) =
    Op<ScatterReduce>()
        .Rules(DtypeIn(ScatterReduce::self, kReals),
               ScatterShape(ScatterReduce::self, ScatterReduce::dim, ScatterReduce::index, ScatterReduce::src),
               SameDtype(ScatterReduce::self, ScatterReduce::src), SameShape(ScatterReduce::self, ScatterReduce::out),
               SameDtype(ScatterReduce::self, ScatterReduce::out), DtypeIn(ScatterReduce::index, kIndexTypes))
        .Uses(ScatterReduce::reduce, ScatterReduce::includeSelf)
        .Samples(ScatterReduce::reduce, "[1, 2, 3, 4, 5]")
        .Tolerance("accumulated")
        .Like(
            "torch.scatter_reduce(self, dim, index, src, ['', 'sum', 'prod', 'amax', 'amin', 'mean'][reduce], "
            "include_self=includeSelf)")
        .Prepares([](Planning& plan) { return ReadCombine(plan, plan.args[ScatterReduce::reduce]); })
        .Does([](const Call& c) -> Status {
          StartFrom(c, c.args[ScatterReduce::self], c.args[ScatterReduce::out]);
          return RunScatter(c, c.args[ScatterReduce::out], c.args[ScatterReduce::dim], ScatterReduce::index,
                            c.args[ScatterReduce::index], ScatterReduce::self, c.args[ScatterReduce::src],
                            AsCombine(c.args[ScatterReduce::reduce]), c.args[ScatterReduce::includeSelf]);
        });
NPU_OP(InplaceScatterReduce) =
    Op<InplaceScatterReduce>()
        .Rules(DtypeIn(InplaceScatterReduce::selfRef, kReals),
               ScatterShape(InplaceScatterReduce::selfRef, InplaceScatterReduce::dim, InplaceScatterReduce::index,
                            InplaceScatterReduce::src),
               SameDtype(InplaceScatterReduce::selfRef, InplaceScatterReduce::src),
               DtypeIn(InplaceScatterReduce::index, kIndexTypes))
        .Uses(InplaceScatterReduce::reduce, InplaceScatterReduce::includeSelf)
        .Samples(InplaceScatterReduce::reduce, "[1, 2, 3, 4, 5]")
        .Tolerance("accumulated")
        .Like(
            "selfRef.scatter_reduce_(dim, index, src, ['', 'sum', 'prod', 'amax', 'amin', 'mean'][reduce], "
            "include_self=includeSelf)")
        .Prepares([](Planning& plan) { return ReadCombine(plan, plan.args[InplaceScatterReduce::reduce]); })
        .Does([](const Call& c) -> Status {
          return RunScatter(c, c.args[InplaceScatterReduce::selfRef], c.args[InplaceScatterReduce::dim],
                            InplaceScatterReduce::index, c.args[InplaceScatterReduce::index],
                            InplaceScatterReduce::selfRef, c.args[InplaceScatterReduce::src],
                            AsCombine(c.args[InplaceScatterReduce::reduce]), c.args[InplaceScatterReduce::includeSelf]);
        });

using abi::ScatterValue, abi::InplaceScatterValue;
NPU_OP(ScatterValue) =
    Op<ScatterValue>()
        .Rules(DtypeIn(ScatterValue::self, kReals | kComplexes),
               ScatterShape(ScatterValue::self, ScatterValue::dim, ScatterValue::index, TensorToken{}),
               SameShape(ScatterValue::self, ScatterValue::out), SameDtype(ScatterValue::self, ScatterValue::out),
               DtypeIn(ScatterValue::index, kIndexTypes))
        .Uses(ScatterValue::value, ScatterValue::reduce)
        .Samples(ScatterValue::reduce, "[0, 1, 2]")
        .Tolerance("accumulated")
        .Like(
            "torch.scatter(self, dim, index, value) if reduce == 0 else torch.scatter(self, dim, index, value, "
            "reduce=['', 'add', 'multiply'][reduce])")
        .Prepares([](Planning& plan) { return ReadCombine(plan, plan.args[ScatterValue::reduce], plan.args[ScatterValue::self]); })
        .Does([](const Call& c) -> Status {
          StartFrom(c, c.args[ScatterValue::self], c.args[ScatterValue::out]);
          const Tensor &out = c.args[ScatterValue::out], &index = c.args[ScatterValue::index];
          const NumberTensor value(c.args[ScatterValue::value], out.dtype, index.Shape());
          return RunScatter(c, out, c.args[ScatterValue::dim], ScatterValue::index, index, ScatterValue::self,
                            value.tensor, AsCombine(c.args[ScatterValue::reduce]), true);
        });
NPU_OP(InplaceScatterValue) =
    Op<InplaceScatterValue>()
        .Rules(DtypeIn(InplaceScatterValue::selfRef, kReals | kComplexes),
               ScatterShape(InplaceScatterValue::selfRef, InplaceScatterValue::dim, InplaceScatterValue::index,
                            TensorToken{}),
               DtypeIn(InplaceScatterValue::index, kIndexTypes))
        .Uses(InplaceScatterValue::value, InplaceScatterValue::reduce)
        .Samples(InplaceScatterValue::reduce, "[0, 1, 2]")
        .Tolerance("accumulated")
        .Like(
            "selfRef.scatter_(dim, index, value) if reduce == 0 else selfRef.scatter_(dim, index, value, reduce=['', "
            "'add', 'multiply'][reduce])")
        .Prepares([](Planning& plan) { return ReadCombine(plan, plan.args[InplaceScatterValue::reduce], plan.args[InplaceScatterValue::selfRef]); })
        .Does([](const Call& c) -> Status {
          const Tensor &self = c.args[InplaceScatterValue::selfRef], &index = c.args[InplaceScatterValue::index];
          const NumberTensor value(c.args[InplaceScatterValue::value], self.dtype, index.Shape());
          return RunScatter(c, self, c.args[InplaceScatterValue::dim], InplaceScatterValue::index, index,
                            InplaceScatterValue::selfRef, value.tensor, AsCombine(c.args[InplaceScatterValue::reduce]),
                            true);
        });

using abi::IndexAdd, abi::IndexAddV2;
NPU_OP(IndexAdd) = Op<IndexAdd>()
                       .Rules(DtypeIn(IndexAdd::self, kReals | kComplexes),
                              IndexVector(IndexAdd::self, IndexAdd::dim, IndexAdd::index, IndexAdd::source),
                              SameDtype(IndexAdd::self, IndexAdd::source), SameShape(IndexAdd::self, IndexAdd::out),
                              SameDtype(IndexAdd::self, IndexAdd::out), DtypeIn(IndexAdd::index, kIndexTypes))
                       .Prepares([](Planning& p) { return RealFactor(p, p.args[IndexAdd::alpha]); })
                       .Uses(IndexAdd::alpha)
                       .Tolerance("accumulated")
                       .Like("torch.index_add(self, dim, index, source, alpha=alpha)")
                       .Does([](const Call& c) -> Status {
                         StartFrom(c, c.args[IndexAdd::self], c.args[IndexAdd::out]);
                         const Tensor& out = c.args[IndexAdd::out];
                         return CheckIndex(
                             c, IndexAdd::index, IndexAdd::self,
                             simd::IndexAdd(out, WrapDim(c.args[IndexAdd::dim], out.rank), c.args[IndexAdd::index],
                                            c.args[IndexAdd::source], c.args[IndexAdd::alpha].re, c.parallel));
                       });
NPU_OP(IndexAddV2) = Op<IndexAddV2>()
                         .Rules(DtypeIn(IndexAddV2::self, kReals | kComplexes),
                                IndexVector(IndexAddV2::self, IndexAddV2::dim, IndexAddV2::index, IndexAddV2::source),
                                SameDtype(IndexAddV2::self, IndexAddV2::source),
                                SameShape(IndexAddV2::self, IndexAddV2::out),
                                SameDtype(IndexAddV2::self, IndexAddV2::out), DtypeIn(IndexAddV2::index, kIndexTypes))
                         .Prepares([](Planning& p) { return RealFactor(p, p.args[IndexAddV2::alpha]); })
                         .Uses(IndexAddV2::alpha, IndexAddV2::mode)
                         .Tolerance("accumulated")
                         .Like("torch.index_add(self, dim, index, source, alpha=alpha)")
                         .Does([](const Call& c) -> Status {
                           StartFrom(c, c.args[IndexAddV2::self], c.args[IndexAddV2::out]);
                           const Tensor& out = c.args[IndexAddV2::out];
                           return CheckIndex(c, IndexAddV2::index, IndexAddV2::self,
                                             simd::IndexAdd(out, WrapDim(c.args[IndexAddV2::dim], out.rank),
                                                            c.args[IndexAddV2::index], c.args[IndexAddV2::source],
                                                            c.args[IndexAddV2::alpha].re, c.parallel));
                         });

namespace {

Status FillAt(const Call& c, const Tensor& out, int64_t dim, std::span<const int64_t> index, const Scalar& value,
              Token index_name, Token self_name) {
  const NumberTensor number(value, out.dtype, {});
  return CheckIndex(c, index_name, self_name,
                    simd::IndexFill(out, WrapDim(dim, out.rank), index, number.value, c.parallel));
}
std::vector<int64_t> IndexValues(const Tensor& t) {
  std::vector<int64_t> v(static_cast<size_t>(t.Numel()));
  simd::LoadDense(t, v.data());
  return v;
}

}  // namespace

using abi::IndexFill, abi::InplaceIndexFill, abi::IndexFillTensor, abi::InplaceIndexFillTensor;
NPU_OP(IndexFill) = Op<IndexFill>()
                        .Rules(DtypeIn(IndexFill::self, kReals | kComplexes),
                               IndexVector(IndexFill::self, IndexFill::dim, IndexFill::index, TensorToken{}),
                               SameShape(IndexFill::self, IndexFill::out), SameDtype(IndexFill::self, IndexFill::out),
                               DtypeIn(IndexFill::index, kIndexTypes))
                        .Uses(IndexFill::value)
                        .Tolerance("exact")
                        .Like("torch.index_fill(self, dim, index, value)")
                        .Does([](const Call& c) -> Status {
                          StartFrom(c, c.args[IndexFill::self], c.args[IndexFill::out]);
                          return FillAt(c, c.args[IndexFill::out], c.args[IndexFill::dim],
                                        IndexValues(c.args[IndexFill::index]), c.args[IndexFill::value],
                                        IndexFill::index, IndexFill::self);
                        });
NPU_OP(InplaceIndexFill) = Op<InplaceIndexFill>()
                               .Rules(DtypeIn(InplaceIndexFill::selfRef, kReals | kComplexes),
                                      IndexVector(InplaceIndexFill::selfRef, InplaceIndexFill::dim,
                                                  InplaceIndexFill::index, TensorToken{}),
                                      DtypeIn(InplaceIndexFill::index, kIndexTypes))
                               .Uses(InplaceIndexFill::value)
                               .Tolerance("exact")
                               .Like("selfRef.index_fill_(dim, index, value)")
                               .Does([](const Call& c) -> Status {
                                 return FillAt(c, c.args[InplaceIndexFill::selfRef], c.args[InplaceIndexFill::dim],
                                               IndexValues(c.args[InplaceIndexFill::index]),
                                               c.args[InplaceIndexFill::value], InplaceIndexFill::index,
                                               InplaceIndexFill::selfRef);
                               });
NPU_OP(IndexFillTensor) = Op<IndexFillTensor>()
                              .Rules(DtypeIn(IndexFillTensor::self, kReals | kComplexes),
                                     SameShape(IndexFillTensor::self, IndexFillTensor::out),
                                     SameDtype(IndexFillTensor::self, IndexFillTensor::out),
                                     DimInRange(IndexFillTensor::dim, IndexFillTensor::self))
                              .Uses(IndexFillTensor::value, IndexFillTensor::index)
                              .Samples(IndexFillTensor::index, "[[0], [0, -1]]")
                              .Tolerance("exact")
                              .Like("torch.index_fill(self, dim, torch.tensor(index), value)")
                              .Does([](const Call& c) -> Status {
                                StartFrom(c, c.args[IndexFillTensor::self], c.args[IndexFillTensor::out]);
                                return FillAt(c, c.args[IndexFillTensor::out], c.args[IndexFillTensor::dim],
                                              c.args[IndexFillTensor::index], c.args[IndexFillTensor::value],
                                              IndexFillTensor::index, IndexFillTensor::self);
                              });
NPU_OP(InplaceIndexFillTensor) = Op<InplaceIndexFillTensor>()
                                     .Rules(DtypeIn(InplaceIndexFillTensor::selfRef, kReals | kComplexes),
                                            DimInRange(InplaceIndexFillTensor::dim, InplaceIndexFillTensor::selfRef))
                                     .Uses(InplaceIndexFillTensor::value, InplaceIndexFillTensor::index)
                                     .Samples(InplaceIndexFillTensor::index, "[[0], [0, -1]]")
                                     .Tolerance("exact")
                                     .Like("selfRef.index_fill_(dim, torch.tensor(index), value)")
                                     .Does([](const Call& c) -> Status {
                                       return FillAt(c, c.args[InplaceIndexFillTensor::selfRef],
                                                     c.args[InplaceIndexFillTensor::dim],
                                                     c.args[InplaceIndexFillTensor::index],
                                                     c.args[InplaceIndexFillTensor::value],
                                                     InplaceIndexFillTensor::index, InplaceIndexFillTensor::selfRef);
                                     });

using abi::IndexPutImpl;
NPU_OP(IndexPutImpl) =
    Op<IndexPutImpl>()
        .Rules(DtypeIn(IndexPutImpl::selfRef, kReals | kComplexes), DtypeIn(IndexPutImpl::values, kReals | kComplexes))
        .Uses(IndexPutImpl::indices, IndexPutImpl::accumulate, IndexPutImpl::unsafe)
        .Samples(IndexPutImpl::indices, "[[torch.tensor([0, -1])], [torch.tensor([[0], [1]])]]")
        .Tolerance("accumulated")
        .Like("selfRef.index_put_([None if i is None or i.numel() == 0 else i for i in indices], values, accumulate)")
        .Prepares([](Planning& plan) -> Status {
          const Tensor &self = plan.args[IndexPutImpl::selfRef], &values = plan.args[IndexPutImpl::values];
          if (values.Numel() == 0) return {};
          if (IsComplex(self.dtype) || IsComplex(values.dtype)) {
            if (self.dtype != values.dtype) {
              return plan.Refuse("values is {}, but selfRef is {}.", Name(values.dtype), Name(self.dtype))
                  .Remedy("Cast values to the type of selfRef.");
            }
          }
          if (HasMask(plan.args[IndexPutImpl::indices])) return {};
          IndexList list;
          NPU_TRY(ReadIndexList(plan.op.name, plan.args[IndexPutImpl::indices], self.rank, &list));
          // Clients name at least one place. An index without elements looks like an undefined one: when there is no
          // other, a mask was false everywhere and nothing is put.
          if (list.dims.empty()) return {};
          const Dims wanted = IndexedShape(self, list);
          if (IsComplex(self.dtype) && wanted.rank == kMaxRank)
            return plan.Refuse("complex values of {} dimensions are put; at most {} are supported.", wanted.rank, kMaxRank - 1);
          if (npu::ExpandsTo(values.Shape(), wanted.Span())) return {};
          return plan
              .Refuse("values has shape {}, which cannot be expanded to that of the selection, {}.",
                      ShapeText(values.Shape()), ShapeText(wanted.Span()))
              .Remedy("Sizes must be equal or 1, counted from the last dimension.");
        })
        .Does([](const Call& c) -> Status {
          const Tensor& self = c.args[IndexPutImpl::selfRef];
          if (c.args[IndexPutImpl::values].Numel() == 0) return {};
          IndexList list;
          NPU_TRY(ReadIndexList(c, c.args[IndexPutImpl::indices], self, &list));
          if (list.dims.empty() || list.shape.Numel() == 0) return {};
          const Dims selected = IndexedShape(self, list);
          if (IsComplex(self.dtype) && selected.rank == kMaxRank)
            return NotYet(c.op.name, fmt::format("complex values of {} dimensions are not put", selected.rank));
          if (!npu::ExpandsTo(c.args[IndexPutImpl::values].Shape(), selected.Span())) {
            return Error(Code::kTaskException, "{}: values has shape {}, which cannot be expanded to the selection, {}.", c.op.name,
                         ShapeText(c.args[IndexPutImpl::values].Shape()), ShapeText(selected.Span()))
                .Remedy("Give one value, or as many as the mask has true elements.");
          }
          const Tensor values = Expanded(c.args[IndexPutImpl::values], selected.Span());
          return CheckIndex(c, IndexPutImpl::indices, IndexPutImpl::selfRef,
                            simd::IndexPut(self, list.pointers, values, c.args[IndexPutImpl::accumulate], c.parallel));
        });

using abi::EmbeddingDenseBackward;
NPU_OP(EmbeddingDenseBackward) =
    Op<EmbeddingDenseBackward>()
        .Rules(DtypeIn(EmbeddingDenseBackward::grad, kFloats), DtypeIn(EmbeddingDenseBackward::indices, kInts),
               AnyShape(EmbeddingDenseBackward::out), DtypeIn(EmbeddingDenseBackward::out, kFloats))
        .Uses(EmbeddingDenseBackward::numWeights, EmbeddingDenseBackward::paddingIdx,
              EmbeddingDenseBackward::scaleGradByFreq)
        .Tolerance("accumulated")
        .Like("torch.ops.aten.embedding_dense_backward(grad, indices, numWeights, paddingIdx, scaleGradByFreq)")
        .Prepares([](Planning& plan) -> Status {
          const Tensor &grad = plan.args[EmbeddingDenseBackward::grad],
                       &indices = plan.args[EmbeddingDenseBackward::indices];
          if (grad.rank != indices.rank + 1 ||
              !npu::SameShape(grad.Shape().first(static_cast<size_t>(indices.rank)), indices.Shape())) {
            return plan
                .Refuse("grad has shape {}, but indices has shape {}.", ShapeText(grad.Shape()),
                        ShapeText(indices.Shape()))
                .Remedy("grad is indices with one more dimension.");
          }
          Dims wanted;
          wanted.Push(plan.args[EmbeddingDenseBackward::numWeights]);
          wanted.Push(grad.shape[static_cast<size_t>(grad.rank - 1)]);
          return WantShape(plan, EmbeddingDenseBackward::out, wanted, "it is the gradient of the whole table");
        })
        .Does([](const Call& c) -> Status {
          const Args& a = c.args;
          return CheckIndex(
              c, EmbeddingDenseBackward::indices, EmbeddingDenseBackward::out,
              simd::EmbeddingBackward(a[EmbeddingDenseBackward::grad], a[EmbeddingDenseBackward::indices],
                                      a[EmbeddingDenseBackward::paddingIdx], a[EmbeddingDenseBackward::scaleGradByFreq],
                                      a[EmbeddingDenseBackward::out], c.parallel));
        });

}  // namespace npu::ops
