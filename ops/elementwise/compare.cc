// Comparisons and predicates; results are bool, stored in the type of out.
#include "gen/abi/ops.h"
#include "ops/elementwise/family.h"

namespace npu::ops {

NPU_OP(IsFinite) = Unary<abi::IsFinite>(simd::kIsFinite, abi::IsFinite::self, abi::IsFinite::out, Compute::kPromoted).Like("torch.isfinite(self)");
NPU_OP(IsPosInf) = Unary<abi::IsPosInf>(simd::kIsPosInf, abi::IsPosInf::self, abi::IsPosInf::out, Compute::kPromoted).Like("torch.isposinf(self)");
NPU_OP(IsNegInf) = Unary<abi::IsNegInf>(simd::kIsNegInf, abi::IsNegInf::self, abi::IsNegInf::out, Compute::kPromoted).Like("torch.isneginf(self)");
NPU_OP(Signbit) = Unary<abi::Signbit>(simd::kSignbit, abi::Signbit::self, abi::Signbit::out, Compute::kPromoted).Like("torch.signbit(self)");
NPU_OP(LogicalNot) = Unary<abi::LogicalNot>(simd::kLogicalNot, abi::LogicalNot::self, abi::LogicalNot::out, Compute::kPromoted).Like("torch.logical_not(self)");
NPU_OP(InplaceLogicalNot) = Unary<abi::InplaceLogicalNot>(simd::kLogicalNot, abi::InplaceLogicalNot::selfRef, abi::InplaceLogicalNot::selfRef, Compute::kPromoted).Like("selfRef.logical_not_()");
NPU_OP(EqTensor) = Compare<abi::EqTensor>(simd::kEq, abi::EqTensor::self, abi::EqTensor::other, abi::EqTensor::out).Like("torch.eq(self, other)");
NPU_OP(InplaceEqTensor) = Compare<abi::InplaceEqTensor>(simd::kEq, abi::InplaceEqTensor::selfRef, abi::InplaceEqTensor::other, abi::InplaceEqTensor::selfRef).Like("selfRef.eq_(other)");
NPU_OP(EqScalar) = Compare<abi::EqScalar>(simd::kEq, abi::EqScalar::self, abi::EqScalar::other, abi::EqScalar::out).Like("torch.eq(self, other)");
NPU_OP(InplaceEqScalar) = Compare<abi::InplaceEqScalar>(simd::kEq, abi::InplaceEqScalar::selfRef, abi::InplaceEqScalar::other, abi::InplaceEqScalar::selfRef).Like("selfRef.eq_(other)");
NPU_OP(NeTensor) = Compare<abi::NeTensor>(simd::kNe, abi::NeTensor::self, abi::NeTensor::other, abi::NeTensor::out).Like("torch.ne(self, other)");
NPU_OP(InplaceNeTensor) = Compare<abi::InplaceNeTensor>(simd::kNe, abi::InplaceNeTensor::selfRef, abi::InplaceNeTensor::other, abi::InplaceNeTensor::selfRef).Like("selfRef.ne_(other)");
NPU_OP(NeScalar) = Compare<abi::NeScalar>(simd::kNe, abi::NeScalar::self, abi::NeScalar::other, abi::NeScalar::out).Like("torch.ne(self, other)");
NPU_OP(InplaceNeScalar) = Compare<abi::InplaceNeScalar>(simd::kNe, abi::InplaceNeScalar::selfRef, abi::InplaceNeScalar::other, abi::InplaceNeScalar::selfRef).Like("selfRef.ne_(other)");
NPU_OP(LtTensor) = Compare<abi::LtTensor>(simd::kLt, abi::LtTensor::self, abi::LtTensor::other, abi::LtTensor::out).Like("torch.lt(self, other)");
NPU_OP(InplaceLtTensor) = Compare<abi::InplaceLtTensor>(simd::kLt, abi::InplaceLtTensor::selfRef, abi::InplaceLtTensor::other, abi::InplaceLtTensor::selfRef).Like("selfRef.lt_(other)");
NPU_OP(LtScalar) = Compare<abi::LtScalar>(simd::kLt, abi::LtScalar::self, abi::LtScalar::other, abi::LtScalar::out).Like("torch.lt(self, other)");
NPU_OP(InplaceLtScalar) = Compare<abi::InplaceLtScalar>(simd::kLt, abi::InplaceLtScalar::selfRef, abi::InplaceLtScalar::other, abi::InplaceLtScalar::selfRef).Like("selfRef.lt_(other)");
NPU_OP(LeTensor) = Compare<abi::LeTensor>(simd::kLe, abi::LeTensor::self, abi::LeTensor::other, abi::LeTensor::out).Like("torch.le(self, other)");
NPU_OP(InplaceLeTensor) = Compare<abi::InplaceLeTensor>(simd::kLe, abi::InplaceLeTensor::selfRef, abi::InplaceLeTensor::other, abi::InplaceLeTensor::selfRef).Like("selfRef.le_(other)");
NPU_OP(LeScalar) = Compare<abi::LeScalar>(simd::kLe, abi::LeScalar::self, abi::LeScalar::other, abi::LeScalar::out).Like("torch.le(self, other)");
NPU_OP(InplaceLeScalar) = Compare<abi::InplaceLeScalar>(simd::kLe, abi::InplaceLeScalar::selfRef, abi::InplaceLeScalar::other, abi::InplaceLeScalar::selfRef).Like("selfRef.le_(other)");
NPU_OP(GtTensor) = Compare<abi::GtTensor>(simd::kGt, abi::GtTensor::self, abi::GtTensor::other, abi::GtTensor::out).Like("torch.gt(self, other)");
NPU_OP(InplaceGtTensor) = Compare<abi::InplaceGtTensor>(simd::kGt, abi::InplaceGtTensor::selfRef, abi::InplaceGtTensor::other, abi::InplaceGtTensor::selfRef).Like("selfRef.gt_(other)");
NPU_OP(GtScalar) = Compare<abi::GtScalar>(simd::kGt, abi::GtScalar::self, abi::GtScalar::other, abi::GtScalar::out).Like("torch.gt(self, other)");
NPU_OP(InplaceGtScalar) = Compare<abi::InplaceGtScalar>(simd::kGt, abi::InplaceGtScalar::selfRef, abi::InplaceGtScalar::other, abi::InplaceGtScalar::selfRef).Like("selfRef.gt_(other)");
NPU_OP(GeTensor) = Compare<abi::GeTensor>(simd::kGe, abi::GeTensor::self, abi::GeTensor::other, abi::GeTensor::out).Like("torch.ge(self, other)");
NPU_OP(InplaceGeTensor) = Compare<abi::InplaceGeTensor>(simd::kGe, abi::InplaceGeTensor::selfRef, abi::InplaceGeTensor::other, abi::InplaceGeTensor::selfRef).Like("selfRef.ge_(other)");
NPU_OP(GeScalar) = Compare<abi::GeScalar>(simd::kGe, abi::GeScalar::self, abi::GeScalar::other, abi::GeScalar::out).Like("torch.ge(self, other)");
NPU_OP(InplaceGeScalar) = Compare<abi::InplaceGeScalar>(simd::kGe, abi::InplaceGeScalar::selfRef, abi::InplaceGeScalar::other, abi::InplaceGeScalar::selfRef).Like("selfRef.ge_(other)");
NPU_OP(LogicalAnd) = Compare<abi::LogicalAnd>(simd::kLogicalAnd, abi::LogicalAnd::self, abi::LogicalAnd::other, abi::LogicalAnd::out).Like("torch.logical_and(self, other)");
NPU_OP(InplaceLogicalAnd) = Compare<abi::InplaceLogicalAnd>(simd::kLogicalAnd, abi::InplaceLogicalAnd::selfRef, abi::InplaceLogicalAnd::other, abi::InplaceLogicalAnd::selfRef).Like("selfRef.logical_and_(other)");
NPU_OP(LogicalOr) = Compare<abi::LogicalOr>(simd::kLogicalOr, abi::LogicalOr::self, abi::LogicalOr::other, abi::LogicalOr::out).Like("torch.logical_or(self, other)");
NPU_OP(InplaceLogicalOr) = Compare<abi::InplaceLogicalOr>(simd::kLogicalOr, abi::InplaceLogicalOr::selfRef, abi::InplaceLogicalOr::other, abi::InplaceLogicalOr::selfRef).Like("selfRef.logical_or_(other)");
NPU_OP(LogicalXor) = Compare<abi::LogicalXor>(simd::kLogicalXor, abi::LogicalXor::self, abi::LogicalXor::other, abi::LogicalXor::out).Like("torch.logical_xor(self, other)");
// Halves are compared in float32; torch on the CPU rounds the difference to a half first.
NPU_OP(IsClose) = Compare<abi::IsClose>(simd::kIsClose, abi::IsClose::self, abi::IsClose::other, abi::IsClose::out).Scaled(abi::IsClose::rtol, abi::IsClose::atol, abi::IsClose::equalNan).Samples(abi::IsClose::rtol, "[1e-5, 0.1]").Samples(abi::IsClose::atol, "[1e-8, 0.5]").Like("torch.isclose(*(t.float() if t.dtype.itemsize == 2 and t.is_floating_point() else t for t in (self, other)), rtol, atol, equalNan)");

}  // namespace npu::ops
