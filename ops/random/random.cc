// Random numbers. A seed and an offset name the numbers completely; the …Tensor forms read both from device memory.
#include "kernels/simd/random/random.h"

#include <cmath>

#include "gen/abi/ops.h"
#include "kernels/simd/copy/copy.h"
#include "kernels/simd/rows/convert.h"
#include "ops/common/dims.h"

namespace npu::ops {

using namespace rule;  // NOLINT(google-build-using-namespace)

namespace {

simd::Philox Key(int64_t seed, int64_t offset) { return {static_cast<uint64_t>(seed), static_cast<uint64_t>(offset)}; }
simd::Philox Key(const Tensor& seed, const Tensor& offset, int64_t more) {
  return Key(simd::LoadInt(seed.data, seed.dtype), simd::LoadInt(offset.data, offset.dtype) + more);
}

Status WantNumbers(const Planning& plan, TensorIn seed, TensorIn offset) {
  for (const TensorIn t : {seed, offset}) {
    const Tensor& v = plan.args[t];
    if (IsInt(v.dtype) && v.Numel() >= 1) continue;
    return plan.Refuse("{} is {} {}, but must be an integer.", plan.ParamName(t), Name(v.dtype), ShapeText(v.Shape()));
  }
  return {};
}

// Whole numbers that every value of a type below has: what random_() without bounds draws from.
uint64_t DefaultRange(DType t) {
  switch (t) {
    case DType::f64: return (uint64_t{1} << 53) + 1;
    case DType::f32: return (uint64_t{1} << 24) + 1;
    case DType::f16: return (uint64_t{1} << 11) + 1;
    case DType::bf16: return (uint64_t{1} << 8) + 1;
    case DType::b8: return 2;
    case DType::u8: return 256;
    case DType::i8: return 128;
    case DType::i16: return 32768;
    case DType::i32: return uint64_t{1} << 31;
    default: return uint64_t{1} << 63;
  }
}

Status WantBounds(const Planning& plan, int64_t from, int64_t to) {
  if (from < to) return {};
  return plan.Refuse("from is {} and to is {}.", from, to).Remedy("from must be smaller than to.");
}
Status WantInterval(const Planning& plan, double from, double to) {
  if (from <= to && std::isfinite(to - from)) return {};
  return plan.Refuse("from is {} and to is {}.", from, to).Remedy("from must not be larger than to, and both finite.");
}
Status WantDeviation(const Planning& plan, double std) {
  if (std >= 0) return {};
  return plan.Refuse("std is {}.", std).Remedy("It must not be negative.");
}
Status WantProbability(const Planning& plan, Token name, double p) {
  if (p >= 0 && p <= 1) return {};
  return plan.Refuse("{} is {}.", plan.ParamName(name), p).Remedy("It must be between 0 and 1.");
}

// Tests compare distributions, not numbers: tests/conformance/test_random.py.
constexpr std::string_view kJudge = "statistics";

}  // namespace

using abi::InplaceUniform, abi::InplaceUniformTensor, abi::InplaceNormal, abi::InplaceNormalTensor;
NPU_OP(InplaceUniform) = Op<InplaceUniform>()
    .Rules(DtypeIn(InplaceUniform::selfRef, kFloats))
    .Uses(InplaceUniform::from, InplaceUniform::to, InplaceUniform::seed, InplaceUniform::offset)
    .Like(kJudge)
    .Prepares([](Planning& plan) { return WantInterval(plan, plan.args[InplaceUniform::from], plan.args[InplaceUniform::to]); })
    .Does([](const Call& c) -> Status {
      const Args& a = c.args;
      simd::FillUniform(Key(a[InplaceUniform::seed], a[InplaceUniform::offset]), a[InplaceUniform::from], a[InplaceUniform::to],
                        a[InplaceUniform::selfRef], c.parallel);
      return {};
    });
NPU_OP(InplaceUniformTensor) = Op<InplaceUniformTensor>()
    .Rules(DtypeIn(InplaceUniformTensor::selfRef, kFloats))
    .Uses(InplaceUniformTensor::from, InplaceUniformTensor::to, InplaceUniformTensor::seedTensor, InplaceUniformTensor::offsetTensor,
          InplaceUniformTensor::offset)
    .Like(kJudge)
    .Prepares([](Planning& plan) -> Status {
      NPU_TRY(WantNumbers(plan, InplaceUniformTensor::seedTensor, InplaceUniformTensor::offsetTensor));
      return WantInterval(plan, plan.args[InplaceUniformTensor::from], plan.args[InplaceUniformTensor::to]);
    })
    .Does([](const Call& c) -> Status {
      const Args& a = c.args;
      simd::FillUniform(Key(a[InplaceUniformTensor::seedTensor], a[InplaceUniformTensor::offsetTensor], a[InplaceUniformTensor::offset]),
                        a[InplaceUniformTensor::from], a[InplaceUniformTensor::to], a[InplaceUniformTensor::selfRef], c.parallel);
      return {};
    });
NPU_OP(InplaceNormal) = Op<InplaceNormal>()
    .Rules(DtypeIn(InplaceNormal::selfRef, kFloats))
    .Uses(InplaceNormal::mean, InplaceNormal::std, InplaceNormal::seed, InplaceNormal::offset)
    .Like(kJudge)
    .Prepares([](Planning& plan) { return WantDeviation(plan, plan.args[InplaceNormal::std]); })
    .Does([](const Call& c) -> Status {
      const Args& a = c.args;
      simd::FillNormal(Key(a[InplaceNormal::seed], a[InplaceNormal::offset]), a[InplaceNormal::mean], a[InplaceNormal::std],
                       a[InplaceNormal::selfRef], c.parallel);
      return {};
    });
NPU_OP(InplaceNormalTensor) = Op<InplaceNormalTensor>()
    .Rules(DtypeIn(InplaceNormalTensor::selfRef, kFloats))
    .Uses(InplaceNormalTensor::mean, InplaceNormalTensor::std, InplaceNormalTensor::seedTensor, InplaceNormalTensor::offsetTensor,
          InplaceNormalTensor::offset)
    .Like(kJudge)
    .Prepares([](Planning& plan) -> Status {
      NPU_TRY(WantNumbers(plan, InplaceNormalTensor::seedTensor, InplaceNormalTensor::offsetTensor));
      return WantDeviation(plan, plan.args[InplaceNormalTensor::std]);
    })
    .Does([](const Call& c) -> Status {
      const Args& a = c.args;
      simd::FillNormal(Key(a[InplaceNormalTensor::seedTensor], a[InplaceNormalTensor::offsetTensor], a[InplaceNormalTensor::offset]),
                       a[InplaceNormalTensor::mean], a[InplaceNormalTensor::std], a[InplaceNormalTensor::selfRef], c.parallel);
      return {};
    });

using abi::NormalFloatFloat, abi::NormalFloatTensor, abi::NormalTensorFloat, abi::NormalTensorTensor;
NPU_OP(NormalFloatFloat) = Op<NormalFloatFloat>()
    .Rules(AnyShape(NormalFloatFloat::out), DtypeIn(NormalFloatFloat::out, kFloats))
    .Uses(NormalFloatFloat::mean, NormalFloatFloat::std, NormalFloatFloat::seed, NormalFloatFloat::offset)
    .Like(kJudge)
    .Prepares([](Planning& plan) { return WantDeviation(plan, plan.args[NormalFloatFloat::std]); })
    .Does([](const Call& c) -> Status {
      const Args& a = c.args;
      simd::FillNormal(Key(a[NormalFloatFloat::seed], a[NormalFloatFloat::offset]), a[NormalFloatFloat::mean], a[NormalFloatFloat::std],
                       a[NormalFloatFloat::out], c.parallel);
      return {};
    });
NPU_OP(NormalFloatTensor) = Op<NormalFloatTensor>()
    .Rules(DtypeIn(NormalFloatTensor::std, kFloats), ExpandsTo(NormalFloatTensor::std, NormalFloatTensor::out), AnyShape(NormalFloatTensor::out),
           DtypeIn(NormalFloatTensor::out, kFloats))
    .Uses(NormalFloatTensor::mean, NormalFloatTensor::seed, NormalFloatTensor::offset)
    .Like(kJudge)
    .Does([](const Call& c) -> Status {
      const Args& a = c.args;
      const Tensor& out = a[NormalFloatTensor::out];
      const Tensor std = Expanded(a[NormalFloatTensor::std], out.Shape());
      simd::FillNormal(Key(a[NormalFloatTensor::seed], a[NormalFloatTensor::offset]), nullptr, a[NormalFloatTensor::mean], &std, 0, out,
                       c.parallel);
      return {};
    });
NPU_OP(NormalTensorFloat) = Op<NormalTensorFloat>()
    .Rules(DtypeIn(NormalTensorFloat::mean, kFloats), ExpandsTo(NormalTensorFloat::mean, NormalTensorFloat::out), AnyShape(NormalTensorFloat::out),
           DtypeIn(NormalTensorFloat::out, kFloats))
    .Uses(NormalTensorFloat::std, NormalTensorFloat::seed, NormalTensorFloat::offset)
    .Like(kJudge)
    .Prepares([](Planning& plan) { return WantDeviation(plan, plan.args[NormalTensorFloat::std]); })
    .Does([](const Call& c) -> Status {
      const Args& a = c.args;
      const Tensor& out = a[NormalTensorFloat::out];
      const Tensor mean = Expanded(a[NormalTensorFloat::mean], out.Shape());
      simd::FillNormal(Key(a[NormalTensorFloat::seed], a[NormalTensorFloat::offset]), &mean, 0, nullptr, a[NormalTensorFloat::std], out,
                       c.parallel);
      return {};
    });
NPU_OP(NormalTensorTensor) = Op<NormalTensorTensor>()
    .Rules(DtypeIn(NormalTensorTensor::mean, kFloats), DtypeIn(NormalTensorTensor::std, kFloats),
           Broadcast(NormalTensorTensor::mean, NormalTensorTensor::std, NormalTensorTensor::out), DtypeIn(NormalTensorTensor::out, kFloats))
    .Uses(NormalTensorTensor::seed, NormalTensorTensor::offset)
    .Like(kJudge)
    .Does([](const Call& c) -> Status {
      const Args& a = c.args;
      const Tensor& out = a[NormalTensorTensor::out];
      const Tensor mean = Expanded(a[NormalTensorTensor::mean], out.Shape()), std = Expanded(a[NormalTensorTensor::std], out.Shape());
      simd::FillNormal(Key(a[NormalTensorTensor::seed], a[NormalTensorTensor::offset]), &mean, 0, &std, 0, out, c.parallel);
      return {};
    });

using abi::InplaceRandom, abi::InplaceRandomTensor, abi::InplaceRandomWithoutFromTo, abi::InplaceRandomWithoutFromToTensor;
NPU_OP(InplaceRandom) = Op<InplaceRandom>()
    .Rules(DtypeIn(InplaceRandom::selfRef, kReals))
    .Uses(InplaceRandom::from, InplaceRandom::to, InplaceRandom::seed, InplaceRandom::offset)
    .Like(kJudge)
    .Prepares([](Planning& plan) { return WantBounds(plan, plan.args[InplaceRandom::from], plan.args[InplaceRandom::to]); })
    .Does([](const Call& c) -> Status {
      const Args& a = c.args;
      const int64_t from = a[InplaceRandom::from];
      simd::FillIntegers(Key(a[InplaceRandom::seed], a[InplaceRandom::offset]), from,
                         static_cast<uint64_t>(a[InplaceRandom::to]) - static_cast<uint64_t>(from), a[InplaceRandom::selfRef], c.parallel);
      return {};
    });
NPU_OP(InplaceRandomTensor) = Op<InplaceRandomTensor>()
    .Rules(DtypeIn(InplaceRandomTensor::selfRef, kReals))
    .Uses(InplaceRandomTensor::from, InplaceRandomTensor::to, InplaceRandomTensor::seedTensor, InplaceRandomTensor::offsetTensor,
          InplaceRandomTensor::offset)
    .Like(kJudge)
    .Prepares([](Planning& plan) -> Status {
      NPU_TRY(WantNumbers(plan, InplaceRandomTensor::seedTensor, InplaceRandomTensor::offsetTensor));
      return WantBounds(plan, plan.args[InplaceRandomTensor::from], plan.args[InplaceRandomTensor::to]);
    })
    .Does([](const Call& c) -> Status {
      const Args& a = c.args;
      const int64_t from = a[InplaceRandomTensor::from];
      simd::FillIntegers(Key(a[InplaceRandomTensor::seedTensor], a[InplaceRandomTensor::offsetTensor], a[InplaceRandomTensor::offset]), from,
                         static_cast<uint64_t>(a[InplaceRandomTensor::to]) - static_cast<uint64_t>(from), a[InplaceRandomTensor::selfRef],
                         c.parallel);
      return {};
    });
NPU_OP(InplaceRandomWithoutFromTo) = Op<InplaceRandomWithoutFromTo>()
    .Rules(DtypeIn(InplaceRandomWithoutFromTo::selfRef, kReals))
    .Uses(InplaceRandomWithoutFromTo::seed, InplaceRandomWithoutFromTo::offset)
    .Like(kJudge)
    .Does([](const Call& c) -> Status {
      const Tensor& self = c.args[InplaceRandomWithoutFromTo::selfRef];
      simd::FillIntegers(Key(c.args[InplaceRandomWithoutFromTo::seed], c.args[InplaceRandomWithoutFromTo::offset]), 0, DefaultRange(self.dtype),
                         self, c.parallel);
      return {};
    });
NPU_OP(InplaceRandomWithoutFromToTensor) = Op<InplaceRandomWithoutFromToTensor>()
    .Rules(DtypeIn(InplaceRandomWithoutFromToTensor::selfRef, kReals))
    .Uses(InplaceRandomWithoutFromToTensor::seedTensor, InplaceRandomWithoutFromToTensor::offsetTensor, InplaceRandomWithoutFromToTensor::offset)
    .Like(kJudge)
    .Prepares([](Planning& plan) {
      return WantNumbers(plan, InplaceRandomWithoutFromToTensor::seedTensor, InplaceRandomWithoutFromToTensor::offsetTensor);
    })
    .Does([](const Call& c) -> Status {
      const Args& a = c.args;
      const Tensor& self = a[InplaceRandomWithoutFromToTensor::selfRef];
      simd::FillIntegers(Key(a[InplaceRandomWithoutFromToTensor::seedTensor], a[InplaceRandomWithoutFromToTensor::offsetTensor],
                             a[InplaceRandomWithoutFromToTensor::offset]),
                         0, DefaultRange(self.dtype), self, c.parallel);
      return {};
    });

using abi::InplaceBernoulli, abi::InplaceBernoulliTensor;
NPU_OP(InplaceBernoulli) = Op<InplaceBernoulli>()
    .Rules(DtypeIn(InplaceBernoulli::selfRef, kReals))
    .Uses(InplaceBernoulli::prob, InplaceBernoulli::seed, InplaceBernoulli::offset)
    .Like(kJudge)
    .Prepares([](Planning& plan) { return WantProbability(plan, InplaceBernoulli::prob, plan.args[InplaceBernoulli::prob].re); })
    .Does([](const Call& c) -> Status {
      const Args& a = c.args;
      simd::FillBernoulli(Key(a[InplaceBernoulli::seed], a[InplaceBernoulli::offset]), a[InplaceBernoulli::prob].re, a[InplaceBernoulli::selfRef],
                          c.parallel);
      return {};
    });
NPU_OP(InplaceBernoulliTensor) = Op<InplaceBernoulliTensor>()
    .Rules(DtypeIn(InplaceBernoulliTensor::selfRef, kReals), DtypeIn(InplaceBernoulliTensor::prob, kFloats),
           ExpandsTo(InplaceBernoulliTensor::prob, InplaceBernoulliTensor::selfRef))
    .Uses(InplaceBernoulliTensor::seed, InplaceBernoulliTensor::offset)
    .Like(kJudge)
    .Does([](const Call& c) -> Status {
      const Args& a = c.args;
      const Tensor& self = a[InplaceBernoulliTensor::selfRef];
      simd::FillBernoulli(Key(a[InplaceBernoulliTensor::seed], a[InplaceBernoulliTensor::offset]),
                          Expanded(a[InplaceBernoulliTensor::prob], self.Shape()), self, c.parallel);
      return {};
    });

using abi::Randperm, abi::Multinomial, abi::MultinomialTensor, abi::SimThreadExponential;
NPU_OP(Randperm) = Op<Randperm>()
    .Rules(AnyShape(Randperm::out), DtypeIn(Randperm::out, kNumbers))
    .Uses(Randperm::n, Randperm::seed, Randperm::offset)
    .Like(kJudge)
    .Prepares([](Planning& plan) -> Status {
      if (plan.args[Randperm::n] < 0) return plan.Refuse("n is {}.", plan.args[Randperm::n]).Remedy("It must not be negative.");
      Dims wanted;
      wanted.Push(plan.args[Randperm::n]);
      return WantShape(plan, Randperm::out, wanted, "it holds one permutation of n numbers");
    })
    .Does([](const Call& c) -> Status {
      const Args& a = c.args;
      simd::FillPermutation(Key(a[Randperm::seed], a[Randperm::offset]), a[Randperm::n], a[Randperm::out], c.parallel);
      return {};
    });

namespace {

Status WantDraws(const Planning& plan, const Tensor& self, int64_t samples, bool replacement, TensorOut out) {
  if (self.rank < 1 || self.rank > 2) {
    return plan.Refuse("self has shape {}, but must have one or two dimensions.", ShapeText(self.Shape()));
  }
  const int64_t classes = self.shape[static_cast<size_t>(self.rank - 1)];
  if (samples <= 0 || (!replacement && samples > classes)) {
    return plan.Refuse("numsamples is {}, but there are {} classes{}.", samples, classes, replacement ? "" : " and nothing is put back")
        .Remedy("Draw at least one, and without replacement no more than there are.");
  }
  Dims wanted = DimsOf(self);
  wanted.size[static_cast<size_t>(self.rank - 1)] = samples;
  return WantShape(plan, out, wanted, fmt::format("{} are drawn from each row", samples));
}

Status Draw(const Call& c, simd::Philox key, const Tensor& self, int64_t samples, bool replacement, const Tensor& out) {
  switch (simd::Multinomial(key, self, samples, replacement, out, c.parallel)) {
    case simd::SampleFault::kNone: return {};
    case simd::SampleFault::kBadProbability:
      return Error(Code::kTaskException, "{}: self has an element that is negative, infinite or NaN.", c.op.name)
          .Remedy("Probabilities must be finite and not negative.");
    case simd::SampleFault::kZeroSum:
      return Error(Code::kTaskException, "{}: a row of self adds up to 0.", c.op.name).Remedy("Each row needs a probability above 0.");
    case simd::SampleFault::kTooFew:
      return Error(Code::kTaskException, "{}: a row of self has fewer than {} probabilities above 0.", c.op.name, samples)
          .Remedy("Draw with replacement, or fewer.");
  }
  return {};
}

}  // namespace

NPU_OP(Multinomial) = Op<Multinomial>()
    .Rules(DtypeIn(Multinomial::self, kFloats), AnyShape(Multinomial::out), DtypeIn(Multinomial::out, TypeSet{DType::i64}))
    .Uses(Multinomial::numsamples, Multinomial::replacement, Multinomial::seed, Multinomial::offset)
    .Like(kJudge)
    .Prepares([](Planning& plan) {
      return WantDraws(plan, plan.args[Multinomial::self], plan.args[Multinomial::numsamples], plan.args[Multinomial::replacement], Multinomial::out);
    })
    .Does([](const Call& c) -> Status {
      const Args& a = c.args;
      return Draw(c, Key(a[Multinomial::seed], a[Multinomial::offset]), a[Multinomial::self], a[Multinomial::numsamples],
                  a[Multinomial::replacement], a[Multinomial::out]);
    });
NPU_OP(MultinomialTensor) = Op<MultinomialTensor>()
    .Rules(DtypeIn(MultinomialTensor::self, kFloats), AnyShape(MultinomialTensor::out), DtypeIn(MultinomialTensor::out, TypeSet{DType::i64}))
    .Uses(MultinomialTensor::numsamples, MultinomialTensor::replacement, MultinomialTensor::seedTensor, MultinomialTensor::offsetTensor,
          MultinomialTensor::offset)
    .Like(kJudge)
    .Prepares([](Planning& plan) -> Status {
      NPU_TRY(WantNumbers(plan, MultinomialTensor::seedTensor, MultinomialTensor::offsetTensor));
      return WantDraws(plan, plan.args[MultinomialTensor::self], plan.args[MultinomialTensor::numsamples],
                       plan.args[MultinomialTensor::replacement], MultinomialTensor::out);
    })
    .Does([](const Call& c) -> Status {
      const Args& a = c.args;
      return Draw(c, Key(a[MultinomialTensor::seedTensor], a[MultinomialTensor::offsetTensor], a[MultinomialTensor::offset]),
                  a[MultinomialTensor::self], a[MultinomialTensor::numsamples], a[MultinomialTensor::replacement], a[MultinomialTensor::out]);
    });
NPU_OP(SimThreadExponential) = Op<SimThreadExponential>()
    .Rules(DtypeIn(SimThreadExponential::selfRef, kFloats))
    .Uses(SimThreadExponential::count, SimThreadExponential::lambda, SimThreadExponential::seed, SimThreadExponential::offset)
    .Like(kJudge)
    .Prepares([](Planning& plan) -> Status {
      if (plan.args[SimThreadExponential::lambda] > 0) return {};
      return plan.Refuse("lambda is {}.", plan.args[SimThreadExponential::lambda]).Remedy("It must be above 0.");
    })
    .Does([](const Call& c) -> Status {
      const Args& a = c.args;
      simd::FillExponential(Key(a[SimThreadExponential::seed], a[SimThreadExponential::offset]), a[SimThreadExponential::lambda],
                            a[SimThreadExponential::selfRef], c.parallel);
      return {};
    });

}  // namespace npu::ops
