// Dropout by bit masks: one bit an element, lowest first, 1 keeps; the mask is padded to whole groups of 128 bits.
#include "gen/abi/ops.h"
#include "kernels/simd/copy/copy.h"
#include "kernels/simd/random/random.h"
#include "kernels/simd/rows/convert.h"
#include "ops/common/dims.h"

namespace npu::ops {

using namespace rule;  // NOLINT(google-build-using-namespace)

namespace {

int64_t MaskBytes(int64_t elements) { return (elements + 127) / 128 * 16; }

Status WantProbability(const Planning& plan, Token name, double p) {
  if (p >= 0 && p <= 1) return {};
  return plan.Refuse("{} is {}.", plan.ParamName(name), p).Remedy("It must be between 0 and 1.");
}
Status WantMask(const Planning& plan, TensorToken mask, int64_t elements) {
  const Tensor* t = plan.args.Maybe(mask);
  if (t != nullptr && t->Contiguous() && t->Numel() * ItemSize(t->dtype) >= (elements + 7) / 8) return {};
  return plan.Refuse("{} must be contiguous and have a bit for each of {} elements.", plan.ParamName(mask), elements)
      .Remedy("Give it {} bytes.", MaskBytes(elements));
}
int64_t Elements(std::span<const int64_t> shape) {
  int64_t n = 1;
  for (const int64_t s : shape) n *= s;
  return n;
}
void Generate(const Call& c, simd::Philox key, double p, const Tensor& mask) {
  simd::DropoutMask(key, p, mask.Numel() * ItemSize(mask.dtype), mask.As<uint8_t>(), c.parallel);
}

}  // namespace

using abi::DropoutGenMaskV2, abi::DropoutGenMaskV2Tensor, abi::DropoutDoMask, abi::DropoutV3, abi::DropoutV3Grad;
NPU_OP(DropoutGenMaskV2) = Op<DropoutGenMaskV2>()
    .Required(DropoutGenMaskV2::out)
    .Rules(AnyShape(DropoutGenMaskV2::out), DtypeIn(DropoutGenMaskV2::out, TypeSet{DType::u8}))
    .Uses(DropoutGenMaskV2::shape, DropoutGenMaskV2::prob, DropoutGenMaskV2::seed, DropoutGenMaskV2::offset, DropoutGenMaskV2::probDataType)
    .Like("statistics")
    .Prepares([](Planning& plan) -> Status {
      NPU_TRY(WantProbability(plan, DropoutGenMaskV2::prob, plan.args[DropoutGenMaskV2::prob]));
      return WantMask(plan, DropoutGenMaskV2::out, Elements(plan.args[DropoutGenMaskV2::shape]));
    })
    .Does([](const Call& c) -> Status {
      const simd::Philox key{static_cast<uint64_t>(c.args[DropoutGenMaskV2::seed]), static_cast<uint64_t>(c.args[DropoutGenMaskV2::offset])};
      Generate(c, key, c.args[DropoutGenMaskV2::prob], *c.args[DropoutGenMaskV2::out]);
      return {};
    });
NPU_OP(DropoutGenMaskV2Tensor) = Op<DropoutGenMaskV2Tensor>()
    .Required(DropoutGenMaskV2Tensor::out)
    .Rules(AnyShape(DropoutGenMaskV2Tensor::out), DtypeIn(DropoutGenMaskV2Tensor::out, TypeSet{DType::u8}),
           DtypeIn(DropoutGenMaskV2Tensor::seedTensor, kInts), DtypeIn(DropoutGenMaskV2Tensor::offsetTensor, kInts))
    .Uses(DropoutGenMaskV2Tensor::shape, DropoutGenMaskV2Tensor::prob, DropoutGenMaskV2Tensor::offset, DropoutGenMaskV2Tensor::probDataType)
    .Like("statistics")
    .Prepares([](Planning& plan) -> Status {
      NPU_TRY(WantProbability(plan, DropoutGenMaskV2Tensor::prob, plan.args[DropoutGenMaskV2Tensor::prob]));
      if (plan.args[DropoutGenMaskV2Tensor::seedTensor].Numel() < 1 || plan.args[DropoutGenMaskV2Tensor::offsetTensor].Numel() < 1) {
        return plan.Refuse("seedTensor or offsetTensor is empty.").Remedy("Both hold one number.");
      }
      return WantMask(plan, DropoutGenMaskV2Tensor::out, Elements(plan.args[DropoutGenMaskV2Tensor::shape]));
    })
    .Does([](const Call& c) -> Status {
      const Tensor &seed = c.args[DropoutGenMaskV2Tensor::seedTensor], &offset = c.args[DropoutGenMaskV2Tensor::offsetTensor];
      const simd::Philox key{static_cast<uint64_t>(simd::LoadInt(seed.data, seed.dtype)),
                             static_cast<uint64_t>(simd::LoadInt(offset.data, offset.dtype) + c.args[DropoutGenMaskV2Tensor::offset])};
      Generate(c, key, c.args[DropoutGenMaskV2Tensor::prob], *c.args[DropoutGenMaskV2Tensor::out]);
      return {};
    });
NPU_OP(DropoutDoMask) = Op<DropoutDoMask>()
    .Required(DropoutDoMask::mask, DropoutDoMask::out)
    .Rules(DtypeIn(DropoutDoMask::self, kFloats), SameShape(DropoutDoMask::self, DropoutDoMask::out), SameDtype(DropoutDoMask::self, DropoutDoMask::out),
           DtypeIn(DropoutDoMask::mask, TypeSet{DType::u8}))
    .Uses(DropoutDoMask::prob)
    .Like("statistics")
    .Prepares([](Planning& plan) -> Status {
      NPU_TRY(WantProbability(plan, DropoutDoMask::prob, plan.args[DropoutDoMask::prob]));
      return WantMask(plan, DropoutDoMask::mask, plan.args[DropoutDoMask::self].Numel());
    })
    .Does([](const Call& c) -> Status {
      simd::ApplyDropoutMask(c.args[DropoutDoMask::self], c.args[DropoutDoMask::mask]->As<uint8_t>(), c.args[DropoutDoMask::prob],
                             *c.args[DropoutDoMask::out], c.parallel);
      return {};
    });
NPU_OP(DropoutV3) = Op<DropoutV3>()
    .Required(DropoutV3::maskOut)
    .Rules(DtypeIn(DropoutV3::input, kFloats), SameShape(DropoutV3::input, DropoutV3::out), SameDtype(DropoutV3::input, DropoutV3::out),
           AnyShape(DropoutV3::maskOut), DtypeIn(DropoutV3::maskOut, TypeSet{DType::u8}))
    .Uses(DropoutV3::optionalNoiseShape, DropoutV3::p, DropoutV3::seed, DropoutV3::offset)
    .Like("statistics")
    .Prepares([](Planning& plan) -> Status {
      if (plan.args[DropoutV3::optionalNoiseShape] != nullptr) return NotYet(plan.op.name, "a noise shape is not taken yet");
      NPU_TRY(WantProbability(plan, DropoutV3::p, plan.args[DropoutV3::p]));
      return WantMask(plan, DropoutV3::maskOut, plan.args[DropoutV3::input].Numel());
    })
    .Does([](const Call& c) -> Status {
      const simd::Philox key{static_cast<uint64_t>(c.args[DropoutV3::seed]), static_cast<uint64_t>(c.args[DropoutV3::offset])};
      const Tensor& mask = *c.args[DropoutV3::maskOut];
      Generate(c, key, c.args[DropoutV3::p], mask);
      simd::ApplyDropoutMask(c.args[DropoutV3::input], mask.As<uint8_t>(), c.args[DropoutV3::p], c.args[DropoutV3::out], c.parallel);
      return {};
    });
// scale is what the kept elements are multiplied by, 1 / (1 - p).
NPU_OP(DropoutV3Grad) = Op<DropoutV3Grad>()
    .Rules(DtypeIn(DropoutV3Grad::gradY, kFloats), SameShape(DropoutV3Grad::gradY, DropoutV3Grad::gradX), SameDtype(DropoutV3Grad::gradY, DropoutV3Grad::gradX),
           DtypeIn(DropoutV3Grad::mask, TypeSet{DType::u8}))
    .Uses(DropoutV3Grad::scale)
    .Like("statistics")
    .Prepares([](Planning& plan) -> Status {
      const double scale = plan.args[DropoutV3Grad::scale];
      if (!(scale >= 0)) return plan.Refuse("scale is {}.", scale).Remedy("It is 1 / (1 - p), or 0 where nothing was kept.");
      return WantMask(plan, DropoutV3Grad::mask, plan.args[DropoutV3Grad::gradY].Numel());
    })
    .Does([](const Call& c) -> Status {
      const double scale = c.args[DropoutV3Grad::scale];
      simd::ApplyDropoutMask(c.args[DropoutV3Grad::gradY], c.args[DropoutV3Grad::mask].As<uint8_t>(), scale > 0 ? 1 - 1 / scale : 1, c.args[DropoutV3Grad::gradX],
                             c.parallel);
      return {};
    });

}  // namespace npu::ops
