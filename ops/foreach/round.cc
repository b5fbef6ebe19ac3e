// Rounding of lists by a mode: 1 nearest (halves to even), 2 floor, 3 ceil, 4 nearest (halves away from zero), 5 trunc,
// 7 fractional part. Plain loops.
#include <cmath>

#include "gen/abi/ops.h"
#include "ops/common/dims.h"
#include "ops/common/values.h"

namespace npu::ops {
namespace {

template <class T>
T Rounded(T x, int64_t mode) {
  switch (mode) {
    case 1:
      return std::nearbyint(x);
    case 2:
      return std::floor(x);
    case 3:
      return std::ceil(x);
    case 4:
      return std::round(x);
    case 5:
      return std::trunc(x);
    default:
      return std::isinf(x) ? std::copysign(T{0}, x) : x - std::trunc(x);
  }
}

Status RoundLists(const Call& c, std::span<const Tensor> x, std::span<const Tensor> out, int64_t mode) {
  if (mode < 1 || mode == 6 || mode > 7)
    return Error(Code::kTaskException, "{}: roundMode is {}.", c.op.name, mode)
        .Remedy("Use 1 round, 2 floor, 3 ceil, 4 round away, 5 trunc or 7 frac.");
  for (size_t i = 0; i < x.size(); ++i) {
    NPU_TRY(WithFloat(x[i].dtype, [&]<class T>() -> Status {
      const Values<T> in(x[i], c.parallel);
      Results<T> to(out[i], c.parallel);
      c.parallel.For(in.size(), 16384, [&](int64_t begin, int64_t end) {
        for (int64_t k = begin; k < end; ++k) to[k] = Rounded(in[k], mode);
      });
      return {};
    }));
  }
  return {};
}

}  // namespace

using abi::ForeachRoundOffNumber, abi::ForeachRoundOffNumberV2;
NPU_OP(ForeachRoundOffNumber) =
    Op<ForeachRoundOffNumber>()
        .Rules(rule::Bind(rule::kDtypeIn, kFloats.bits, ForeachRoundOffNumber::x),
               rule::SameLists(ForeachRoundOffNumber::x, ForeachRoundOffNumber::out),
               rule::DtypeIn(ForeachRoundOffNumber::roundMode, kReals))
        .Tolerance("exact")
        .Like("[torch.floor(a) for a in x]")
        .Does([](const Call& c) -> Status {
          const Tensor& mode = c.args[ForeachRoundOffNumber::roundMode];
          if (mode.Numel() < 1)
            return Error(Code::kTaskException, "{}: roundMode is empty.", c.op.name).Remedy("It holds one number.");
          return RoundLists(c, c.args[ForeachRoundOffNumber::x], c.args[ForeachRoundOffNumber::out],
                            simd::LoadInt(mode.data, mode.dtype));
        });
NPU_OP(ForeachRoundOffNumberV2) = Op<ForeachRoundOffNumberV2>()
                                      .Rules(rule::Bind(rule::kDtypeIn, kFloats.bits, ForeachRoundOffNumberV2::x),
                                             rule::SameLists(ForeachRoundOffNumberV2::x, ForeachRoundOffNumberV2::out))
                                      .Uses(ForeachRoundOffNumberV2::roundMode)
                                      .Samples(ForeachRoundOffNumberV2::roundMode, "[1, 2, 3, 5, 7]")
                                      .Tolerance("exact")
                                      .Like(
                                          "[[None, torch.round, torch.floor, torch.ceil, None, torch.trunc, None, "
                                          "torch.frac][roundMode](a) for a in x]")
                                      .Does([](const Call& c) {
                                        return RoundLists(c, c.args[ForeachRoundOffNumberV2::x],
                                                          c.args[ForeachRoundOffNumberV2::out],
                                                          c.args[ForeachRoundOffNumberV2::roundMode].i);
                                      });

}  // namespace npu::ops
