// Gradients of activations: from the gradient of the result and the input (or result).
#include "gen/abi/ops.h"
#include "ops/elementwise/family.h"

namespace npu::ops {

NPU_OP(GeluBackward) = Binary<abi::GeluBackward>(simd::kGeluGrad, abi::GeluBackward::gradOutput, abi::GeluBackward::self, abi::GeluBackward::gradInput).Like("torch.ops.aten.gelu_backward(gradOutput, self)");
NPU_OP(SiluBackward) = Binary<abi::SiluBackward>(simd::kSiluGrad, abi::SiluBackward::gradOutput, abi::SiluBackward::self, abi::SiluBackward::gradInput).Like("torch.ops.aten.silu_backward(gradOutput, self)");
NPU_OP(SigmoidBackward) = Binary<abi::SigmoidBackward>(simd::kSigmoidGrad, abi::SigmoidBackward::gradOutput, abi::SigmoidBackward::output, abi::SigmoidBackward::gradInput).Like("torch.ops.aten.sigmoid_backward(gradOutput, output)");
NPU_OP(TanhBackward) = Binary<abi::TanhBackward>(simd::kTanhGrad, abi::TanhBackward::gradOutput, abi::TanhBackward::output, abi::TanhBackward::gradInput).Like("torch.ops.aten.tanh_backward(gradOutput, output)");
NPU_OP(ThresholdBackward) = Binary<abi::ThresholdBackward>(simd::kThresholdGrad, abi::ThresholdBackward::gradOutput, abi::ThresholdBackward::self, abi::ThresholdBackward::out).Scaled(abi::ThresholdBackward::threshold).Samples(abi::ThresholdBackward::threshold, "[0, 1]").Like("torch.ops.aten.threshold_backward(gradOutput, self, threshold)");
NPU_OP(HardswishBackward) = Binary<abi::HardswishBackward>(simd::kHardswishGrad, abi::HardswishBackward::gradOutput, abi::HardswishBackward::self, abi::HardswishBackward::out).Like("torch.ops.aten.hardswish_backward(gradOutput, self)");
NPU_OP(HardswishBackwardV2) = Binary<abi::HardswishBackwardV2>(simd::kHardswishGrad, abi::HardswishBackwardV2::gradOutput, abi::HardswishBackwardV2::self, abi::HardswishBackwardV2::out).Like("torch.ops.aten.hardswish_backward(gradOutput, self)");
NPU_OP(HardsigmoidBackward) = Binary<abi::HardsigmoidBackward>(simd::kHardsigmoidGrad, abi::HardsigmoidBackward::gradOutput, abi::HardsigmoidBackward::self, abi::HardsigmoidBackward::out).Like("torch.ops.aten.hardsigmoid_backward(gradOutput, self)");
NPU_OP(HardtanhBackward) = Binary<abi::HardtanhBackward>(simd::kHardtanhGrad, abi::HardtanhBackward::gradOutput, abi::HardtanhBackward::self, abi::HardtanhBackward::out).Scaled(abi::HardtanhBackward::min, abi::HardtanhBackward::max).Samples(abi::HardtanhBackward::min, "[-1.0, -2.0]").Samples(abi::HardtanhBackward::max, "[1.0, 3.0]").Like("torch.ops.aten.hardtanh_backward(gradOutput, self, min, max)");
NPU_OP(SoftplusBackward) = Binary<abi::SoftplusBackward>(simd::kSoftplusGrad, abi::SoftplusBackward::gradOutput, abi::SoftplusBackward::self, abi::SoftplusBackward::gradInput).Scaled(abi::SoftplusBackward::beta, abi::SoftplusBackward::threshold).Samples(abi::SoftplusBackward::beta, "[1.0, 2.0]").Samples(abi::SoftplusBackward::threshold, "[20.0, 5.0]").Like("torch.ops.aten.softplus_backward(gradOutput, self, beta, threshold)");
NPU_OP(MishBackward) = Binary<abi::MishBackward>(simd::kMishGrad, abi::MishBackward::gradOutput, abi::MishBackward::self, abi::MishBackward::gradInput).Like("torch.ops.aten.mish_backward(gradOutput, self)");
NPU_OP(HardshrinkBackward) = Binary<abi::HardshrinkBackward>(simd::kHardshrinkGrad, abi::HardshrinkBackward::gradOutput, abi::HardshrinkBackward::self, abi::HardshrinkBackward::gradInput).Scaled(abi::HardshrinkBackward::lambd).Samples(abi::HardshrinkBackward::lambd, "[0.5, 1.0]").Like("torch.ops.aten.hardshrink_backward(gradOutput, self, lambd)");
NPU_OP(SoftshrinkBackward) = Binary<abi::SoftshrinkBackward>(simd::kHardshrinkGrad, abi::SoftshrinkBackward::gradOutput, abi::SoftshrinkBackward::self, abi::SoftshrinkBackward::gradInput).Scaled(abi::SoftshrinkBackward::lambda).Samples(abi::SoftshrinkBackward::lambda, "[0.5, 1.0]").Like("torch.ops.aten.softshrink_backward(gradOutput, self, lambda_)");
NPU_OP(LogitGrad) = Binary<abi::LogitGrad>(simd::kLogitGrad, abi::LogitGrad::dy, abi::LogitGrad::x, abi::LogitGrad::out).Scaled(abi::LogitGrad::eps).Samples(abi::LogitGrad::eps, "[-1.0, 0.125]").Like("torch.ops.aten.logit_backward(dy, x, None if eps < 0 else eps)");

}  // namespace npu::ops
