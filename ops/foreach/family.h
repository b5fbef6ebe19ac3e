// Foreach operators: one elementwise kernel over the tensors of lists.
//
//   NPU_OP(ForeachAddListV2) = Foreach<ForeachAddListV2>(simd::kAdd, ForeachAddListV2::out, ForeachAddListV2::x1, ForeachAddListV2::x2)
//                                  .Scaled(ForeachAddListV2::alpha).Like("[torch.add(a, b, alpha=alpha) for a, b in zip(x1, x2)]");
//
// An operand or a number is a list (its i-th element goes with the i-th tensor), a tensor on the device (one value for all, or
// one for each tensor), a scalar, or a list of scalars.
#pragma once

#include "ops/elementwise/family.h"

namespace npu::ops {

Status PrepareForeach(Planning& plan);
Status RunForeach(const Call& c);

class ForeachBuilder : public Builder {
 public:
  consteval explicit ForeachBuilder(Builder b) : Builder(b) {}
  consteval ForeachBuilder Scaled(Token number) const { return ForeachBuilder(Slot(kNumberSlot, number)); }
};

template <class A, class Out, class First, class... Operands>
consteval ForeachBuilder Foreach(const simd::PointwiseKernel& kernel, Out out, First first, Operands... rest) {
  Builder b = Op<A>().Keyed(&kernel).Describes(DescribePointwise).Family("foreach").Required(out);
  b = b.Slot(0, first).Slot(kOutSlot, out);
  size_t i = 1;
  ((b = b.Slot(i++, rest)), ...);
  if constexpr (std::is_base_of_v<ListToken, First>) {
    if (first.index != out.index) b = b.Rules(rule::SameLists(first, out));
  } else {
    b = b.Rules(rule::SameLists(ListToken{rest...}, out));
  }
  return ForeachBuilder(b.Prepares(PrepareForeach).Does(RunForeach));
}

}  // namespace npu::ops
