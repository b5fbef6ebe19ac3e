// Operators of one formula whose kernel depends on an argument: rounding modes, exponents, optional bounds.
#include <cmath>

#include "gen/abi/ops.h"
#include "ops/elementwise/family.h"

namespace npu::ops {

const simd::PointwiseKernel& PowerKernel(const Scalar& exponent, DType compute) {
  const double e = exponent.re;
  if (exponent.Complex() || IsComplex(compute)) return simd::kPow;
  if (e == 2) return simd::kSquare;
  if (e == 3) return simd::kCube;
  if (!IsFloat(compute)) return simd::kPow;
  if (e == 0.5) return simd::kSqrt;
  if (e == -0.5) return simd::kRsqrt;
  if (e == -1) return simd::kReciprocal;
  if (e == -2) return simd::kInvSquare;
  return simd::kPow;
}

namespace {

DType FloatOf(DType t) { return IsFloat(t) || IsComplex(t) ? t : DType::f32; }

// Division: 0 is true division, 1 rounds towards zero, 2 towards minus infinity.
template <class A>
Status ChooseDivision(const Planning& p, PointwiseChoice& c) {
  switch (p.args[A::mode]) {
    case 0:
      c.kernel = &simd::kDiv;
      c.compute = FloatOf(c.compute);
      return {};
    case 1:
      c.kernel = &simd::kDivTrunc;
      return {};
    case 2:
      c.kernel = &simd::kDivFloor;
      return {};
    default:
      return p.Refuse("mode is {}.", p.args[A::mode])
          .Remedy("0 divides, 1 rounds towards zero, 2 towards minus infinity.");
  }
}

template <class A>
Status ChoosePower(const Planning& p, PointwiseChoice& c) {
  const Scalar& e = p.args[A::exponent];
  if (!IsFloat(c.compute) && !IsComplex(c.compute) && e.i < 0 && !e.Floating()) {
    return p.Refuse("exponent is {}, but integers have no negative powers.", e.i)
        .Remedy("Cast self to a float type first.");
  }
  c.kernel = &PowerKernel(e, c.compute);
  return {};
}

// Bounds take part in promotion; either may be absent, but not both.
Status ChooseClamp(const Planning& p, PointwiseChoice& c, const Scalar* lo, const Scalar* hi) {
  if (lo == nullptr && hi == nullptr) {
    return Error(Code::kNullPointer, "{}: clipValueMin and clipValueMax are both null.", p.op.name)
        .Remedy("Give one bound at least.");
  }
  const Tensor& self = *p.args.Maybe(TensorToken{{p.op.slots[0]}});
  Promotion type;
  type.AddTensor(self.dtype, self.rank);
  for (const Scalar* bound : {lo, hi})
    if (bound != nullptr) type.AddScalar(*bound);
  c.compute = type.Result();
  for (const Scalar* bound : {lo, hi}) {
    if (bound == nullptr || Kept(*bound, c.compute).i == bound->i) continue;
    // torch takes the negative of what uint8 holds, and no more.
    if (c.compute == DType::u8 && bound->i < 0 && bound->i >= -255) continue;
    return p.Refuse("a bound is {}, which {} does not hold.", bound->i, Name(c.compute)).Remedy("Use a bound that it holds, or cast self.");
  }
  c.kernel = lo == nullptr ? &simd::kClampMax : hi == nullptr ? &simd::kClampMin : &simd::kClamp;
  c.imm.Set(0, Kept(lo != nullptr ? *lo : *hi, c.compute));
  if (hi != nullptr) c.imm.Set(1, Kept(*hi, c.compute));
  return {};
}

// Tensor bounds: with one of them it is an extreme.
Status ChooseClampTensor(const Planning& p, PointwiseChoice& c) {
  const bool lo = p.args.Maybe(abi::ClampTensor::clipValueMin) != nullptr,
             hi = p.args.Maybe(abi::ClampTensor::clipValueMax) != nullptr;
  if (!lo && !hi) {
    return Error(Code::kNullPointer, "{}: clipValueMin and clipValueMax are both null.", p.op.name)
        .Remedy("Give one bound at least.");
  }
  if (lo && hi) return {};
  c.kernel = lo ? &simd::kMaximum : &simd::kMinimum;
  c.operands[1] = (lo ? abi::ClampTensor::clipValueMin : abi::ClampTensor::clipValueMax).index;
  return {};
}

Status ChooseBitNot(const Planning&, PointwiseChoice& c) {
  if (c.compute == DType::b8) c.kernel = &simd::kLogicalNot;
  return {};
}

// 10^decimals, as a factor, or as a divisor for negative ones.
template <class A>
Status ChooseRound(const Planning& p, PointwiseChoice& c) {
  const int64_t decimals = p.args[A::decimals];
  if (decimals == 0 || !IsFloat(c.compute)) {
    c.kernel = &simd::kRound;
    return {};
  }
  c.imm.Set(0, Scalar::Of(std::pow(10.0, static_cast<double>(std::abs(decimals)))));
  c.imm.Set(1, Scalar::Of(decimals < 0 ? 1.0 : 0.0));
  return {};
}

double LargestOf(DType t) {
  switch (t) {
    case DType::f16:
      return 65504.0;
    case DType::bf16:
      return 3.3895313892515355e38;
    case DType::f32:
      return 3.4028234663852886e38;
    default:
      return 1.7976931348623157e308;
  }
}

// The limits arrive as float32; a finite one that the type cannot hold stands for the type's largest. So does an infinite
// one for float64, whose own largest, torch's default, arrives as infinity (docs/limits.md).
template <class A>
Status ChooseNanToNum(const Planning& p, PointwiseChoice& c) {
  const double largest = LargestOf(c.compute);
  const auto fit = [&](double v) {
    const bool meant = std::isfinite(v) || (std::isinf(v) && c.compute == DType::f64);
    return meant ? std::min(std::max(v, -largest), largest) : v;
  };
  c.imm.Set(0, Scalar::Of(p.args[A::nan]));
  c.imm.Set(1, Scalar::Of(fit(p.args[A::posinf])));
  c.imm.Set(2, Scalar::Of(fit(p.args[A::neginf])));
  return {};
}

template <class A>
Status ChooseCelu(const Planning& p, PointwiseChoice& c) {
  const Scalar& alpha = p.args[A::alpha];
  if (alpha.re == 0) return p.Refuse("alpha is 0.").Remedy("celu divides by alpha.");
  c.imm.Set(0, alpha);
  c.imm.Set(1, Scalar::Of(1.0));
  c.imm.Set(2, Scalar::Of(1.0 / alpha.re));
  return {};
}

Status ChooseGelu(const Planning& p, PointwiseChoice& c) {
  const int64_t approximate = p.args[abi::GeluV2::approximate];
  if (approximate != 0 && approximate != 1)
    return p.Refuse("approximate is {}.", approximate).Remedy("0 is none, 1 is tanh.");
  if (approximate == 1) c.kernel = &simd::kGeluTanh;
  return {};
}

Status ChooseGeluBackward(const Planning& p, PointwiseChoice& c) {
  const std::string_view approximate = p.args[abi::GeluBackwardV2::approximate];
  if (approximate != "none" && approximate != "tanh")
    return p.Refuse("approximate is '{}'.", approximate).Remedy("Pass none or tanh.");
  if (approximate == "tanh") c.kernel = &simd::kGeluTanhGrad;
  return {};
}

Status ChooseEluBackward(const Planning& p, PointwiseChoice& c) {
  if (p.args[abi::EluBackward::isResult]) c.kernel = &simd::kEluGradResult;
  return {};
}

}  // namespace

using abi::DivMod, abi::DivMods, abi::InplaceDivMod, abi::InplaceDivMods;
inline constexpr std::string_view kRoundingModes = "[0, 1, 2]";
NPU_OP(DivMod) = Binary<DivMod>(simd::kDivFloor, DivMod::self, DivMod::other, DivMod::out)
                     .Uses(DivMod::mode)
                     .Samples(DivMod::mode, kRoundingModes)
                     .Like("torch.div(self, other, rounding_mode=[None, 'trunc', 'floor'][mode])")
                     .Prepares(PrepareChosen<ChooseDivision<DivMod>>);
NPU_OP(DivMods) = Binary<DivMods>(simd::kDivFloor, DivMods::self, DivMods::other, DivMods::out)
                      .Uses(DivMods::mode)
                      .Samples(DivMods::mode, kRoundingModes)
                      .Like("torch.div(self, other, rounding_mode=[None, 'trunc', 'floor'][mode])")
                      .Prepares(PrepareChosen<ChooseDivision<DivMods>>);
NPU_OP(InplaceDivMod) = Binary<InplaceDivMod>(simd::kDivFloor, InplaceDivMod::selfRef, InplaceDivMod::other,
                                              InplaceDivMod::selfRef)
                            .Uses(InplaceDivMod::mode)
                            .Samples(InplaceDivMod::mode, kRoundingModes)
                            .Like("torch.div(selfRef, other, rounding_mode=[None, 'trunc', 'floor'][mode])")
                            .Prepares(PrepareChosen<ChooseDivision<InplaceDivMod>>);
NPU_OP(InplaceDivMods) = Binary<InplaceDivMods>(simd::kDivFloor, InplaceDivMods::selfRef, InplaceDivMods::other,
                                                InplaceDivMods::selfRef)
                             .Uses(InplaceDivMods::mode)
                             .Samples(InplaceDivMods::mode, kRoundingModes)
                             .Like("torch.div(selfRef, other, rounding_mode=[None, 'trunc', 'floor'][mode])")
                             .Prepares(PrepareChosen<ChooseDivision<InplaceDivMods>>);

using abi::PowTensorScalar, abi::InplacePowTensorScalar;
inline constexpr std::string_view kExponents = "[2, 3, 0.5, -0.5, -1.0, -2.0, 1.75, 0]";
NPU_OP(PowTensorScalar) = Binary<PowTensorScalar>(simd::kPow, PowTensorScalar::self, PowTensorScalar::exponent,
                                                  PowTensorScalar::out)
                              .Samples(PowTensorScalar::exponent, kExponents)
                              .Like("torch.pow(self, exponent)")
                              .Prepares(PrepareChosen<ChoosePower<PowTensorScalar>>);
NPU_OP(InplacePowTensorScalar) = Binary<InplacePowTensorScalar>(simd::kPow, InplacePowTensorScalar::self,
                                                                InplacePowTensorScalar::exponent,
                                                                InplacePowTensorScalar::self)
                                     .Samples(InplacePowTensorScalar::exponent, kExponents)
                                     .Like("torch.pow(self, exponent)")
                                     .Prepares(PrepareChosen<ChoosePower<InplacePowTensorScalar>>);

using abi::Clamp, abi::ClampMin, abi::ClampMax, abi::InplaceClampMax, abi::ClampTensor;
NPU_OP(Clamp) = Unary<Clamp>(simd::kClamp, Clamp::self, Clamp::out, Compute::kPromoted)
                    .Uses(Clamp::clipValueMin, Clamp::clipValueMax)
                    .Optional(Clamp::clipValueMin, Clamp::clipValueMax)
                    .Samples(Clamp::clipValueMin, "[-1, 0]")
                    .Samples(Clamp::clipValueMax, "[1, 3, None]")
                    .Like("torch.clamp(self, clipValueMin, clipValueMax)")
                    .Prepares(PrepareChosen<[](const Planning& p, PointwiseChoice& c) {
                      return ChooseClamp(p, c, p.args.Maybe(Clamp::clipValueMin), p.args.Maybe(Clamp::clipValueMax));
                    }>);
NPU_OP(ClampMin) = Unary<ClampMin>(simd::kClamp, ClampMin::self, ClampMin::out, Compute::kPromoted)
                       .Uses(ClampMin::clipValueMin)
                       .Like("torch.clamp(self, min=clipValueMin)")
                       .Prepares(PrepareChosen<[](const Planning& p, PointwiseChoice& c) {
                         return ChooseClamp(p, c, &p.args[ClampMin::clipValueMin], nullptr);
                       }>);
NPU_OP(ClampMax) = Unary<ClampMax>(simd::kClamp, ClampMax::self, ClampMax::out, Compute::kPromoted)
                       .Uses(ClampMax::clipValueMax)
                       .Like("torch.clamp(self, max=clipValueMax)")
                       .Prepares(PrepareChosen<[](const Planning& p, PointwiseChoice& c) {
                         return ChooseClamp(p, c, nullptr, &p.args[ClampMax::clipValueMax]);
                       }>);
NPU_OP(InplaceClampMax) = Unary<InplaceClampMax>(simd::kClamp, InplaceClampMax::selfRef, InplaceClampMax::selfRef,
                                                 Compute::kPromoted)
                              .Uses(InplaceClampMax::clipValueMax)
                              .Like("torch.clamp(selfRef, max=clipValueMax)")
                              .Prepares(PrepareChosen<[](const Planning& p, PointwiseChoice& c) {
                                return ChooseClamp(p, c, nullptr, &p.args[InplaceClampMax::clipValueMax]);
                              }>);
NPU_OP(ClampTensor) = Op<ClampTensor>()
                          .Keyed(&simd::kClamp3)
                          .Describes(DescribePointwise)
                          .Family("pointwise3")
                          .Slots(ClampTensor::self, ClampTensor::clipValueMin, ClampTensor::clipValueMax,
                                 ClampTensor::out)
                          .Rules(rule::Bind(rule::kBroadcast3, 0, ClampTensor::self, ClampTensor::clipValueMin,
                                            ClampTensor::clipValueMax, ClampTensor::out),
                                 rule::Bind(rule::kPromotes4, 0, ClampTensor::self, ClampTensor::clipValueMin,
                                            ClampTensor::clipValueMax, ClampTensor::out))
                          .Like("torch.clamp(self, clipValueMin, clipValueMax)")
                          .Prepares(PrepareChosen<ChooseClampTensor>)
                          .Does(RunPointwiseOp);

using abi::BitwiseNot, abi::RoundDecimals, abi::InplaceRoundDecimals, abi::NanToNum, abi::InplaceNanToNum, abi::Celu,
    abi::InplaceCelu;
NPU_OP(BitwiseNot) = Unary<BitwiseNot>(simd::kBitNot, BitwiseNot::self, BitwiseNot::out, Compute::kPromoted)
                         .Like("torch.bitwise_not(self)")
                         .Prepares(PrepareChosen<ChooseBitNot>);
NPU_OP(RoundDecimals) = Unary<RoundDecimals>(simd::kRoundDecimals, RoundDecimals::self, RoundDecimals::out,
                                             Compute::kPromoted)
                            .Uses(RoundDecimals::decimals)
                            .Samples(RoundDecimals::decimals, "[0, 2, -1]")
                            .Like("torch.round(self, decimals=decimals)")
                            .Prepares(PrepareChosen<ChooseRound<RoundDecimals>>);
NPU_OP(InplaceRoundDecimals) = Unary<InplaceRoundDecimals>(simd::kRoundDecimals, InplaceRoundDecimals::selfRef,
                                                           InplaceRoundDecimals::selfRef, Compute::kPromoted)
                                   .Uses(InplaceRoundDecimals::decimals)
                                   .Samples(InplaceRoundDecimals::decimals, "[0, 2, -1]")
                                   .Like("torch.round(selfRef, decimals=decimals)")
                                   .Prepares(PrepareChosen<ChooseRound<InplaceRoundDecimals>>);
NPU_OP(NanToNum) = Unary<NanToNum>(simd::kNanToNum, NanToNum::self, NanToNum::out, Compute::kPromoted)
                       .Uses(NanToNum::nan, NanToNum::posinf, NanToNum::neginf)
                       .Like("torch.nan_to_num(self, nan, posinf, neginf)")
                       .Prepares(PrepareChosen<ChooseNanToNum<NanToNum>>);
NPU_OP(InplaceNanToNum) = Unary<InplaceNanToNum>(simd::kNanToNum, InplaceNanToNum::selfRef, InplaceNanToNum::selfRef,
                                                 Compute::kPromoted)
                              .Uses(InplaceNanToNum::nan, InplaceNanToNum::posinf, InplaceNanToNum::neginf)
                              .Like("torch.nan_to_num(selfRef, nan, posinf, neginf)")
                              .Prepares(PrepareChosen<ChooseNanToNum<InplaceNanToNum>>);
NPU_OP(Celu) = Unary<Celu>(simd::kElu, Celu::self, Celu::out)
                   .Uses(Celu::alpha)
                   .Samples(Celu::alpha, "[1.0, 0.5]")
                   .Like("F.celu(self, alpha)")
                   .Prepares(PrepareChosen<ChooseCelu<Celu>>);
NPU_OP(InplaceCelu) = Unary<InplaceCelu>(simd::kElu, InplaceCelu::selfRef, InplaceCelu::selfRef)
                          .Uses(InplaceCelu::alpha)
                          .Samples(InplaceCelu::alpha, "[1.0, 0.5]")
                          .Like("F.celu(selfRef, alpha)")
                          .Prepares(PrepareChosen<ChooseCelu<InplaceCelu>>);

using abi::GeluV2, abi::GeluBackwardV2, abi::EluBackward, abi::LeakyReluBackward, abi::LogSigmoidForward,
    abi::LogSigmoidBackward;
NPU_OP(GeluV2) = Unary<GeluV2>(simd::kGelu, GeluV2::x, GeluV2::y)
                     .Uses(GeluV2::approximate)
                     .Samples(GeluV2::approximate, "[0, 1]")
                     .Like("F.gelu(x, approximate=['none', 'tanh'][approximate])")
                     .Prepares(PrepareChosen<ChooseGelu>);
NPU_OP(GeluBackwardV2) = Binary<GeluBackwardV2>(simd::kGeluGrad, GeluBackwardV2::gradOutput, GeluBackwardV2::self,
                                                GeluBackwardV2::gradInput)
                             .Uses(GeluBackwardV2::approximate)
                             .Samples(GeluBackwardV2::approximate, "['none', 'tanh']")
                             .Like("torch.ops.aten.gelu_backward(gradOutput, self, approximate=approximate)")
                             .Prepares(PrepareChosen<ChooseGeluBackward>);
NPU_OP(EluBackward) =
    Binary<EluBackward>(simd::kEluGrad, EluBackward::gradOutput, EluBackward::selfOrResult, EluBackward::gradInput)
        .Scaled(EluBackward::alpha, EluBackward::scale, EluBackward::inputScale)
        .Uses(EluBackward::isResult)
        .Samples(EluBackward::alpha, "[1.0, 0.5]")
        .Samples(EluBackward::scale, "[1.0, 1.25]")
        .Samples(EluBackward::inputScale, "[1.0, 0.75]")
        .Like("torch.ops.aten.elu_backward(gradOutput, alpha, scale, inputScale, isResult, selfOrResult)")
        .Prepares(PrepareChosen<ChooseEluBackward>);
NPU_OP(LeakyReluBackward) =
    Binary<LeakyReluBackward>(simd::kLeakyReluGrad, LeakyReluBackward::gradOutput, LeakyReluBackward::self,
                              LeakyReluBackward::out)
        .Scaled(LeakyReluBackward::negativeSlope)
        .Uses(LeakyReluBackward::selfIsResult)
        .Samples(LeakyReluBackward::negativeSlope, "[0.0625, 0.25]")
        .Like("torch.ops.aten.leaky_relu_backward(gradOutput, self, negativeSlope, selfIsResult)");
// The buffer is the GPU's; nothing here needs it.
NPU_OP(LogSigmoidForward) = Unary<LogSigmoidForward>(simd::kLogSigmoid, LogSigmoidForward::self, LogSigmoidForward::out)
                                .Rules(rule::AnyShape(LogSigmoidForward::buffer),
                                       rule::AnyDtype(LogSigmoidForward::buffer))
                                .Optional(LogSigmoidForward::buffer)
                                .Like("(F.logsigmoid(self), None)");
NPU_OP(LogSigmoidBackward) = Binary<LogSigmoidBackward>(simd::kLogSigmoidGrad, LogSigmoidBackward::gradOutput,
                                                        LogSigmoidBackward::self, LogSigmoidBackward::gradInput)
                                 .Uses(LogSigmoidBackward::buffer)
                                 .Optional(LogSigmoidBackward::buffer)
                                 .Like("torch.ops.aten.log_sigmoid_backward(gradOutput, self, torch.exp(-self.abs()))");

using abi::InplaceMaskedFillScalar, abi::InplaceMaskedFillTensor;
NPU_OP(InplaceMaskedFillScalar) = Op<InplaceMaskedFillScalar>()
                                      .Keyed(&simd::kWhere)
                                      .Describes(DescribePointwise)
                                      .Family("masked_fill")
                                      .Imm(static_cast<int64_t>(Compute::kOut))
                                      .Slots(InplaceMaskedFillScalar::mask, InplaceMaskedFillScalar::value,
                                             InplaceMaskedFillScalar::selfRef, InplaceMaskedFillScalar::selfRef)
                                      .Rules(rule::ExpandsTo(InplaceMaskedFillScalar::mask,
                                                             InplaceMaskedFillScalar::selfRef),
                                             rule::DtypeIn(InplaceMaskedFillScalar::mask, kBool))
                                      .Like("selfRef.masked_fill(mask, value)")
                                      .Prepares(PreparePointwise)
                                      .Does(RunPointwiseOp);
NPU_OP(InplaceMaskedFillTensor) = Op<InplaceMaskedFillTensor>()
                                      .Keyed(&simd::kWhere)
                                      .Describes(DescribePointwise)
                                      .Family("masked_fill")
                                      .Imm(static_cast<int64_t>(Compute::kOut))
                                      .Slots(InplaceMaskedFillTensor::mask, InplaceMaskedFillTensor::value,
                                             InplaceMaskedFillTensor::selfRef, InplaceMaskedFillTensor::selfRef)
                                      .Rules(rule::ExpandsTo(InplaceMaskedFillTensor::mask,
                                                             InplaceMaskedFillTensor::selfRef),
                                             rule::DtypeIn(InplaceMaskedFillTensor::mask, kBool),
                                             rule::RankIs(InplaceMaskedFillTensor::value, 0))
                                      .Like("selfRef.masked_fill(mask, value)")
                                      .Prepares(PreparePointwise)
                                      .Does(RunPointwiseOp);

}  // namespace npu::ops
