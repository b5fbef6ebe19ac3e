// Joining and splitting.
#include <vector>

#include "gen/abi/ops.h"
#include "kernels/simd/copy/copy.h"
#include "kernels/simd/shape/shape.h"
#include "ops/common/dims.h"

namespace npu::ops {

using namespace rule;  // NOLINT(google-build-using-namespace)

namespace {

Status WantList(const Planning& plan, ListToken list) {
  const auto tensors = plan.args[list];
  if (tensors.empty()) return plan.Refuse("{} has no tensors.", plan.ParamName(list)).Remedy("Give at least one.");
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].dtype == DType::none) {
      return Error(Code::kNullPointer, "{}: {}[{}] is null.", plan.op.name, plan.ParamName(list), i).Remedy("Give every tensor.");
    }
  }
  return {};
}

// Complex numbers are copied, not converted.
Status WantConvertible(const Planning& plan, std::span<const Tensor> tensors, const Tensor& out) {
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].dtype == out.dtype || (!IsComplex(tensors[i].dtype) && !IsComplex(out.dtype))) continue;
    return plan.Refuse("tensors[{}] is {}, but out is {}.", i, Name(tensors[i].dtype), Name(out.dtype)).Remedy("Cast it first.");
  }
  return {};
}

// Parts of rank 1 without elements are left out, as torch has it.
bool Counts(const Tensor& t) { return t.rank != 1 || t.shape[0] != 0; }

}  // namespace

using abi::Cat, abi::Stack, abi::SplitWithSize;
NPU_OP(Cat) = Op<Cat>()
    .Rules(AnyShape(Cat::out), AnyDtype(Cat::out))
    .Uses(Cat::tensors, Cat::dim)
    .Samples(Cat::tensors, "[[torch.randn(2, 3), torch.randn(2, 3)], [torch.randn(4, 1), torch.randn(4, 1), torch.randn(4, 1)],"
                           " [torch.arange(6).view(2, 3), torch.randn(2, 3)], [torch.randn(0), torch.randn(2, 3)]]")
    .Samples(Cat::dim, "[0, 1, -1]")
    .Tolerance("exact")
    .Like("torch.cat(tensors, dim)")
    .Prepares([](Planning& plan) -> Status {
      NPU_TRY(WantList(plan, Cat::tensors));
      const auto tensors = plan.args[Cat::tensors];
      const Tensor& out = plan.args[Cat::out];
      const Tensor* first = nullptr;
      Dims wanted;
      int dim = 0;
      for (size_t i = 0; i < tensors.size(); ++i) {
        const Tensor& t = tensors[i];
        if (!Counts(t)) continue;
        if (first == nullptr) {
          first = &t;
          wanted = DimsOf(t);
          dim = WrapDim(plan.args[Cat::dim], t.rank);
          if (dim < 0 || t.rank == 0) {
            return plan.Refuse("dim is {}, but tensors[{}] has shape {}.", plan.args[Cat::dim], i, ShapeText(t.Shape()));
          }
          continue;
        }
        Dims rest = DimsOf(t), mine = DimsOf(*first);
        if (rest.rank == mine.rank) rest.size[static_cast<size_t>(dim)] = mine.size[static_cast<size_t>(dim)] = 0;
        if (!npu::SameShape(rest.Span(), mine.Span())) {
          return plan.Refuse("tensors[{}] has shape {}, which does not go with {} along dim {}.", i, ShapeText(t.Shape()),
                             ShapeText(first->Shape()), dim)
              .Remedy("All other sizes must be equal.");
        }
        wanted.size[static_cast<size_t>(dim)] += t.shape[static_cast<size_t>(dim)];
      }
      if (first == nullptr) {
        wanted = Dims{};
        wanted.Push(0);
      }
      NPU_TRY(WantConvertible(plan, tensors, out));
      return WantShape(plan, Cat::out, wanted, "that is not what the tensors give");
    })
    .Does([](const Call& c) -> Status {
      std::vector<Tensor> parts;
      for (const Tensor& t : c.args[Cat::tensors]) {
        if (Counts(t)) parts.push_back(t);
      }
      const Tensor& out = c.args[Cat::out];
      if (!parts.empty()) simd::Cat(parts, WrapDim(c.args[Cat::dim], out.rank), out, c.parallel);
      return {};
    });
NPU_OP(Stack) = Op<Stack>()
    .Rules(AnyShape(Stack::out), AnyDtype(Stack::out))
    .Uses(Stack::tensors, Stack::dim)
    .Samples(Stack::tensors, "[[torch.randn(2, 3), torch.randn(2, 3)], [torch.randn(4, 1), torch.randn(4, 1), torch.randn(4, 1)]]")
    .Samples(Stack::dim, "[0, 1, -1]")
    .Tolerance("exact")
    .Like("torch.stack(tensors, dim)")
    .Prepares([](Planning& plan) -> Status {
      NPU_TRY(WantList(plan, Stack::tensors));
      const auto tensors = plan.args[Stack::tensors];
      const Tensor& first = tensors[0];
      for (size_t i = 1; i < tensors.size(); ++i) {
        if (npu::SameShape(tensors[i].Shape(), first.Shape())) continue;
        return plan.Refuse("tensors[{}] has shape {}, but tensors[0] has shape {}.", i, ShapeText(tensors[i].Shape()), ShapeText(first.Shape()))
            .Remedy("All must have one shape.");
      }
      NPU_TRY(WantConvertible(plan, tensors, plan.args[Stack::out]));
      const int dim = WrapDim(plan.args[Stack::dim], first.rank + 1);
      if (dim < 0 || first.rank == kMaxRank) {
        return plan.Refuse("dim is {}, but the tensors have shape {}.", plan.args[Stack::dim], ShapeText(first.Shape()));
      }
      Dims wanted;
      for (int d = 0; d <= first.rank; ++d) {
        if (d == dim) wanted.Push(static_cast<int64_t>(tensors.size()));
        if (d < first.rank) wanted.Push(first.shape[static_cast<size_t>(d)]);
      }
      return WantShape(plan, Stack::out, wanted, "that is not what the tensors give");
    })
    .Does([](const Call& c) -> Status {
      const Tensor& out = c.args[Stack::out];
      const int dim = WrapDim(c.args[Stack::dim], out.rank);
      int64_t at = 0;
      for (const Tensor& t : c.args[Stack::tensors]) {
        Tensor place = simd::Slice(out, dim, at++, 1);
        for (int d = dim; d + 1 < out.rank; ++d) {
          place.shape[static_cast<size_t>(d)] = place.shape[static_cast<size_t>(d + 1)];
          place.strides[static_cast<size_t>(d)] = place.strides[static_cast<size_t>(d + 1)];
        }
        --place.rank;
        simd::Copy(t, place, c.parallel);
      }
      return {};
    });
NPU_OP(SplitWithSize) = Op<SplitWithSize>()
    .Rules(AnyShape(SplitWithSize::out), AnyDtype(SplitWithSize::out), DimInRange(SplitWithSize::dim, SplitWithSize::self))
    .Uses(SplitWithSize::splitSize)
    .Tolerance("exact")
    .Like("torch.split_with_sizes(self, splitSize, dim)")
    .Prepares([](Planning& plan) -> Status {
      NPU_TRY(WantList(plan, SplitWithSize::out));
      const Tensor& self = plan.args[SplitWithSize::self];
      const auto sizes = plan.args[SplitWithSize::splitSize];
      const auto outs = plan.args[SplitWithSize::out];
      const int dim = WrapDim(plan.args[SplitWithSize::dim], self.rank);
      int64_t sum = 0;
      for (const int64_t n : sizes) sum += n;
      if (self.rank == 0 || sum != self.shape[static_cast<size_t>(dim)] || sizes.size() != outs.size()) {
        return plan.Refuse("splitSize is {} for {} outputs, but self has shape {}.", ShapeText(sizes), outs.size(), ShapeText(self.Shape()))
            .Remedy("Its sum must be the size of dim {}, with one output for each size.", dim);
      }
      for (size_t i = 0; i < outs.size(); ++i) {
        Dims wanted = DimsOf(self);
        wanted.size[static_cast<size_t>(dim)] = sizes[i];
        if (npu::SameShape(outs[i].Shape(), wanted.Span()) && outs[i].dtype == self.dtype) continue;
        return plan.Refuse("out[{}] is {} {}, but must be {} {}.", i, Name(outs[i].dtype), ShapeText(outs[i].Shape()), Name(self.dtype),
                           ShapeText(wanted.Span()));
      }
      return {};
    })
    .Does([](const Call& c) -> Status {
      const Tensor& self = c.args[SplitWithSize::self];
      simd::Split(self, WrapDim(c.args[SplitWithSize::dim], self.rank), c.args[SplitWithSize::out], c.parallel);
      return {};
    });

}  // namespace npu::ops
