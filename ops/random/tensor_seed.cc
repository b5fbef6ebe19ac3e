// Random operators whose seed and offset lie in tensors, as graph capture wants them.
#include "gen/abi/ops.h"
#include "kernels/simd/random/random.h"
#include "kernels/simd/rows/convert.h"
#include "ops/common/dims.h"

namespace npu::ops {

using namespace rule;  // NOLINT(google-build-using-namespace)

namespace {

simd::Philox KeyOf(const Tensor& seed, const Tensor& offset, int64_t more) {
  return {static_cast<uint64_t>(simd::LoadInt(seed.data, seed.dtype)),
          static_cast<uint64_t>(simd::LoadInt(offset.data, offset.dtype) + more)};
}

Status WantSeeds(const Planning& p, const Tensor& seed, const Tensor& offset) {
  if (seed.Numel() >= 1 && offset.Numel() >= 1) return {};
  return p.Refuse("seedTensor has {} and offsetTensor {} elements.", seed.Numel(), offset.Numel())
      .Remedy("Both hold one number.");
}

}  // namespace

using abi::StatelessExponentialTensor, abi::DropoutV3Tensor;
NPU_OP(StatelessExponentialTensor) =
    Op<StatelessExponentialTensor>()
        .Rules(DtypeIn(StatelessExponentialTensor::self, kFloats),
               DtypeIn(StatelessExponentialTensor::seedTensor, kInts),
               DtypeIn(StatelessExponentialTensor::offsetTensor, kInts))
        .Uses(StatelessExponentialTensor::offset, StatelessExponentialTensor::lambd)
        .Like("statistics")
        .Prepares([](Planning& p) -> Status {
          using A = StatelessExponentialTensor;
          if (!(p.args[A::lambd] > 0)) return p.Refuse("lambd is {}.", p.args[A::lambd]).Remedy("It must be above 0.");
          return WantSeeds(p, p.args[A::seedTensor], p.args[A::offsetTensor]);
        })
        .Does([](const Call& c) -> Status {
          using A = StatelessExponentialTensor;
          simd::FillExponential(KeyOf(c.args[A::seedTensor], c.args[A::offsetTensor], c.args[A::offset]),
                                c.args[A::lambd], c.args[A::self], c.parallel);
          return {};
        });
NPU_OP(DropoutV3Tensor) =
    Op<DropoutV3Tensor>()
        .Rules(DtypeIn(DropoutV3Tensor::input, kFloats), SameShape(DropoutV3Tensor::input, DropoutV3Tensor::out),
               SameDtype(DropoutV3Tensor::input, DropoutV3Tensor::out), AnyShape(DropoutV3Tensor::maskOut),
               DtypeIn(DropoutV3Tensor::maskOut, TypeSet{DType::u8}), DtypeIn(DropoutV3Tensor::seedTensor, kInts),
               DtypeIn(DropoutV3Tensor::offsetTensor, kInts))
        .Uses(DropoutV3Tensor::optionalNoiseShape, DropoutV3Tensor::p, DropoutV3Tensor::offset)
        .Like("statistics")
        .Prepares([](Planning& p) -> Status {
          using A = DropoutV3Tensor;
          const double drop = p.args[A::p];
          const Tensor& mask = p.args[A::maskOut];
          if (p.args[A::optionalNoiseShape] != nullptr) return NotYet(p.op.name, "a noise shape is not taken yet");
          if (!(drop >= 0 && drop <= 1)) return p.Refuse("p is {}.", drop).Remedy("It must be between 0 and 1.");
          NPU_TRY(WantSeeds(p, p.args[A::seedTensor], p.args[A::offsetTensor]));
          if (mask.Contiguous() && mask.Numel() * 8 >= p.args[A::input].Numel()) return {};
          return p.Refuse("maskOut has {} bytes for {} elements.", mask.Numel(), p.args[A::input].Numel())
              .Remedy("Give it a bit for each, without gaps.");
        })
        .Does([](const Call& c) -> Status {
          using A = DropoutV3Tensor;
          const Tensor& mask = c.args[A::maskOut];
          simd::DropoutMask(KeyOf(c.args[A::seedTensor], c.args[A::offsetTensor], c.args[A::offset]), c.args[A::p],
                            mask.Numel(), mask.As<uint8_t>(), c.parallel);
          simd::ApplyDropoutMask(c.args[A::input], mask.As<uint8_t>(), c.args[A::p], c.args[A::out], c.parallel);
          return {};
        });

}  // namespace npu::ops
