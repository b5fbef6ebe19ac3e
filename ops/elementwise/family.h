// Families of elementwise operators: an operator is one line that names a kernel and the parameters it binds.
//
//   NPU_OP(Add)  = Binary<Add>(simd::kAdd, Add::self, Add::other, Add::out).Scaled(Add::alpha).Like("torch.add(self,
//   other, alpha=alpha)"); NPU_OP(Muls) = Binary<Muls>(simd::kMul, Muls::self, Muls::other,
//   Muls::out).Like("torch.mul(self, other)"); NPU_OP(Exp)  = Unary<Exp>(simd::kExp, Exp::self,
//   Exp::out).Like("torch.exp(self)");
//
// An operand is a tensor or a number. Operands of different types are computed in the type torch promotes them to and
// stored in out's type, which must be able to hold it. In-place operators name the same parameter as operand and as
// out.
#pragma once

#include "kernels/simd/binary.h"
#include "kernels/simd/compare.h"
#include "kernels/simd/ternary.h"
#include "kernels/simd/unary.h"
#include "ops/core/builder.h"
#include "ops/core/rule.h"

namespace npu::ops {

// How the compute type follows from the operands' promoted type.
enum class Compute : uint8_t {
  kPromoted,  // as it is
  kFloat,     // integers and bool become float32 (div, exp, …)
  kOut,       // out's type decides (copy-like)
};

// Slots of the family: operands 0-2, out 3, numbers 4-7.
inline constexpr size_t kOutSlot = 3, kNumberSlot = 4;
// OpDef::imm: compute rule, and flags.
inline constexpr int64_t kComputeMask = 3, kShiftWidth = 4, kIgnoreNumbersInPromotion = 8, kRealResult = 16;

// What phase one settles for a call.
struct PointwiseChoice {
  const simd::PointwiseKernel* kernel = nullptr;
  DType compute = DType::none;
  std::array<uint8_t, 3> operands{0xff, 0xff, 0xff};  // parameters, in the kernel's order
  simd::Imm imm{};
};

KernelFacts DescribePointwise(const void* kernel);
Status PreparePointwise(Planning& plan);
Status RunPointwiseOp(const Call& c);

PointwiseChoice DefaultChoice(const Planning& plan);
Status FinishChoice(Planning& plan, const PointwiseChoice& choice);
// A number argument of any kind (scalar, float, int64, bool …); 0 when absent.
Scalar NumberAt(const OpDef& op, const Args& args, Token param);

// A whole number as an integer operand's type keeps it: torch converts it first, so that -1 is 255 among uint8. Others and
// numbers for other types are left as they are.
Scalar Kept(const Scalar& number, DType compute);

// A power with a known exponent is a product or a root where torch computes it so (and says NaN for the root of -inf).
const simd::PointwiseKernel& PowerKernel(const Scalar& exponent, DType compute);

// For operators whose kernel depends on an argument: kChoose changes the default choice.
//   .Prepares(PrepareChosen<[](const Planning& p, PointwiseChoice& c) -> Status { … }>)
template <auto kChoose>
Status PrepareChosen(Planning& plan) {
  PointwiseChoice choice = DefaultChoice(plan);
  NPU_TRY(kChoose(plan, choice));
  return FinishChoice(plan, choice);
}

namespace rule {
namespace check {
Status Promotes(const Planning& plan, const Rule& rule);
}  // namespace check
// The operands' promoted type is one the kernel computes, and out can hold it. params: operands…, out.
inline constexpr RuleKind kPromotes2{"promotes", check::Promotes, 0, 0b10};
inline constexpr RuleKind kPromotes3{"promotes", check::Promotes, 0, 0b100};
inline constexpr RuleKind kPromotes4{"promotes", check::Promotes, 0, 0b1000};
}  // namespace rule

class PointwiseBuilder : public Builder {
 public:
  consteval explicit PointwiseBuilder(Builder b) : Builder(b) {}
  // The operation's numbers, in the kernel's order (alpha; min and max; …).
  template <class... T>
  consteval PointwiseBuilder Scaled(T... numbers) const {
    Builder b = *this;
    size_t i = kNumberSlot;
    ((b = b.Slot(i++, numbers)), ...);
    return PointwiseBuilder(b);
  }
};

template <class A, class K, class... Operands>
consteval Builder PointwiseOp(std::string_view family, const K& kernel, Compute compute, int64_t flags, TensorToken out,
                              Operands... operands) {
  Builder b = Op<A>()
                  .Keyed(&kernel)
                  .Describes(DescribePointwise)
                  .Family(family)
                  .Imm(static_cast<int64_t>(compute) | flags)
                  .Required(out, operands...);
  size_t i = 0;
  ((b = b.Slot(i++, operands)), ...);
  b = b.Slot(kOutSlot, out);
  if constexpr (sizeof...(operands) == 1) {
    b = b.Rules(rule::Bind(rule::kSameShape, 0, operands..., out), rule::Bind(rule::kPromotes2, 0, operands..., out));
  } else if constexpr (sizeof...(operands) == 2) {
    b = b.Rules(rule::Bind(rule::kBroadcast2, 0, operands..., out), rule::Bind(rule::kPromotes3, 0, operands..., out));
  } else {
    b = b.Rules(rule::Bind(rule::kBroadcast3, 0, operands..., out), rule::Bind(rule::kPromotes4, 0, operands..., out));
  }
  return b.Prepares(PreparePointwise).Does(RunPointwiseOp);
}

template <class A, class T>
consteval PointwiseBuilder Unary(const simd::PointwiseKernel& k, T a, TensorToken out,
                                 Compute compute = Compute::kFloat) {
  return PointwiseBuilder(PointwiseOp<A>("unary", k, compute, 0, out, a));
}
// Complex numbers give real ones (abs): what is stored is the real part of what the kernel computes.
template <class A, class T>
consteval PointwiseBuilder UnaryToReal(const simd::PointwiseKernel& k, T a, TensorToken out) {
  return PointwiseBuilder(PointwiseOp<A>("unary", k, Compute::kFloat, kRealResult, out, a));
}
template <class A, class T, class U>
consteval PointwiseBuilder Binary(const simd::PointwiseKernel& k, T a, U b, TensorToken out,
                                  Compute compute = Compute::kPromoted) {
  return PointwiseBuilder(PointwiseOp<A>("binary", k, compute, 0, out, a, b));
}
// Results are bool, stored in whatever type out has.
template <class A, class T, class U>
consteval PointwiseBuilder Compare(const simd::PointwiseKernel& k, T a, U b, TensorToken out) {
  return PointwiseBuilder(PointwiseOp<A>("compare", k, Compute::kPromoted, 0, out, a, b));
}
template <class A, class T, class U, class W>
consteval PointwiseBuilder Pointwise3(const simd::PointwiseKernel& k, T a, U b, W c, TensorToken out,
                                      Compute compute = Compute::kPromoted) {
  return PointwiseBuilder(PointwiseOp<A>("pointwise3", k, compute, 0, out, a, b, c));
}

}  // namespace npu::ops
