// Sums, means, products, norms and moments.
#include "gen/abi/ops.h"
#include "kernels/simd/reduce/reduce.h"
#include "ops/common/dims.h"

namespace npu::ops {

using namespace rule;  // NOLINT(google-build-using-namespace)

namespace {
constexpr std::string_view kRealTypes =
    "[torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.bool]";
constexpr std::string_view kAllTypes =
    "[torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.bool, "
    "torch.complex64, torch.complex128]";
}  // namespace

using abi::ReduceSum;
NPU_OP(ReduceSum) = Op<ReduceSum>()
    .Rules(DtypeIn(ReduceSum::self, kReals | kComplexes), Reduced(ReduceSum::self, ReduceSum::dims, ReduceSum::keepDims, ReduceSum::out),
           DtypeIs(ReduceSum::out, ReduceSum::dtype), DtypeIn(ReduceSum::out, kReals | kComplexes))
    .Samples(ReduceSum::dtype, kAllTypes)
    .Tolerance("accumulated")
    .Like("torch.sum(self, dims, keepDims, dtype=dtype)")
    .Does([](const Call& c) -> Status {
      const Tensor& self = c.args[ReduceSum::self];
      simd::Sum(self, MaskOf(c.args[ReduceSum::dims], self.rank), c.args[ReduceSum::out], c.parallel);
      return {};
    });

using abi::ReduceNansum;
NPU_OP(ReduceNansum) = Op<ReduceNansum>()
    .Rules(DtypeIn(ReduceNansum::self, kReals), Reduced(ReduceNansum::self, ReduceNansum::dim, ReduceNansum::keepDim, ReduceNansum::out),
           DtypeIs(ReduceNansum::out, ReduceNansum::dtype), DtypeIn(ReduceNansum::out, kReals))
    .Samples(ReduceNansum::dtype, kRealTypes)
    .Tolerance("accumulated")
    .Like("torch.nansum(self, dim, keepDim, dtype=dtype)")
    .Does([](const Call& c) -> Status {
      const Tensor& self = c.args[ReduceNansum::self];
      simd::NanSum(self, MaskOf(c.args[ReduceNansum::dim], self.rank), c.args[ReduceNansum::out], c.parallel);
      return {};
    });

using abi::Mean;
NPU_OP(Mean) = Op<Mean>()
    .Rules(DtypeIn(Mean::self, kReals | kComplexes), Reduced(Mean::self, Mean::dim, Mean::keepDim, Mean::out),
           DtypeIs(Mean::out, Mean::dtype), DtypeIn(Mean::out, kFloats | kComplexes))
    .Samples(Mean::dtype, "[torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.complex64]")
    .Tolerance("accumulated")
    .Like("torch.mean(self, dim, keepDim, dtype=dtype)")
    .Does([](const Call& c) -> Status {
      const Tensor& self = c.args[Mean::self];
      simd::Mean(self, MaskOf(c.args[Mean::dim], self.rank), c.args[Mean::out], c.parallel);
      return {};
    });

using abi::Prod;
NPU_OP(Prod) = Op<Prod>()
    .Rules(DtypeIn(Prod::self, kReals | kComplexes), ReducedAll(Prod::self, Prod::out), DtypeIs(Prod::out, Prod::dtype), DtypeIn(Prod::out, kReals | kComplexes))
    .Samples(Prod::dtype, kAllTypes)
    .Tolerance("accumulated")
    .Like("torch.prod(self, dtype=dtype)")
    .Does([](const Call& c) -> Status {
      const Tensor& self = c.args[Prod::self];
      Tensor out = c.args[Prod::out];
      out.rank = 0;
      simd::Prod(self, AllDims(self), out, c.parallel);
      return {};
    });

using abi::ProdDim;
NPU_OP(ProdDim) = Op<ProdDim>()
    .Rules(DtypeIn(ProdDim::self, kReals | kComplexes), ReducedDim(ProdDim::self, ProdDim::dim, ProdDim::keepDim, ProdDim::out),
           DtypeIs(ProdDim::out, ProdDim::dtype), DtypeIn(ProdDim::out, kReals | kComplexes))
    .Samples(ProdDim::dtype, kAllTypes)
    .Tolerance("accumulated")
    .Like("torch.prod(self, dim, keepDim, dtype=dtype)")
    .Does([](const Call& c) -> Status {
      const Tensor& self = c.args[ProdDim::self];
      const int64_t dim[] = {c.args[ProdDim::dim]};
      simd::Prod(self, MaskOf(dim, self.rank), c.args[ProdDim::out], c.parallel);
      return {};
    });

using abi::Norm;
NPU_OP(Norm) = Op<Norm>()
    .Rules(DtypeIn(Norm::self, kFloats | kComplexes), Reduced(Norm::self, Norm::dim, Norm::keepdim, Norm::out), DtypeIn(Norm::out, kFloats))
    .Uses(Norm::pScalar)
    .Samples(Norm::pScalar, "[2.0, 1.0, 0.0, 3.0, float('inf'), -float('inf'), 0.5]")
    .Tolerance("accumulated")
    .Like("torch.linalg.vector_norm(self, pScalar, dim or None, keepdim)")
    .Does([](const Call& c) -> Status {
      const Tensor& self = c.args[Norm::self];
      simd::Norm(self, MaskOf(c.args[Norm::dim], self.rank), c.args[Norm::pScalar].re, c.args[Norm::out], c.parallel);
      return {};
    });

using abi::LinalgVectorNorm;
NPU_OP(LinalgVectorNorm) = Op<LinalgVectorNorm>()
    .Rules(DtypeIn(LinalgVectorNorm::self, kFloats | kComplexes),
           Reduced(LinalgVectorNorm::self, LinalgVectorNorm::dims, LinalgVectorNorm::keepDims, LinalgVectorNorm::out),
           DtypeIn(LinalgVectorNorm::out, kFloats))
    .Uses(LinalgVectorNorm::ord, LinalgVectorNorm::dtype)
    .Samples(LinalgVectorNorm::ord, "[2.0, 1.0, 0.0, 3.0, float('inf'), -float('inf'), 0.5]")
    .Tolerance("accumulated")
    .Like("torch.linalg.vector_norm(self, ord, dims or None, keepDims)")
    .Does([](const Call& c) -> Status {
      const Tensor& self = c.args[LinalgVectorNorm::self];
      simd::Norm(self, MaskOf(c.args[LinalgVectorNorm::dims], self.rank), c.args[LinalgVectorNorm::ord].re,
                 c.args[LinalgVectorNorm::out], c.parallel);
      return {};
    });

using abi::LogSumExp;
NPU_OP(LogSumExp) = Op<LogSumExp>()
    .Rules(DtypeIn(LogSumExp::self, kReals), Reduced(LogSumExp::self, LogSumExp::dim, LogSumExp::keepDim, LogSumExp::out),
           DtypeIn(LogSumExp::out, kFloats))
    .Tolerance("accumulated")
    .Like("torch.logsumexp(self, dim or list(range(self.dim())), keepDim)")
    .Does([](const Call& c) -> Status {
      const Tensor& self = c.args[LogSumExp::self];
      simd::LogSumExp(self, MaskOf(c.args[LogSumExp::dim], self.rank), c.args[LogSumExp::out], c.parallel);
      return {};
    });

using abi::Std;
NPU_OP(Std) = Op<Std>()
    .Rules(DtypeIn(Std::self, kFloats), Reduced(Std::self, Std::dim, Std::keepdim, Std::out), SameDtype(Std::self, Std::out))
    .Uses(Std::correction)
    .Samples(Std::correction, "[1, 0, 2]")
    .Tolerance("accumulated")
    .Like("torch.std(self, dim or None, correction=correction, keepdim=keepdim)")
    .Does([](const Call& c) -> Status {
      const Tensor& self = c.args[Std::self];
      simd::Variance(self, MaskOf(c.args[Std::dim], self.rank), static_cast<double>(c.args[Std::correction]), true,
                     &c.args[Std::out], nullptr, c.parallel);
      return {};
    });

using abi::VarCorrection;
NPU_OP(VarCorrection) = Op<VarCorrection>()
    .Rules(DtypeIn(VarCorrection::self, kFloats),
           Reduced(VarCorrection::self, VarCorrection::dim, VarCorrection::keepdim, VarCorrection::out),
           SameDtype(VarCorrection::self, VarCorrection::out))
    .Uses(VarCorrection::correction)
    .Samples(VarCorrection::correction, "[1, 0, 2]")
    .Tolerance("accumulated")
    .Like("torch.var(self, dim or None, correction=correction, keepdim=keepdim)")
    .Does([](const Call& c) -> Status {
      const Tensor& self = c.args[VarCorrection::self];
      simd::Variance(self, MaskOf(c.args[VarCorrection::dim], self.rank), static_cast<double>(c.args[VarCorrection::correction]),
                     false, &c.args[VarCorrection::out], nullptr, c.parallel);
      return {};
    });

using abi::VarMean;
NPU_OP(VarMean) = Op<VarMean>()
    .Rules(DtypeIn(VarMean::self, kFloats), Reduced(VarMean::self, VarMean::dim, VarMean::keepdim, VarMean::varOut),
           Reduced(VarMean::self, VarMean::dim, VarMean::keepdim, VarMean::meanOut), SameDtype(VarMean::self, VarMean::varOut),
           SameDtype(VarMean::self, VarMean::meanOut))
    .Uses(VarMean::correction)
    .Samples(VarMean::correction, "[1, 0, 2]")
    .Tolerance("accumulated")
    .Like("torch.var_mean(self, dim or None, correction=correction, keepdim=keepdim)")
    .Does([](const Call& c) -> Status {
      const Tensor& self = c.args[VarMean::self];
      simd::Variance(self, MaskOf(c.args[VarMean::dim], self.rank), static_cast<double>(c.args[VarMean::correction]), false,
                     &c.args[VarMean::varOut], &c.args[VarMean::meanOut], c.parallel);
      return {};
    });

using abi::StdMeanCorrection;
NPU_OP(StdMeanCorrection) = Op<StdMeanCorrection>()
    .Rules(DtypeIn(StdMeanCorrection::self, kFloats),
           Reduced(StdMeanCorrection::self, StdMeanCorrection::dim, StdMeanCorrection::keepdim, StdMeanCorrection::stdOut),
           Reduced(StdMeanCorrection::self, StdMeanCorrection::dim, StdMeanCorrection::keepdim, StdMeanCorrection::meanOut),
           SameDtype(StdMeanCorrection::self, StdMeanCorrection::stdOut),
           SameDtype(StdMeanCorrection::self, StdMeanCorrection::meanOut))
    .Uses(StdMeanCorrection::correction)
    .Samples(StdMeanCorrection::correction, "[1, 0, 2]")
    .Tolerance("accumulated")
    .Like("torch.std_mean(self, dim or None, correction=correction, keepdim=keepdim)")
    .Does([](const Call& c) -> Status {
      const Tensor& self = c.args[StdMeanCorrection::self];
      simd::Variance(self, MaskOf(c.args[StdMeanCorrection::dim], self.rank),
                     static_cast<double>(c.args[StdMeanCorrection::correction]), true, &c.args[StdMeanCorrection::stdOut],
                     &c.args[StdMeanCorrection::meanOut], c.parallel);
      return {};
    });

}  // namespace npu::ops
