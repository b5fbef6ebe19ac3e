// Tensors of one value.
#include "gen/abi/ops.h"
#include "kernels/simd/pointwise.h"
#include "ops/core/builder.h"
#include "ops/core/rule.h"

namespace npu::ops {
namespace {

template <class A>
consteval Builder Fill(std::string_view like) {
  return Op<A>().Rules(rule::AnyShape(A::selfRef), rule::AnyDtype(A::selfRef)).Like(like).Tolerance("exact");
}

}  // namespace

using abi::InplaceZero, abi::InplaceOne, abi::InplaceFillScalar, abi::InplaceFillTensor, abi::ForeachZeroInplace;
NPU_OP(InplaceZero) = Fill<InplaceZero>("torch.zeros_like(selfRef)").Does([](const Call& c) -> Status {
  simd::FillTensor(c.args[InplaceZero::selfRef], Scalar::Of(int64_t{0}), c.parallel);
  return {};
});
NPU_OP(InplaceOne) = Fill<InplaceOne>("torch.ones_like(selfRef)").Does([](const Call& c) -> Status {
  simd::FillTensor(c.args[InplaceOne::selfRef], Scalar::Of(int64_t{1}), c.parallel);
  return {};
});
NPU_OP(InplaceFillScalar) = Fill<InplaceFillScalar>("selfRef.fill_(value)").Uses(InplaceFillScalar::value).Does([](const Call& c) -> Status {
  simd::FillTensor(c.args[InplaceFillScalar::selfRef], c.args[InplaceFillScalar::value], c.parallel);
  return {};
});
NPU_OP(InplaceFillTensor) = Fill<InplaceFillTensor>("selfRef.fill_(value)")
    .Rules(rule::RankIs(InplaceFillTensor::value, 0))
    .Does([](const Call& c) -> Status {
      simd::CopyTensor(c.args[InplaceFillTensor::value], c.args[InplaceFillTensor::selfRef], c.parallel);
      return {};
    });
NPU_OP(ForeachZeroInplace) = Op<ForeachZeroInplace>()
    .Uses(ForeachZeroInplace::x)
    .Like("[torch.zeros_like(a) for a in x]")
    .Tolerance("exact")
    .Does([](const Call& c) -> Status {
      for (const Tensor& t : c.args[ForeachZeroInplace::x])
        if (t.dtype != DType::none) simd::FillTensor(t, Scalar::Of(int64_t{0}), c.parallel);
      return {};
    });

}  // namespace npu::ops
