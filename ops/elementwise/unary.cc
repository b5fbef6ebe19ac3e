// Functions of one tensor: powers, logarithms, trigonometry, rounding.
#include "gen/abi/ops.h"
#include "ops/elementwise/family.h"

namespace npu::ops {

NPU_OP(Abs) = UnaryToReal<abi::Abs>(simd::kAbs, abi::Abs::self, abi::Abs::out)
                  .Like("torch.abs(self)")
                  .Tolerance("rounded");  // hypot of complex parts
NPU_OP(Neg) = Unary<abi::Neg>(simd::kNeg, abi::Neg::self, abi::Neg::out).Like("torch.neg(self)");
NPU_OP(Exp) = Unary<abi::Exp>(simd::kExp, abi::Exp::self, abi::Exp::out).Like("torch.exp(self)");
NPU_OP(InplaceExp) =
    Unary<abi::InplaceExp>(simd::kExp, abi::InplaceExp::selfRef, abi::InplaceExp::selfRef).Like("torch.exp(selfRef)");
NPU_OP(Exp2) = Unary<abi::Exp2>(simd::kExp2, abi::Exp2::self, abi::Exp2::out).Like("torch.exp2(self)");
NPU_OP(InplaceExp2) = Unary<abi::InplaceExp2>(simd::kExp2, abi::InplaceExp2::selfRef, abi::InplaceExp2::selfRef)
                          .Like("torch.exp2(selfRef)");
NPU_OP(Expm1) = Unary<abi::Expm1>(simd::kExpm1, abi::Expm1::self, abi::Expm1::out).Like("torch.expm1(self)");
NPU_OP(InplaceExpm1) = Unary<abi::InplaceExpm1>(simd::kExpm1, abi::InplaceExpm1::selfRef, abi::InplaceExpm1::selfRef)
                           .Like("torch.expm1(selfRef)");
NPU_OP(Log) = Unary<abi::Log>(simd::kLog, abi::Log::self, abi::Log::out).Like("torch.log(self)");
NPU_OP(InplaceLog) =
    Unary<abi::InplaceLog>(simd::kLog, abi::InplaceLog::selfRef, abi::InplaceLog::selfRef).Like("torch.log(selfRef)");
NPU_OP(Log2) = Unary<abi::Log2>(simd::kLog2, abi::Log2::self, abi::Log2::out).Like("torch.log2(self)");
NPU_OP(InplaceLog2) = Unary<abi::InplaceLog2>(simd::kLog2, abi::InplaceLog2::selfRef, abi::InplaceLog2::selfRef)
                          .Like("torch.log2(selfRef)");
NPU_OP(Log10) = Unary<abi::Log10>(simd::kLog10, abi::Log10::self, abi::Log10::out).Like("torch.log10(self)");
NPU_OP(InplaceLog10) = Unary<abi::InplaceLog10>(simd::kLog10, abi::InplaceLog10::selfRef, abi::InplaceLog10::selfRef)
                           .Like("torch.log10(selfRef)");
NPU_OP(Log1p) = Unary<abi::Log1p>(simd::kLog1p, abi::Log1p::self, abi::Log1p::out).Like("torch.log1p(self)");
NPU_OP(InplaceLog1p) = Unary<abi::InplaceLog1p>(simd::kLog1p, abi::InplaceLog1p::selfRef, abi::InplaceLog1p::selfRef)
                           .Like("torch.log1p(selfRef)");
NPU_OP(Sqrt) = Unary<abi::Sqrt>(simd::kSqrt, abi::Sqrt::self, abi::Sqrt::out).Like("torch.sqrt(self)");
NPU_OP(InplaceSqrt) =
    Unary<abi::InplaceSqrt>(simd::kSqrt, abi::InplaceSqrt::self, abi::InplaceSqrt::self).Like("torch.sqrt(self)");
NPU_OP(Rsqrt) = Unary<abi::Rsqrt>(simd::kRsqrt, abi::Rsqrt::self, abi::Rsqrt::out).Like("torch.rsqrt(self)");
NPU_OP(InplaceRsqrt) = Unary<abi::InplaceRsqrt>(simd::kRsqrt, abi::InplaceRsqrt::selfRef, abi::InplaceRsqrt::selfRef)
                           .Like("torch.rsqrt(selfRef)");
NPU_OP(Reciprocal) = Unary<abi::Reciprocal>(simd::kReciprocal, abi::Reciprocal::self, abi::Reciprocal::out)
                         .Like("torch.reciprocal(self)");
NPU_OP(InplaceReciprocal) = Unary<abi::InplaceReciprocal>(simd::kReciprocal, abi::InplaceReciprocal::selfRef,
                                                          abi::InplaceReciprocal::selfRef)
                                .Like("torch.reciprocal(selfRef)");
NPU_OP(Sin) = Unary<abi::Sin>(simd::kSin, abi::Sin::self, abi::Sin::out).Like("torch.sin(self)");
NPU_OP(InplaceSin) =
    Unary<abi::InplaceSin>(simd::kSin, abi::InplaceSin::selfRef, abi::InplaceSin::selfRef).Like("torch.sin(selfRef)");
NPU_OP(Cos) = Unary<abi::Cos>(simd::kCos, abi::Cos::input, abi::Cos::out).Like("torch.cos(input)");
NPU_OP(InplaceCos) = Unary<abi::InplaceCos>(simd::kCos, abi::InplaceCos::inputRef, abi::InplaceCos::inputRef)
                         .Like("torch.cos(inputRef)");
NPU_OP(Tan) = Unary<abi::Tan>(simd::kTan, abi::Tan::self, abi::Tan::out).Like("torch.tan(self)");
NPU_OP(InplaceTan) =
    Unary<abi::InplaceTan>(simd::kTan, abi::InplaceTan::selfRef, abi::InplaceTan::selfRef).Like("torch.tan(selfRef)");
NPU_OP(Asin) = Unary<abi::Asin>(simd::kAsin, abi::Asin::self, abi::Asin::out).Like("torch.asin(self)");
NPU_OP(InplaceAsin) = Unary<abi::InplaceAsin>(simd::kAsin, abi::InplaceAsin::selfRef, abi::InplaceAsin::selfRef)
                          .Like("torch.asin(selfRef)");
NPU_OP(Acos) = Unary<abi::Acos>(simd::kAcos, abi::Acos::input, abi::Acos::out).Like("torch.acos(input)");
NPU_OP(InplaceAcos) = Unary<abi::InplaceAcos>(simd::kAcos, abi::InplaceAcos::inputRef, abi::InplaceAcos::inputRef)
                          .Like("torch.acos(inputRef)");
NPU_OP(Atan) = Unary<abi::Atan>(simd::kAtan, abi::Atan::input, abi::Atan::out).Like("torch.atan(input)");
NPU_OP(InplaceAtan) = Unary<abi::InplaceAtan>(simd::kAtan, abi::InplaceAtan::inputRef, abi::InplaceAtan::inputRef)
                          .Like("torch.atan(inputRef)");
NPU_OP(Sinh) = Unary<abi::Sinh>(simd::kSinh, abi::Sinh::self, abi::Sinh::out).Like("torch.sinh(self)");
NPU_OP(InplaceSinh) = Unary<abi::InplaceSinh>(simd::kSinh, abi::InplaceSinh::selfRef, abi::InplaceSinh::selfRef)
                          .Like("torch.sinh(selfRef)");
NPU_OP(Cosh) = Unary<abi::Cosh>(simd::kCosh, abi::Cosh::self, abi::Cosh::out).Like("torch.cosh(self)");
NPU_OP(InplaceCosh) = Unary<abi::InplaceCosh>(simd::kCosh, abi::InplaceCosh::selfRef, abi::InplaceCosh::selfRef)
                          .Like("torch.cosh(selfRef)");
NPU_OP(Tanh) = Unary<abi::Tanh>(simd::kTanh, abi::Tanh::self, abi::Tanh::out).Like("torch.tanh(self)");
NPU_OP(InplaceTanh) = Unary<abi::InplaceTanh>(simd::kTanh, abi::InplaceTanh::selfRef, abi::InplaceTanh::selfRef)
                          .Like("torch.tanh(selfRef)");
NPU_OP(Asinh) = Unary<abi::Asinh>(simd::kAsinh, abi::Asinh::input, abi::Asinh::out).Like("torch.asinh(input)");
NPU_OP(InplaceAsinh) = Unary<abi::InplaceAsinh>(simd::kAsinh, abi::InplaceAsinh::inputRef, abi::InplaceAsinh::inputRef)
                           .Like("torch.asinh(inputRef)");
NPU_OP(Acosh) = Unary<abi::Acosh>(simd::kAcosh, abi::Acosh::self, abi::Acosh::out).Like("torch.acosh(self)");
NPU_OP(InplaceAcosh) = Unary<abi::InplaceAcosh>(simd::kAcosh, abi::InplaceAcosh::selfRef, abi::InplaceAcosh::selfRef)
                           .Like("torch.acosh(selfRef)");
NPU_OP(Atanh) = Unary<abi::Atanh>(simd::kAtanh, abi::Atanh::input, abi::Atanh::out).Like("torch.atanh(input)");
NPU_OP(InplaceAtanh) = Unary<abi::InplaceAtanh>(simd::kAtanh, abi::InplaceAtanh::inputRef, abi::InplaceAtanh::inputRef)
                           .Like("torch.atanh(inputRef)");
NPU_OP(Sigmoid) =
    Unary<abi::Sigmoid>(simd::kSigmoid, abi::Sigmoid::self, abi::Sigmoid::out).Like("torch.sigmoid(self)");
NPU_OP(InplaceSigmoid) = Unary<abi::InplaceSigmoid>(simd::kSigmoid, abi::InplaceSigmoid::selfRef,
                                                    abi::InplaceSigmoid::selfRef)
                             .Like("torch.sigmoid(selfRef)");
NPU_OP(Erf) = Unary<abi::Erf>(simd::kErf, abi::Erf::self, abi::Erf::out).Like("torch.erf(self)");
NPU_OP(InplaceErf) =
    Unary<abi::InplaceErf>(simd::kErf, abi::InplaceErf::selfRef, abi::InplaceErf::selfRef).Like("torch.erf(selfRef)");
NPU_OP(Erfc) = Unary<abi::Erfc>(simd::kErfc, abi::Erfc::self, abi::Erfc::out).Like("torch.erfc(self)");
NPU_OP(InplaceErfc) = Unary<abi::InplaceErfc>(simd::kErfc, abi::InplaceErfc::selfRef, abi::InplaceErfc::selfRef)
                          .Like("torch.erfc(selfRef)");
NPU_OP(Erfinv) = Unary<abi::Erfinv>(simd::kErfinv, abi::Erfinv::self, abi::Erfinv::out).Like("torch.erfinv(self)");
NPU_OP(InplaceErfinv) = Unary<abi::InplaceErfinv>(simd::kErfinv, abi::InplaceErfinv::selfRef,
                                                  abi::InplaceErfinv::selfRef)
                            .Like("torch.erfinv(selfRef)");
NPU_OP(Floor) = Unary<abi::Floor>(simd::kFloor, abi::Floor::self, abi::Floor::out).Like("torch.floor(self)");
NPU_OP(InplaceFloor) = Unary<abi::InplaceFloor>(simd::kFloor, abi::InplaceFloor::selfRef, abi::InplaceFloor::selfRef)
                           .Like("torch.floor(selfRef)");
NPU_OP(Ceil) = Unary<abi::Ceil>(simd::kCeil, abi::Ceil::self, abi::Ceil::out).Like("torch.ceil(self)");
NPU_OP(InplaceCeil) = Unary<abi::InplaceCeil>(simd::kCeil, abi::InplaceCeil::selfRef, abi::InplaceCeil::selfRef)
                          .Like("torch.ceil(selfRef)");
NPU_OP(Round) = Unary<abi::Round>(simd::kRound, abi::Round::self, abi::Round::out).Like("torch.round(self)");
NPU_OP(Trunc) = Unary<abi::Trunc>(simd::kTrunc, abi::Trunc::self, abi::Trunc::out).Like("torch.trunc(self)");
NPU_OP(Frac) = Unary<abi::Frac>(simd::kFrac, abi::Frac::input, abi::Frac::out).Like("torch.frac(input)");
NPU_OP(InplaceFrac) = Unary<abi::InplaceFrac>(simd::kFrac, abi::InplaceFrac::inputRef, abi::InplaceFrac::inputRef)
                          .Like("torch.frac(inputRef)");
NPU_OP(Sign) = Unary<abi::Sign>(simd::kSign, abi::Sign::self, abi::Sign::result).Like("torch.sign(self)");
NPU_OP(Sinc) = Unary<abi::Sinc>(simd::kSinc, abi::Sinc::self, abi::Sinc::out).Like("torch.sinc(self)");
NPU_OP(InplaceSinc) = Unary<abi::InplaceSinc>(simd::kSinc, abi::InplaceSinc::selfRef, abi::InplaceSinc::selfRef)
                          .Like("torch.sinc(selfRef)");

}  // namespace npu::ops
