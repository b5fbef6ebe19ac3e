// Between the layouts of the card and the plain one.
#include "ops/common/format.h"
#include "gen/abi/npu_format_cast.h"
#include "kernels/simd/copy/copy.h"
#include "ops/core/builder.h"
#include "ops/core/formats.h"
#include "ops/core/rule.h"

namespace npu::ops {

using abi::NpuFormatCast;

namespace {

// Both layouts, known before the call is queued; a plain side has none.
struct FormatPlan {
  format::Layout from, to;
};

}  // namespace

NPU_OP(NpuFormatCast) =
    Op<NpuFormatCast>()
        .Imm(kTakesFormats)
        .Rules(rule::SameShape(NpuFormatCast::srcTensor, NpuFormatCast::dstTensor),
               rule::SameDtype(NpuFormatCast::srcTensor, NpuFormatCast::dstTensor))
        .Like("srcTensor")
        .Tolerance("exact")
        .Prepares([](Planning& p) -> Status {
          FormatPlan plan;
          for (const TensorToken token :
               {TensorToken(NpuFormatCast::srcTensor), TensorToken(NpuFormatCast::dstTensor)}) {
            const auto number = static_cast<int32_t>(FormatOf(p.args, token));
            if (!format::IsPrivate(number)) continue;
            NPU_TRY(format::Read(p.op.name, number, p.args.Maybe(token)->Shape(), StorageOf(p.args, token).Shape(),
                                 token.index == NpuFormatCast::srcTensor.index ? &plan.from : &plan.to));
          }
          if (format::IsPrivate(static_cast<int32_t>(FormatOf(p.args, NpuFormatCast::srcTensor))) &&
              format::IsPrivate(static_cast<int32_t>(FormatOf(p.args, NpuFormatCast::dstTensor)))) {
            const Tensor& t = p.args[NpuFormatCast::srcTensor];
            p.NeedScratch(static_cast<uint64_t>(t.Numel() * ItemSize(t.dtype)));
          }
          p.NewState(plan);
          return {};
        })
        .Does([](const Call& c) -> Status {
          const auto& plan = c.State<FormatPlan>();
          const Tensor &from = c.args[NpuFormatCast::srcTensor], &to = c.args[NpuFormatCast::dstTensor];
          const bool unpack = format::IsPrivate(static_cast<int32_t>(FormatOf(c.args, NpuFormatCast::srcTensor)));
          const bool pack = format::IsPrivate(static_cast<int32_t>(FormatOf(c.args, NpuFormatCast::dstTensor)));
          if (!unpack && !pack) {
            simd::Copy(from, to, c.parallel);
            return {};
          }
          const Tensor plain = !pack ? to : !unpack ? from : MakeContiguous(c.scratch, from.dtype, from.Shape());
          if (unpack) format::Copy(plain, StorageOf(c.args, NpuFormatCast::srcTensor), plan.from, false, c.parallel);
          if (pack) format::Copy(plain, StorageOf(c.args, NpuFormatCast::dstTensor), plan.to, true, c.parallel);
          return {};
        });

}  // namespace npu::ops
