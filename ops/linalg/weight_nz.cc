// Products whose second matrix lies in FRACTAL_NZ: it is laid out plainly in scratch, then multiplied as any other.
#include "ops/linalg/weight_nz.h"
#include "gen/abi/ops.h"
#include "ops/common/format.h"
#include "ops/core/formats.h"

namespace npu::ops {

// The matrices as they were before the view was transposed: rows and columns of the storage.
Status ReadWeight(Planning& p, TensorToken weight, Weight* out) {
  *out = {};
  if (!format::IsPrivate(static_cast<int32_t>(FormatOf(p.args, weight)))) return {};
  if (FormatOf(p.args, weight) != format::kNZ)
    return NotYet(p.op.name, "weights are read in ND and FRACTAL_NZ, not in other formats of the card");
  const Tensor& view = *p.args.Maybe(weight);
  if (view.rank < 2)
    return p.Refuse("{} has {} dimensions.", p.ParamName(weight), view.rank)
        .Remedy("It is a matrix or a batch of them.");
  out->base = MakeContiguous(nullptr, view.dtype, view.Shape());
  const auto r = static_cast<size_t>(view.rank);
  if (view.strides[r - 2] == 1 && view.strides[r - 1] != 1) std::swap(out->base.shape[r - 2], out->base.shape[r - 1]);
  out->base = MakeContiguous(nullptr, view.dtype, out->base.Shape());
  NPU_TRY(format::Read(p.op.name, format::kNZ, out->base.Shape(), StorageOf(p.args, weight).Shape(), &out->layout));
  out->at = p.NeedScratch(static_cast<uint64_t>(view.Numel() * ItemSize(view.dtype)));
  out->packed = true;
  return {};
}

Tensor PlainWeight(const Call& c, TensorToken weight, const Weight& w) {
  Tensor view = *c.args.Maybe(weight);
  if (!w.packed) return view;
  Tensor base = w.base;
  base.data = c.scratch + w.at;
  format::Copy(base, StorageOf(c.args, weight), w.layout, false, c.parallel);
  const auto r = static_cast<size_t>(view.rank);
  const bool turned = view.strides[r - 2] == 1 && view.strides[r - 1] != 1;
  view.data = base.data;
  view.strides = base.strides;
  if (turned) std::swap(view.strides[r - 2], view.strides[r - 1]);
  return view;
}

namespace {

template <class A>
Status PrepareProduct(Planning& p, TensorToken a, TensorToken out) {
  Weight w;
  NPU_TRY(ReadWeight(p, A::mat2, &w));
  for (const TensorToken t : {a, out}) {
    if (format::IsPrivate(static_cast<int32_t>(FormatOf(p.args, t))))
      return p.Refuse("{} has the format {}.", p.ParamName(t), FormatOf(p.args, t))
          .Remedy("Only the weight may have a format of the card.");
  }
  p.NewState(w);
  ProductCost(p, *p.args.Maybe(a), p.args[A::mat2], *p.args.Maybe(out));
  return {};
}

}  // namespace

using abi::MatmulWeightNz, abi::BatchMatMulWeightNz, abi::AddmmWeightNz;

NPU_OP(MatmulWeightNz) = Op<MatmulWeightNz>()
                             .Imm(kTakesFormats)
                             .Rules(rule::Product(MatmulWeightNz::self, MatmulWeightNz::mat2, MatmulWeightNz::out, 0))
                             .Uses(MatmulWeightNz::cubeMathType)
                             .Like("torch.matmul(self, mat2)")
                             .Tolerance("accumulated")
                             .Prepares([](Planning& p) {
                               return PrepareProduct<MatmulWeightNz>(p, MatmulWeightNz::self, MatmulWeightNz::out);
                             })
                             .Does([](const Call& c) {
                               return RunProduct(c, c.args[MatmulWeightNz::self],
                                                 PlainWeight(c, MatmulWeightNz::mat2, c.State<Weight>()),
                                                 c.args[MatmulWeightNz::out]);
                             });
NPU_OP(BatchMatMulWeightNz) = Op<BatchMatMulWeightNz>()
                                  .Imm(kTakesFormats)
                                  .Rules(rule::Product(BatchMatMulWeightNz::self, BatchMatMulWeightNz::mat2,
                                                       BatchMatMulWeightNz::out, 33))
                                  .Uses(BatchMatMulWeightNz::cubeMathType)
                                  .Like("torch.bmm(self, mat2)")
                                  .Tolerance("accumulated")
                                  .Prepares([](Planning& p) {
                                    return PrepareProduct<BatchMatMulWeightNz>(p, BatchMatMulWeightNz::self,
                                                                               BatchMatMulWeightNz::out);
                                  })
                                  .Does([](const Call& c) {
                                    return RunProduct(c, c.args[BatchMatMulWeightNz::self],
                                                      PlainWeight(c, BatchMatMulWeightNz::mat2, c.State<Weight>()),
                                                      c.args[BatchMatMulWeightNz::out]);
                                  });
NPU_OP(AddmmWeightNz) = Op<AddmmWeightNz>()
                            .Imm(kTakesFormats)
                            .Rules(rule::Product(AddmmWeightNz::mat1, AddmmWeightNz::mat2, AddmmWeightNz::out, 22),
                                   rule::Addend(AddmmWeightNz::self, AddmmWeightNz::out))
                            .Uses(AddmmWeightNz::beta, AddmmWeightNz::alpha, AddmmWeightNz::cubeMathType)
                            .Like("torch.addmm(self, mat1, mat2, beta=beta, alpha=alpha)")
                            .Tolerance("accumulated")
                            .Prepares([](Planning& p) {
                              return PrepareProduct<AddmmWeightNz>(p, AddmmWeightNz::mat1, AddmmWeightNz::out);
                            })
                            .Does([](const Call& c) {
                              using A = AddmmWeightNz;
                              return RunProduct(c, c.args[A::mat1], PlainWeight(c, A::mat2, c.State<Weight>()),
                                                c.args[A::out],
                                                {c.args[A::alpha].re, c.args[A::beta].re, &c.args[A::self]});
                            });

}  // namespace npu::ops
