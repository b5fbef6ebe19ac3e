// Bits and shifts of integers.
#include "gen/abi/ops.h"
#include "ops/elementwise/family.h"

namespace npu::ops {

NPU_OP(BitwiseAndTensor) = Binary<abi::BitwiseAndTensor>(simd::kBitAnd, abi::BitwiseAndTensor::self, abi::BitwiseAndTensor::other, abi::BitwiseAndTensor::out).Like("torch.bitwise_and(self, other)");
NPU_OP(InplaceBitwiseAndTensor) = Binary<abi::InplaceBitwiseAndTensor>(simd::kBitAnd, abi::InplaceBitwiseAndTensor::selfRef, abi::InplaceBitwiseAndTensor::other, abi::InplaceBitwiseAndTensor::selfRef).Like("torch.bitwise_and(selfRef, other)");
NPU_OP(BitwiseAndScalar) = Binary<abi::BitwiseAndScalar>(simd::kBitAnd, abi::BitwiseAndScalar::self, abi::BitwiseAndScalar::other, abi::BitwiseAndScalar::out).Like("torch.bitwise_and(self, other)");
NPU_OP(InplaceBitwiseAndScalar) = Binary<abi::InplaceBitwiseAndScalar>(simd::kBitAnd, abi::InplaceBitwiseAndScalar::selfRef, abi::InplaceBitwiseAndScalar::other, abi::InplaceBitwiseAndScalar::selfRef).Like("torch.bitwise_and(selfRef, other)");
NPU_OP(BitwiseOrTensor) = Binary<abi::BitwiseOrTensor>(simd::kBitOr, abi::BitwiseOrTensor::self, abi::BitwiseOrTensor::other, abi::BitwiseOrTensor::out).Like("torch.bitwise_or(self, other)");
NPU_OP(BitwiseOrScalar) = Binary<abi::BitwiseOrScalar>(simd::kBitOr, abi::BitwiseOrScalar::self, abi::BitwiseOrScalar::other, abi::BitwiseOrScalar::out).Like("torch.bitwise_or(self, other)");
NPU_OP(BitwiseXorTensor) = Binary<abi::BitwiseXorTensor>(simd::kBitXor, abi::BitwiseXorTensor::self, abi::BitwiseXorTensor::other, abi::BitwiseXorTensor::out).Like("torch.bitwise_xor(self, other)");
NPU_OP(InplaceBitwiseXorTensor) = Binary<abi::InplaceBitwiseXorTensor>(simd::kBitXor, abi::InplaceBitwiseXorTensor::selfRef, abi::InplaceBitwiseXorTensor::other, abi::InplaceBitwiseXorTensor::selfRef).Like("torch.bitwise_xor(selfRef, other)");
NPU_OP(BitwiseXorScalar) = Binary<abi::BitwiseXorScalar>(simd::kBitXor, abi::BitwiseXorScalar::self, abi::BitwiseXorScalar::other, abi::BitwiseXorScalar::out).Like("torch.bitwise_xor(self, other)");
NPU_OP(InplaceBitwiseXorScalar) = Binary<abi::InplaceBitwiseXorScalar>(simd::kBitXor, abi::InplaceBitwiseXorScalar::selfRef, abi::InplaceBitwiseXorScalar::other, abi::InplaceBitwiseXorScalar::selfRef).Like("torch.bitwise_xor(selfRef, other)");
NPU_OP(LeftShift) = Binary<abi::LeftShift>(simd::kShiftLeft, abi::LeftShift::self, abi::LeftShift::shiftBits, abi::LeftShift::out).Imm(kShiftWidth).Like("torch.bitwise_left_shift(self, shiftBits)");
NPU_OP(LeftShifts) = Binary<abi::LeftShifts>(simd::kShiftLeft, abi::LeftShifts::self, abi::LeftShifts::shiftBits, abi::LeftShifts::out).Imm(kShiftWidth).Like("torch.bitwise_left_shift(self, shiftBits)");
NPU_OP(RightShift) = Binary<abi::RightShift>(simd::kShiftRight, abi::RightShift::input, abi::RightShift::shiftBits, abi::RightShift::out).Imm(kShiftWidth).Like("torch.bitwise_right_shift(input, shiftBits)");

}  // namespace npu::ops
