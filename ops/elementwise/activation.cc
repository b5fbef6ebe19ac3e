// Activations.
#include "gen/abi/ops.h"
#include "ops/elementwise/family.h"

namespace npu::ops {

NPU_OP(Relu) = Unary<abi::Relu>(simd::kRelu, abi::Relu::self, abi::Relu::out).Like("torch.relu(self)");
NPU_OP(InplaceRelu) = Unary<abi::InplaceRelu>(simd::kRelu, abi::InplaceRelu::selfRef, abi::InplaceRelu::selfRef).Like("torch.relu(selfRef)");
NPU_OP(Gelu) = Unary<abi::Gelu>(simd::kGelu, abi::Gelu::self, abi::Gelu::out).Like("F.gelu(self)");
NPU_OP(Silu) = Unary<abi::Silu>(simd::kSilu, abi::Silu::self, abi::Silu::out).Like("F.silu(self)");
NPU_OP(Hardswish) = Unary<abi::Hardswish>(simd::kHardswish, abi::Hardswish::self, abi::Hardswish::out).Like("F.hardswish(self)");
NPU_OP(InplaceHardswish) = Unary<abi::InplaceHardswish>(simd::kHardswish, abi::InplaceHardswish::self, abi::InplaceHardswish::self).Like("F.hardswish(self)");
NPU_OP(Hardsigmoid) = Unary<abi::Hardsigmoid>(simd::kHardsigmoid, abi::Hardsigmoid::self, abi::Hardsigmoid::out).Like("F.hardsigmoid(self)");
NPU_OP(InplaceHardsigmoid) = Unary<abi::InplaceHardsigmoid>(simd::kHardsigmoid, abi::InplaceHardsigmoid::self, abi::InplaceHardsigmoid::self).Like("F.hardsigmoid(self)");
NPU_OP(Mish) = Unary<abi::Mish>(simd::kMish, abi::Mish::self, abi::Mish::out).Like("F.mish(self)");
NPU_OP(InplaceMish) = Unary<abi::InplaceMish>(simd::kMish, abi::InplaceMish::selfRef, abi::InplaceMish::selfRef).Like("F.mish(selfRef)");
NPU_OP(LogSigmoid) = Unary<abi::LogSigmoid>(simd::kLogSigmoid, abi::LogSigmoid::self, abi::LogSigmoid::out).Like("F.logsigmoid(self)");
NPU_OP(LeakyRelu) = Unary<abi::LeakyRelu>(simd::kLeakyRelu, abi::LeakyRelu::self, abi::LeakyRelu::out).Scaled(abi::LeakyRelu::negativeSlope).Samples(abi::LeakyRelu::negativeSlope, "[0.0625, 0.25]").Like("F.leaky_relu(self, negativeSlope)");
NPU_OP(InplaceLeakyRelu) = Unary<abi::InplaceLeakyRelu>(simd::kLeakyRelu, abi::InplaceLeakyRelu::selfRef, abi::InplaceLeakyRelu::selfRef).Scaled(abi::InplaceLeakyRelu::negativeSlope).Samples(abi::InplaceLeakyRelu::negativeSlope, "[0.0625, 0.25]").Like("F.leaky_relu(selfRef, negativeSlope)");
NPU_OP(Elu) = Unary<abi::Elu>(simd::kElu, abi::Elu::self, abi::Elu::out).Scaled(abi::Elu::alpha, abi::Elu::scale, abi::Elu::inputScale).Samples(abi::Elu::alpha, "[1.0, 0.5]").Samples(abi::Elu::scale, "[1.0, 1.25]").Samples(abi::Elu::inputScale, "[1.0, 0.75]").Like("torch.ops.aten.elu(self, alpha, scale, inputScale)");
NPU_OP(InplaceElu) = Unary<abi::InplaceElu>(simd::kElu, abi::InplaceElu::selfRef, abi::InplaceElu::selfRef).Scaled(abi::InplaceElu::alpha, abi::InplaceElu::scale, abi::InplaceElu::inputScale).Samples(abi::InplaceElu::alpha, "[1.0, 0.5]").Samples(abi::InplaceElu::scale, "[1.0, 1.25]").Samples(abi::InplaceElu::inputScale, "[1.0, 0.75]").Like("torch.ops.aten.elu(selfRef, alpha, scale, inputScale)");
NPU_OP(Hardtanh) = Unary<abi::Hardtanh>(simd::kHardtanh, abi::Hardtanh::self, abi::Hardtanh::out).Scaled(abi::Hardtanh::clipValueMin, abi::Hardtanh::clipValueMax).Samples(abi::Hardtanh::clipValueMin, "[-1, -2]").Samples(abi::Hardtanh::clipValueMax, "[1, 3]").Like("F.hardtanh(self, clipValueMin, clipValueMax)");
NPU_OP(InplaceHardtanh) = Unary<abi::InplaceHardtanh>(simd::kHardtanh, abi::InplaceHardtanh::selfRef, abi::InplaceHardtanh::selfRef).Scaled(abi::InplaceHardtanh::clipValueMin, abi::InplaceHardtanh::clipValueMax).Samples(abi::InplaceHardtanh::clipValueMin, "[-1, -2]").Samples(abi::InplaceHardtanh::clipValueMax, "[1, 3]").Like("F.hardtanh(selfRef, clipValueMin, clipValueMax)");
NPU_OP(Softplus) = Unary<abi::Softplus>(simd::kSoftplus, abi::Softplus::self, abi::Softplus::out).Scaled(abi::Softplus::beta, abi::Softplus::threshold).Samples(abi::Softplus::beta, "[1.0, 2.0]").Samples(abi::Softplus::threshold, "[20.0, 5.0]").Like("F.softplus(self, beta, threshold)");
NPU_OP(Threshold) = Unary<abi::Threshold>(simd::kThreshold, abi::Threshold::self, abi::Threshold::out).Scaled(abi::Threshold::threshold, abi::Threshold::value).Samples(abi::Threshold::threshold, "[0, 1]").Samples(abi::Threshold::value, "[2, -1]").Like("F.threshold(self, threshold, value)");
NPU_OP(InplaceThreshold) = Unary<abi::InplaceThreshold>(simd::kThreshold, abi::InplaceThreshold::selfRef, abi::InplaceThreshold::selfRef).Scaled(abi::InplaceThreshold::threshold, abi::InplaceThreshold::value).Samples(abi::InplaceThreshold::threshold, "[0, 1]").Samples(abi::InplaceThreshold::value, "[2, -1]").Like("F.threshold(selfRef, threshold, value)");
NPU_OP(Hardshrink) = Unary<abi::Hardshrink>(simd::kHardshrink, abi::Hardshrink::self, abi::Hardshrink::out).Scaled(abi::Hardshrink::lambd).Samples(abi::Hardshrink::lambd, "[0.5, 1.0]").Like("F.hardshrink(self, lambd)");
NPU_OP(Softshrink) = Unary<abi::Softshrink>(simd::kSoftshrink, abi::Softshrink::self, abi::Softshrink::out).Scaled(abi::Softshrink::lambd).Samples(abi::Softshrink::lambd, "[0.5, 1.0]").Like("F.softshrink(self, lambd)");
NPU_OP(Logit) = Unary<abi::Logit>(simd::kLogit, abi::Logit::input, abi::Logit::out).Scaled(abi::Logit::eps).Samples(abi::Logit::eps, "[-1.0, 0.125]").Like("torch.logit(input, None if eps < 0 else eps)");

}  // namespace npu::ops
