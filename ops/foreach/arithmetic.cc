// The lists that optimizers and gradient clipping work on.
#include "gen/abi/ops.h"
#include "ops/foreach/family.h"

namespace npu::ops {

NPU_OP(ForeachAbs) = Foreach<abi::ForeachAbs>(simd::kAbs, abi::ForeachAbs::out, abi::ForeachAbs::x).Like("[torch.abs(a) for a in x]");
NPU_OP(ForeachAcos) = Foreach<abi::ForeachAcos>(simd::kAcos, abi::ForeachAcos::out, abi::ForeachAcos::x).Like("[torch.acos(a) for a in x]");
NPU_OP(ForeachAsin) = Foreach<abi::ForeachAsin>(simd::kAsin, abi::ForeachAsin::out, abi::ForeachAsin::x).Like("[torch.asin(a) for a in x]");
NPU_OP(ForeachAtan) = Foreach<abi::ForeachAtan>(simd::kAtan, abi::ForeachAtan::out, abi::ForeachAtan::x).Like("[torch.atan(a) for a in x]");
NPU_OP(ForeachCos) = Foreach<abi::ForeachCos>(simd::kCos, abi::ForeachCos::out, abi::ForeachCos::x).Like("[torch.cos(a) for a in x]");
NPU_OP(ForeachCosh) = Foreach<abi::ForeachCosh>(simd::kCosh, abi::ForeachCosh::out, abi::ForeachCosh::x).Like("[torch.cosh(a) for a in x]");
NPU_OP(ForeachErf) = Foreach<abi::ForeachErf>(simd::kErf, abi::ForeachErf::out, abi::ForeachErf::x).Like("[torch.erf(a) for a in x]");
NPU_OP(ForeachErfc) = Foreach<abi::ForeachErfc>(simd::kErfc, abi::ForeachErfc::out, abi::ForeachErfc::x).Like("[torch.erfc(a) for a in x]");
NPU_OP(ForeachExp) = Foreach<abi::ForeachExp>(simd::kExp, abi::ForeachExp::out, abi::ForeachExp::x).Like("[torch.exp(a) for a in x]");
NPU_OP(ForeachExpm1) = Foreach<abi::ForeachExpm1>(simd::kExpm1, abi::ForeachExpm1::out, abi::ForeachExpm1::x).Like("[torch.expm1(a) for a in x]");
NPU_OP(ForeachLog) = Foreach<abi::ForeachLog>(simd::kLog, abi::ForeachLog::out, abi::ForeachLog::x).Like("[torch.log(a) for a in x]");
NPU_OP(ForeachLog10) = Foreach<abi::ForeachLog10>(simd::kLog10, abi::ForeachLog10::out, abi::ForeachLog10::x).Like("[torch.log10(a) for a in x]");
NPU_OP(ForeachLog1p) = Foreach<abi::ForeachLog1p>(simd::kLog1p, abi::ForeachLog1p::out, abi::ForeachLog1p::x).Like("[torch.log1p(a) for a in x]");
NPU_OP(ForeachLog2) = Foreach<abi::ForeachLog2>(simd::kLog2, abi::ForeachLog2::out, abi::ForeachLog2::x).Like("[torch.log2(a) for a in x]");
NPU_OP(ForeachNeg) = Foreach<abi::ForeachNeg>(simd::kNeg, abi::ForeachNeg::out, abi::ForeachNeg::x).Like("[torch.neg(a) for a in x]");
NPU_OP(ForeachReciprocal) = Foreach<abi::ForeachReciprocal>(simd::kReciprocal, abi::ForeachReciprocal::out, abi::ForeachReciprocal::x).Like("[torch.reciprocal(a) for a in x]");
NPU_OP(ForeachSigmoid) = Foreach<abi::ForeachSigmoid>(simd::kSigmoid, abi::ForeachSigmoid::out, abi::ForeachSigmoid::x).Like("[torch.sigmoid(a) for a in x]");
NPU_OP(ForeachSign) = Foreach<abi::ForeachSign>(simd::kSign, abi::ForeachSign::out, abi::ForeachSign::x).Like("[torch.sign(a) for a in x]");
NPU_OP(ForeachSin) = Foreach<abi::ForeachSin>(simd::kSin, abi::ForeachSin::out, abi::ForeachSin::x).Like("[torch.sin(a) for a in x]");
NPU_OP(ForeachSinh) = Foreach<abi::ForeachSinh>(simd::kSinh, abi::ForeachSinh::out, abi::ForeachSinh::x).Like("[torch.sinh(a) for a in x]");
NPU_OP(ForeachSqrt) = Foreach<abi::ForeachSqrt>(simd::kSqrt, abi::ForeachSqrt::out, abi::ForeachSqrt::x).Like("[torch.sqrt(a) for a in x]");
NPU_OP(ForeachTan) = Foreach<abi::ForeachTan>(simd::kTan, abi::ForeachTan::out, abi::ForeachTan::x).Like("[torch.tan(a) for a in x]");
NPU_OP(ForeachTanh) = Foreach<abi::ForeachTanh>(simd::kTanh, abi::ForeachTanh::out, abi::ForeachTanh::x).Like("[torch.tanh(a) for a in x]");
NPU_OP(ForeachAddList) = Foreach<abi::ForeachAddList>(simd::kAdd, abi::ForeachAddList::out, abi::ForeachAddList::x1, abi::ForeachAddList::x2).Scaled(abi::ForeachAddList::alpha).Like("[torch.add(a, b, alpha=alpha.item()) for a, b in zip(x1, x2)]");
NPU_OP(ForeachAddListV2) = Foreach<abi::ForeachAddListV2>(simd::kAdd, abi::ForeachAddListV2::out, abi::ForeachAddListV2::x1, abi::ForeachAddListV2::x2).Scaled(abi::ForeachAddListV2::alpha).Like("[torch.add(a, b, alpha=alpha) for a, b in zip(x1, x2)]");
NPU_OP(ForeachAddScalar) = Foreach<abi::ForeachAddScalar>(simd::kAdd, abi::ForeachAddScalar::out, abi::ForeachAddScalar::x, abi::ForeachAddScalar::scalar).Like("[torch.add(a, scalar.item()) for a in x]");
NPU_OP(ForeachAddScalarV2) = Foreach<abi::ForeachAddScalarV2>(simd::kAdd, abi::ForeachAddScalarV2::out, abi::ForeachAddScalarV2::x, abi::ForeachAddScalarV2::scalar).Like("[torch.add(a, scalar) for a in x]");
NPU_OP(ForeachAddScalarList) = Foreach<abi::ForeachAddScalarList>(simd::kAdd, abi::ForeachAddScalarList::out, abi::ForeachAddScalarList::x, abi::ForeachAddScalarList::scalars).Like("[torch.add(a, b) for a, b in zip(x, scalars)]");
NPU_OP(ForeachSubList) = Foreach<abi::ForeachSubList>(simd::kSub, abi::ForeachSubList::out, abi::ForeachSubList::x1, abi::ForeachSubList::x2).Scaled(abi::ForeachSubList::alpha).Like("[torch.sub(a, b, alpha=alpha.item()) for a, b in zip(x1, x2)]");
NPU_OP(ForeachSubListV2) = Foreach<abi::ForeachSubListV2>(simd::kSub, abi::ForeachSubListV2::out, abi::ForeachSubListV2::x1, abi::ForeachSubListV2::x2).Scaled(abi::ForeachSubListV2::alpha).Like("[torch.sub(a, b, alpha=alpha) for a, b in zip(x1, x2)]");
NPU_OP(ForeachSubScalar) = Foreach<abi::ForeachSubScalar>(simd::kSub, abi::ForeachSubScalar::out, abi::ForeachSubScalar::x, abi::ForeachSubScalar::scalar).Like("[torch.sub(a, scalar.item()) for a in x]");
NPU_OP(ForeachSubScalarV2) = Foreach<abi::ForeachSubScalarV2>(simd::kSub, abi::ForeachSubScalarV2::out, abi::ForeachSubScalarV2::x, abi::ForeachSubScalarV2::scalar).Like("[torch.sub(a, scalar) for a in x]");
NPU_OP(ForeachSubScalarList) = Foreach<abi::ForeachSubScalarList>(simd::kSub, abi::ForeachSubScalarList::out, abi::ForeachSubScalarList::x, abi::ForeachSubScalarList::scalars).Like("[torch.sub(a, b) for a, b in zip(x, scalars)]");
NPU_OP(ForeachMulList) = Foreach<abi::ForeachMulList>(simd::kMul, abi::ForeachMulList::out, abi::ForeachMulList::x1, abi::ForeachMulList::x2).Like("[torch.mul(a, b) for a, b in zip(x1, x2)]");
NPU_OP(ForeachMulScalar) = Foreach<abi::ForeachMulScalar>(simd::kMul, abi::ForeachMulScalar::out, abi::ForeachMulScalar::x, abi::ForeachMulScalar::scalar).Like("[torch.mul(a, scalar.item()) for a in x]");
NPU_OP(ForeachMulScalarV2) = Foreach<abi::ForeachMulScalarV2>(simd::kMul, abi::ForeachMulScalarV2::out, abi::ForeachMulScalarV2::x, abi::ForeachMulScalarV2::scalar).Like("[torch.mul(a, scalar) for a in x]");
NPU_OP(ForeachMulScalarList) = Foreach<abi::ForeachMulScalarList>(simd::kMul, abi::ForeachMulScalarList::out, abi::ForeachMulScalarList::x, abi::ForeachMulScalarList::scalars).Like("[torch.mul(a, b) for a, b in zip(x, scalars)]");
NPU_OP(ForeachDivList) = Foreach<abi::ForeachDivList>(simd::kDiv, abi::ForeachDivList::out, abi::ForeachDivList::x1, abi::ForeachDivList::x2).Like("[torch.div(a, b) for a, b in zip(x1, x2)]");
NPU_OP(ForeachDivScalar) = Foreach<abi::ForeachDivScalar>(simd::kDiv, abi::ForeachDivScalar::out, abi::ForeachDivScalar::x, abi::ForeachDivScalar::scalar).Like("[torch.div(a, scalar.item()) for a in x]");
NPU_OP(ForeachDivScalarV2) = Foreach<abi::ForeachDivScalarV2>(simd::kDiv, abi::ForeachDivScalarV2::out, abi::ForeachDivScalarV2::x, abi::ForeachDivScalarV2::scalar).Like("[torch.div(a, scalar) for a in x]");
NPU_OP(ForeachDivScalarList) = Foreach<abi::ForeachDivScalarList>(simd::kDiv, abi::ForeachDivScalarList::out, abi::ForeachDivScalarList::x, abi::ForeachDivScalarList::scalars).Like("[torch.div(a, b) for a, b in zip(x, scalars)]");
NPU_OP(ForeachMaximumList) = Foreach<abi::ForeachMaximumList>(simd::kMaximum, abi::ForeachMaximumList::out, abi::ForeachMaximumList::x1, abi::ForeachMaximumList::x2).Like("[maximum(a, b) for a, b in zip(x1, x2)]");
NPU_OP(ForeachMaximumScalar) = Foreach<abi::ForeachMaximumScalar>(simd::kMaximum, abi::ForeachMaximumScalar::out, abi::ForeachMaximumScalar::x, abi::ForeachMaximumScalar::scalar).Like("[maximum(a, scalar.item()) for a in x]");
NPU_OP(ForeachMaximumScalarV2) = Foreach<abi::ForeachMaximumScalarV2>(simd::kMaximum, abi::ForeachMaximumScalarV2::out, abi::ForeachMaximumScalarV2::x, abi::ForeachMaximumScalarV2::scalar).Like("[maximum(a, scalar) for a in x]");
NPU_OP(ForeachMaximumScalarList) = Foreach<abi::ForeachMaximumScalarList>(simd::kMaximum, abi::ForeachMaximumScalarList::out, abi::ForeachMaximumScalarList::x, abi::ForeachMaximumScalarList::scalars).Like("[maximum(a, b) for a, b in zip(x, scalars)]");
NPU_OP(ForeachMinimumList) = Foreach<abi::ForeachMinimumList>(simd::kMinimum, abi::ForeachMinimumList::out, abi::ForeachMinimumList::x1, abi::ForeachMinimumList::x2).Like("[minimum(a, b) for a, b in zip(x1, x2)]");
NPU_OP(ForeachMinimumScalar) = Foreach<abi::ForeachMinimumScalar>(simd::kMinimum, abi::ForeachMinimumScalar::out, abi::ForeachMinimumScalar::x, abi::ForeachMinimumScalar::scalar).Like("[minimum(a, scalar.item()) for a in x]");
NPU_OP(ForeachMinimumScalarV2) = Foreach<abi::ForeachMinimumScalarV2>(simd::kMinimum, abi::ForeachMinimumScalarV2::out, abi::ForeachMinimumScalarV2::x, abi::ForeachMinimumScalarV2::scalar).Like("[minimum(a, scalar) for a in x]");
NPU_OP(ForeachMinimumScalarList) = Foreach<abi::ForeachMinimumScalarList>(simd::kMinimum, abi::ForeachMinimumScalarList::out, abi::ForeachMinimumScalarList::x, abi::ForeachMinimumScalarList::scalars).Like("[minimum(a, b) for a, b in zip(x, scalars)]");
NPU_OP(ForeachPowList) = Foreach<abi::ForeachPowList>(simd::kPow, abi::ForeachPowList::out, abi::ForeachPowList::x1, abi::ForeachPowList::x2).Like("[torch.pow(a, b) for a, b in zip(x1, x2)]");
NPU_OP(ForeachPowScalar) = Foreach<abi::ForeachPowScalar>(simd::kPow, abi::ForeachPowScalar::out, abi::ForeachPowScalar::x, abi::ForeachPowScalar::scalar).Like("[torch.pow(a, scalar.item()) for a in x]");
NPU_OP(ForeachPowScalarV2) = Foreach<abi::ForeachPowScalarV2>(simd::kPow, abi::ForeachPowScalarV2::out, abi::ForeachPowScalarV2::x, abi::ForeachPowScalarV2::scalar).Like("[torch.pow(a, scalar) for a in x]");
NPU_OP(ForeachPowScalarList) = Foreach<abi::ForeachPowScalarList>(simd::kPow, abi::ForeachPowScalarList::out, abi::ForeachPowScalarList::x, abi::ForeachPowScalarList::scalars).Like("[torch.pow(a, b) for a, b in zip(x, scalars)]");
NPU_OP(ForeachPowScalarAndTensor) = Foreach<abi::ForeachPowScalarAndTensor>(simd::kPow, abi::ForeachPowScalarAndTensor::out, abi::ForeachPowScalarAndTensor::scalar, abi::ForeachPowScalarAndTensor::x).Like("[torch.pow(scalar, a) for a in x]");
NPU_OP(ForeachAddcdivScalar) = Foreach<abi::ForeachAddcdivScalar>(simd::kAddcdiv, abi::ForeachAddcdivScalar::out, abi::ForeachAddcdivScalar::x1, abi::ForeachAddcdivScalar::x2, abi::ForeachAddcdivScalar::x3).Scaled(abi::ForeachAddcdivScalar::scalar).Like("[torch.addcdiv(a, b, c, value=scalar.item()) for a, b, c in zip(x1, x2, x3)]");
NPU_OP(ForeachAddcdivScalarV2) = Foreach<abi::ForeachAddcdivScalarV2>(simd::kAddcdiv, abi::ForeachAddcdivScalarV2::out, abi::ForeachAddcdivScalarV2::x1, abi::ForeachAddcdivScalarV2::x2, abi::ForeachAddcdivScalarV2::x3).Scaled(abi::ForeachAddcdivScalarV2::scalar).Like("[torch.addcdiv(a, b, c, value=scalar) for a, b, c in zip(x1, x2, x3)]");
NPU_OP(ForeachAddcdivScalarList) = Foreach<abi::ForeachAddcdivScalarList>(simd::kAddcdiv, abi::ForeachAddcdivScalarList::out, abi::ForeachAddcdivScalarList::x1, abi::ForeachAddcdivScalarList::x2, abi::ForeachAddcdivScalarList::x3).Scaled(abi::ForeachAddcdivScalarList::scalars).Like("[torch.addcdiv(a, b, c, value=v.item()) for a, b, c, v in zip(x1, x2, x3, scalars)]");
NPU_OP(ForeachAddcmulScalar) = Foreach<abi::ForeachAddcmulScalar>(simd::kAddcmul, abi::ForeachAddcmulScalar::out, abi::ForeachAddcmulScalar::x1, abi::ForeachAddcmulScalar::x2, abi::ForeachAddcmulScalar::x3).Scaled(abi::ForeachAddcmulScalar::scalar).Like("[torch.addcmul(a, b, c, value=scalar.item()) for a, b, c in zip(x1, x2, x3)]");
NPU_OP(ForeachAddcmulScalarV2) = Foreach<abi::ForeachAddcmulScalarV2>(simd::kAddcmul, abi::ForeachAddcmulScalarV2::out, abi::ForeachAddcmulScalarV2::x1, abi::ForeachAddcmulScalarV2::x2, abi::ForeachAddcmulScalarV2::x3).Scaled(abi::ForeachAddcmulScalarV2::scalar).Like("[torch.addcmul(a, b, c, value=scalar) for a, b, c in zip(x1, x2, x3)]");
NPU_OP(ForeachAddcmulScalarList) = Foreach<abi::ForeachAddcmulScalarList>(simd::kAddcmul, abi::ForeachAddcmulScalarList::out, abi::ForeachAddcmulScalarList::x1, abi::ForeachAddcmulScalarList::x2, abi::ForeachAddcmulScalarList::x3).Scaled(abi::ForeachAddcmulScalarList::scalars).Like("[torch.addcmul(a, b, c, value=v.item()) for a, b, c, v in zip(x1, x2, x3, scalars)]");
NPU_OP(ForeachLerpList) = Foreach<abi::ForeachLerpList>(simd::kLerp, abi::ForeachLerpList::out, abi::ForeachLerpList::x1, abi::ForeachLerpList::x2, abi::ForeachLerpList::weight).Like("[torch.lerp(a, b, w) for a, b, w in zip(x1, x2, weight)]");
NPU_OP(ForeachLerpScalar) = Foreach<abi::ForeachLerpScalar>(simd::kLerp, abi::ForeachLerpScalar::out, abi::ForeachLerpScalar::x1, abi::ForeachLerpScalar::x2, abi::ForeachLerpScalar::weight).Like("[torch.lerp(a, b, weight) for a, b in zip(x1, x2)]");

}  // namespace npu::ops
