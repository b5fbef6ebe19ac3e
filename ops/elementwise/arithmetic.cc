// Sums, products, quotients, powers, extremes, with their in-place and scalar variants.
#include "gen/abi/ops.h"
#include "ops/elementwise/family.h"

namespace npu::ops {

NPU_OP(Add) = Binary<abi::Add>(simd::kAdd, abi::Add::self, abi::Add::other, abi::Add::out).Scaled(abi::Add::alpha).Like("torch.add(self, other, alpha=alpha)");
NPU_OP(InplaceAdd) = Binary<abi::InplaceAdd>(simd::kAdd, abi::InplaceAdd::selfRef, abi::InplaceAdd::other, abi::InplaceAdd::selfRef).Scaled(abi::InplaceAdd::alpha).Like("torch.add(selfRef, other, alpha=alpha)");
NPU_OP(Adds) = Binary<abi::Adds>(simd::kAdd, abi::Adds::self, abi::Adds::other, abi::Adds::out).Scaled(abi::Adds::alpha).Like("torch.add(self, other, alpha=alpha)");
NPU_OP(InplaceAdds) = Binary<abi::InplaceAdds>(simd::kAdd, abi::InplaceAdds::selfRef, abi::InplaceAdds::other, abi::InplaceAdds::selfRef).Scaled(abi::InplaceAdds::alpha).Like("torch.add(selfRef, other, alpha=alpha)");
NPU_OP(AddV3) = Binary<abi::AddV3>(simd::kAdd, abi::AddV3::self, abi::AddV3::other, abi::AddV3::out).Scaled(abi::AddV3::alpha).Like("torch.add(torch.tensor(self, dtype=torch.result_type(other, self)), other, alpha=alpha)");
NPU_OP(Sub) = Binary<abi::Sub>(simd::kSub, abi::Sub::self, abi::Sub::other, abi::Sub::out).Scaled(abi::Sub::alpha).Like("torch.sub(self, other, alpha=alpha)");
NPU_OP(InplaceSub) = Binary<abi::InplaceSub>(simd::kSub, abi::InplaceSub::selfRef, abi::InplaceSub::other, abi::InplaceSub::selfRef).Scaled(abi::InplaceSub::alpha).Like("torch.sub(selfRef, other, alpha=alpha)");
NPU_OP(Subs) = Binary<abi::Subs>(simd::kSub, abi::Subs::self, abi::Subs::other, abi::Subs::out).Scaled(abi::Subs::alpha).Like("torch.sub(self, other, alpha=alpha)");
NPU_OP(InplaceSubs) = Binary<abi::InplaceSubs>(simd::kSub, abi::InplaceSubs::selfRef, abi::InplaceSubs::other, abi::InplaceSubs::selfRef).Scaled(abi::InplaceSubs::alpha).Like("torch.sub(selfRef, other, alpha=alpha)");
NPU_OP(Rsub) = Binary<abi::Rsub>(simd::kRsub, abi::Rsub::self, abi::Rsub::other, abi::Rsub::out).Scaled(abi::Rsub::alpha).Like("torch.rsub(self, other, alpha=alpha)");
NPU_OP(Rsubs) = Binary<abi::Rsubs>(simd::kRsub, abi::Rsubs::self, abi::Rsubs::other, abi::Rsubs::out).Scaled(abi::Rsubs::alpha).Like("torch.rsub(self, other, alpha=alpha)");
NPU_OP(Mul) = Binary<abi::Mul>(simd::kMul, abi::Mul::self, abi::Mul::other, abi::Mul::out).Like("torch.mul(self, other)");
NPU_OP(InplaceMul) = Binary<abi::InplaceMul>(simd::kMul, abi::InplaceMul::selfRef, abi::InplaceMul::other, abi::InplaceMul::selfRef).Like("torch.mul(selfRef, other)");
NPU_OP(Muls) = Binary<abi::Muls>(simd::kMul, abi::Muls::self, abi::Muls::other, abi::Muls::out).Like("torch.mul(self, other)");
NPU_OP(InplaceMuls) = Binary<abi::InplaceMuls>(simd::kMul, abi::InplaceMuls::selfRef, abi::InplaceMuls::other, abi::InplaceMuls::selfRef).Like("torch.mul(selfRef, other)");
NPU_OP(Div) = Binary<abi::Div>(simd::kDiv, abi::Div::self, abi::Div::other, abi::Div::out, Compute::kFloat).Like("torch.div(self, other)");
NPU_OP(InplaceDiv) = Binary<abi::InplaceDiv>(simd::kDiv, abi::InplaceDiv::selfRef, abi::InplaceDiv::other, abi::InplaceDiv::selfRef, Compute::kFloat).Like("torch.div(selfRef, other)");
NPU_OP(Divs) = Binary<abi::Divs>(simd::kDiv, abi::Divs::self, abi::Divs::other, abi::Divs::out, Compute::kFloat).Like("torch.div(self, other)");
NPU_OP(InplaceDivs) = Binary<abi::InplaceDivs>(simd::kDiv, abi::InplaceDivs::selfRef, abi::InplaceDivs::other, abi::InplaceDivs::selfRef, Compute::kFloat).Like("torch.div(selfRef, other)");
NPU_OP(FloorDivide) = Binary<abi::FloorDivide>(simd::kDivFloor, abi::FloorDivide::self, abi::FloorDivide::other, abi::FloorDivide::out).Like("torch.floor_divide(self, other)");
NPU_OP(InplaceFloorDivide) = Binary<abi::InplaceFloorDivide>(simd::kDivFloor, abi::InplaceFloorDivide::selfRef, abi::InplaceFloorDivide::other, abi::InplaceFloorDivide::selfRef).Like("torch.floor_divide(selfRef, other)");
NPU_OP(FloorDivides) = Binary<abi::FloorDivides>(simd::kDivFloor, abi::FloorDivides::self, abi::FloorDivides::other, abi::FloorDivides::out).Like("torch.floor_divide(self, other)");
NPU_OP(InplaceFloorDivides) = Binary<abi::InplaceFloorDivides>(simd::kDivFloor, abi::InplaceFloorDivides::selfRef, abi::InplaceFloorDivides::other, abi::InplaceFloorDivides::selfRef).Like("torch.floor_divide(selfRef, other)");
NPU_OP(RemainderTensorTensor) = Binary<abi::RemainderTensorTensor>(simd::kRemainder, abi::RemainderTensorTensor::self, abi::RemainderTensorTensor::other, abi::RemainderTensorTensor::out).Like("torch.remainder(self, other)");
NPU_OP(InplaceRemainderTensorTensor) = Binary<abi::InplaceRemainderTensorTensor>(simd::kRemainder, abi::InplaceRemainderTensorTensor::selfRef, abi::InplaceRemainderTensorTensor::other, abi::InplaceRemainderTensorTensor::selfRef).Like("torch.remainder(selfRef, other)");
NPU_OP(RemainderTensorScalar) = Binary<abi::RemainderTensorScalar>(simd::kRemainder, abi::RemainderTensorScalar::self, abi::RemainderTensorScalar::other, abi::RemainderTensorScalar::out).Like("torch.remainder(self, other)");
NPU_OP(InplaceRemainderTensorScalar) = Binary<abi::InplaceRemainderTensorScalar>(simd::kRemainder, abi::InplaceRemainderTensorScalar::selfRef, abi::InplaceRemainderTensorScalar::other, abi::InplaceRemainderTensorScalar::selfRef).Like("torch.remainder(selfRef, other)");
NPU_OP(RemainderScalarTensor) = Binary<abi::RemainderScalarTensor>(simd::kRemainder, abi::RemainderScalarTensor::self, abi::RemainderScalarTensor::other, abi::RemainderScalarTensor::out).Like("torch.remainder(self, other)");
NPU_OP(FmodTensor) = Binary<abi::FmodTensor>(simd::kFmod, abi::FmodTensor::self, abi::FmodTensor::other, abi::FmodTensor::out).Like("torch.fmod(self, other)");
NPU_OP(InplaceFmodTensor) = Binary<abi::InplaceFmodTensor>(simd::kFmod, abi::InplaceFmodTensor::selfRef, abi::InplaceFmodTensor::other, abi::InplaceFmodTensor::selfRef).Like("torch.fmod(selfRef, other)");
NPU_OP(FmodScalar) = Binary<abi::FmodScalar>(simd::kFmod, abi::FmodScalar::self, abi::FmodScalar::other, abi::FmodScalar::out).Like("torch.fmod(self, other)");
NPU_OP(InplaceFmodScalar) = Binary<abi::InplaceFmodScalar>(simd::kFmod, abi::InplaceFmodScalar::selfRef, abi::InplaceFmodScalar::other, abi::InplaceFmodScalar::selfRef).Like("torch.fmod(selfRef, other)");
NPU_OP(PowTensorTensor) = Binary<abi::PowTensorTensor>(simd::kPow, abi::PowTensorTensor::self, abi::PowTensorTensor::exponent, abi::PowTensorTensor::out).Like("torch.pow(self, exponent)");
NPU_OP(InplacePowTensorTensor) = Binary<abi::InplacePowTensorTensor>(simd::kPow, abi::InplacePowTensorTensor::self, abi::InplacePowTensorTensor::exponent, abi::InplacePowTensorTensor::self).Like("torch.pow(self, exponent)");
NPU_OP(PowScalarTensor) = Binary<abi::PowScalarTensor>(simd::kPow, abi::PowScalarTensor::self, abi::PowScalarTensor::exponent, abi::PowScalarTensor::out).Like("torch.pow(self, exponent)");
NPU_OP(AddRelu) = Binary<abi::AddRelu>(simd::kAddRelu, abi::AddRelu::self, abi::AddRelu::other, abi::AddRelu::out).Scaled(abi::AddRelu::alpha).Like("torch.relu(torch.add(self, other, alpha=alpha))");
NPU_OP(InplaceAddRelu) = Binary<abi::InplaceAddRelu>(simd::kAddRelu, abi::InplaceAddRelu::selfRef, abi::InplaceAddRelu::other, abi::InplaceAddRelu::selfRef).Scaled(abi::InplaceAddRelu::alpha).Like("torch.relu(torch.add(selfRef, other, alpha=alpha))");
NPU_OP(Maximum) = Binary<abi::Maximum>(simd::kMaximum, abi::Maximum::self, abi::Maximum::other, abi::Maximum::out).Like("torch.maximum(self, other)");
NPU_OP(Minimum) = Binary<abi::Minimum>(simd::kMinimum, abi::Minimum::self, abi::Minimum::other, abi::Minimum::out).Like("torch.minimum(self, other)");
NPU_OP(ClampMinTensor) = Binary<abi::ClampMinTensor>(simd::kMaximum, abi::ClampMinTensor::self, abi::ClampMinTensor::clipValueMin, abi::ClampMinTensor::out).Like("torch.clamp(self, min=clipValueMin)");
NPU_OP(InplaceClampMinTensor) = Binary<abi::InplaceClampMinTensor>(simd::kMaximum, abi::InplaceClampMinTensor::selfRef, abi::InplaceClampMinTensor::clipValueMin, abi::InplaceClampMinTensor::selfRef).Like("torch.clamp(selfRef, min=clipValueMin)");
NPU_OP(ClampMaxTensor) = Binary<abi::ClampMaxTensor>(simd::kMinimum, abi::ClampMaxTensor::self, abi::ClampMaxTensor::max, abi::ClampMaxTensor::out).Like("torch.clamp(self, max=max)");
NPU_OP(InplaceClampMaxTensor) = Binary<abi::InplaceClampMaxTensor>(simd::kMinimum, abi::InplaceClampMaxTensor::selfRef, abi::InplaceClampMaxTensor::max, abi::InplaceClampMaxTensor::selfRef).Like("torch.clamp(selfRef, max=max)");
NPU_OP(Atan2) = Binary<abi::Atan2>(simd::kAtan2, abi::Atan2::self, abi::Atan2::other, abi::Atan2::out, Compute::kFloat).Like("torch.atan2(self, other)");
NPU_OP(InplaceAtan2) = Binary<abi::InplaceAtan2>(simd::kAtan2, abi::InplaceAtan2::selfRef, abi::InplaceAtan2::other, abi::InplaceAtan2::selfRef, Compute::kFloat).Like("torch.atan2(selfRef, other)");
NPU_OP(LogAddExp) = Binary<abi::LogAddExp>(simd::kLogAddExp, abi::LogAddExp::self, abi::LogAddExp::other, abi::LogAddExp::out, Compute::kFloat).Like("torch.logaddexp(self, other)");
NPU_OP(LogAddExp2) = Binary<abi::LogAddExp2>(simd::kLogAddExp2, abi::LogAddExp2::self, abi::LogAddExp2::other, abi::LogAddExp2::out, Compute::kFloat).Like("torch.logaddexp2(self, other)");
NPU_OP(XLogYTensor) = Binary<abi::XLogYTensor>(simd::kXLogY, abi::XLogYTensor::self, abi::XLogYTensor::other, abi::XLogYTensor::out, Compute::kFloat).Like("torch.xlogy(self, other)");
NPU_OP(XLogYScalarOther) = Binary<abi::XLogYScalarOther>(simd::kXLogY, abi::XLogYScalarOther::self, abi::XLogYScalarOther::other, abi::XLogYScalarOther::out, Compute::kFloat).Like("torch.xlogy(self, other)");
NPU_OP(InplaceXLogYScalarOther) = Binary<abi::InplaceXLogYScalarOther>(simd::kXLogY, abi::InplaceXLogYScalarOther::selfRef, abi::InplaceXLogYScalarOther::other, abi::InplaceXLogYScalarOther::selfRef, Compute::kFloat).Like("torch.xlogy(selfRef, other)");
NPU_OP(XLogYScalarSelf) = Binary<abi::XLogYScalarSelf>(simd::kXLogY, abi::XLogYScalarSelf::self, abi::XLogYScalarSelf::other, abi::XLogYScalarSelf::out, Compute::kFloat).Like("torch.xlogy(self, other)");
NPU_OP(Gcd) = Binary<abi::Gcd>(simd::kGcd, abi::Gcd::self, abi::Gcd::other, abi::Gcd::out).Like("torch.gcd(self, other)");

}  // namespace npu::ops
