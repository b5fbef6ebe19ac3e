#include "kernels/simd/softmax/softmax.h"

#include "gen/abi/ops.h"
#include "ops/common/dims.h"

namespace npu::ops {

using namespace rule;  // NOLINT(google-build-using-namespace)

// `out` may have another float type than self: softmax(half, dtype=float) on the real card converts on the way.
using abi::Softmax, abi::LogSoftmax, abi::SoftmaxBackward, abi::LogSoftmaxBackward;
NPU_OP(Softmax) = Op<Softmax>()
    .Rules(DtypeIn(Softmax::self, kFloats), SameShape(Softmax::self, Softmax::out), DtypeIn(Softmax::out, kFloats),
           DimInRange(Softmax::dim, Softmax::self))
    .Tolerance("accumulated")
    .Like("torch.softmax(self, dim)")
    .Does([](const Call& c) -> Status {
      const Tensor& self = c.args[Softmax::self];
      simd::Softmax(self, WrapDim(c.args[Softmax::dim], self.rank), c.args[Softmax::out], c.parallel);
      return {};
    });
NPU_OP(LogSoftmax) = Op<LogSoftmax>()
    .Rules(DtypeIn(LogSoftmax::self, kFloats), SameShape(LogSoftmax::self, LogSoftmax::out), DtypeIn(LogSoftmax::out, kFloats),
           DimInRange(LogSoftmax::dim, LogSoftmax::self))
    .Tolerance("accumulated")
    .Like("torch.log_softmax(self, dim)")
    .Does([](const Call& c) -> Status {
      const Tensor& self = c.args[LogSoftmax::self];
      simd::LogSoftmax(self, WrapDim(c.args[LogSoftmax::dim], self.rank), c.args[LogSoftmax::out], c.parallel);
      return {};
    });
NPU_OP(SoftmaxBackward) = Op<SoftmaxBackward>()
    .Rules(DtypeIn(SoftmaxBackward::gradOutput, kFloats), DtypeIn(SoftmaxBackward::output, kFloats),
           SameShape(SoftmaxBackward::gradOutput, SoftmaxBackward::output), SameShape(SoftmaxBackward::gradOutput, SoftmaxBackward::out),
           DtypeIn(SoftmaxBackward::out, kFloats), DimInRange(SoftmaxBackward::dim, SoftmaxBackward::gradOutput))
    .Tolerance("accumulated")
    .Like("torch.ops.aten._softmax_backward_data(gradOutput, output, dim, gradOutput.dtype)")
    .Does([](const Call& c) -> Status {
      const Tensor& grad = c.args[SoftmaxBackward::gradOutput];
      simd::SoftmaxBackward(grad, c.args[SoftmaxBackward::output], WrapDim(c.args[SoftmaxBackward::dim], grad.rank),
                            c.args[SoftmaxBackward::out], c.parallel);
      return {};
    });
NPU_OP(LogSoftmaxBackward) = Op<LogSoftmaxBackward>()
    .Rules(DtypeIn(LogSoftmaxBackward::gradOutput, kFloats), DtypeIn(LogSoftmaxBackward::output, kFloats),
           SameShape(LogSoftmaxBackward::gradOutput, LogSoftmaxBackward::output),
           SameShape(LogSoftmaxBackward::gradOutput, LogSoftmaxBackward::out), DtypeIn(LogSoftmaxBackward::out, kFloats),
           DimInRange(LogSoftmaxBackward::dim, LogSoftmaxBackward::gradOutput))
    .Tolerance("accumulated")
    .Like("torch.ops.aten._log_softmax_backward_data(gradOutput, output, dim, gradOutput.dtype)")
    .Does([](const Call& c) -> Status {
      const Tensor& grad = c.args[LogSoftmaxBackward::gradOutput];
      simd::LogSoftmaxBackward(grad, c.args[LogSoftmaxBackward::output], WrapDim(c.args[LogSoftmaxBackward::dim], grad.rank),
                               c.args[LogSoftmaxBackward::out], c.parallel);
      return {};
    });

}  // namespace npu::ops
