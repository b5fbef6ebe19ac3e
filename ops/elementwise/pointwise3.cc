// Operators of three operands.
#include "gen/abi/ops.h"
#include "ops/elementwise/family.h"

namespace npu::ops {

NPU_OP(Addcmul) = Pointwise3<abi::Addcmul>(simd::kAddcmul, abi::Addcmul::self, abi::Addcmul::tensor1, abi::Addcmul::tensor2, abi::Addcmul::out).Scaled(abi::Addcmul::value).Like("torch.addcmul(self, tensor1, tensor2, value=value)");
NPU_OP(InplaceAddcmul) = Pointwise3<abi::InplaceAddcmul>(simd::kAddcmul, abi::InplaceAddcmul::selfRef, abi::InplaceAddcmul::tensor1, abi::InplaceAddcmul::tensor2, abi::InplaceAddcmul::selfRef).Scaled(abi::InplaceAddcmul::value).Like("torch.addcmul(selfRef, tensor1, tensor2, value=value)");
NPU_OP(Addcdiv) = Pointwise3<abi::Addcdiv>(simd::kAddcdiv, abi::Addcdiv::self, abi::Addcdiv::tensor1, abi::Addcdiv::tensor2, abi::Addcdiv::out).Scaled(abi::Addcdiv::value).Like("torch.addcdiv(self, tensor1, tensor2, value=value)");
NPU_OP(InplaceAddcdiv) = Pointwise3<abi::InplaceAddcdiv>(simd::kAddcdiv, abi::InplaceAddcdiv::selfRef, abi::InplaceAddcdiv::tensor1, abi::InplaceAddcdiv::tensor2, abi::InplaceAddcdiv::selfRef).Scaled(abi::InplaceAddcdiv::value).Like("torch.addcdiv(selfRef, tensor1, tensor2, value=value)");
NPU_OP(Lerp) = Pointwise3<abi::Lerp>(simd::kLerp, abi::Lerp::self, abi::Lerp::end, abi::Lerp::weight, abi::Lerp::out).Like("torch.lerp(self, end, weight)");
NPU_OP(InplaceLerp) = Pointwise3<abi::InplaceLerp>(simd::kLerp, abi::InplaceLerp::selfRef, abi::InplaceLerp::end, abi::InplaceLerp::weight, abi::InplaceLerp::selfRef).Like("torch.lerp(selfRef, end, weight)");
NPU_OP(Lerps) = Pointwise3<abi::Lerps>(simd::kLerp, abi::Lerps::self, abi::Lerps::end, abi::Lerps::weight, abi::Lerps::out).Samples(abi::Lerps::weight, "[0.25, 0.75, 1.5]").Like("torch.lerp(self, end, weight)");
NPU_OP(InplaceLerps) = Pointwise3<abi::InplaceLerps>(simd::kLerp, abi::InplaceLerps::selfRef, abi::InplaceLerps::end, abi::InplaceLerps::weight, abi::InplaceLerps::selfRef).Samples(abi::InplaceLerps::weight, "[0.25, 0.75, 1.5]").Like("torch.lerp(selfRef, end, weight)");
NPU_OP(SWhere) = Pointwise3<abi::SWhere>(simd::kWhere, abi::SWhere::condition, abi::SWhere::self, abi::SWhere::other, abi::SWhere::out).Like("torch.where(condition, self, other)");

}  // namespace npu::ops
