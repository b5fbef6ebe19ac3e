// Norms of the tensors of a list, each one number; gradient clipping calls it.
#include "gen/abi/ops.h"
#include "kernels/simd/reduce/reduce.h"
#include "ops/core/builder.h"
#include "ops/core/rule.h"

namespace npu::ops {

using abi::ForeachNorm;
NPU_OP(ForeachNorm) = Op<ForeachNorm>()
    .Rules(rule::Bind(rule::kShapeFree, 0, ForeachNorm::out), rule::Bind(rule::kDtypeFree, 0, ForeachNorm::out),
           rule::Bind(rule::kDtypeIn, kFloats.bits, ForeachNorm::x), rule::Bind(rule::kDtypeIn, kFloats.bits, ForeachNorm::out))
    .Uses(ForeachNorm::scalar)
    .Samples(ForeachNorm::scalar, "[2, 1, float('inf')]")
    .Like("[torch.linalg.vector_norm(a, scalar) for a in x]")
    .Tolerance("accumulated")
    .Prepares([](Planning& p) -> Status {
      const auto x = p.args[ForeachNorm::x], out = p.args[ForeachNorm::out];
      if (x.size() != out.size()) return p.Refuse("out has {} tensors, but x has {}.", out.size(), x.size()).Remedy("One for each.");
      for (size_t i = 0; i < x.size(); ++i) {
        if (x[i].dtype == DType::none || out[i].dtype == DType::none) return p.Refuse("x[{}] or out[{}] is null.", i, i).Remedy("Every tensor must exist.");
        if (out[i].Numel() != 1) return p.Refuse("out[{}] has {} elements.", i, out[i].Numel()).Remedy("A norm is one number.");
      }
      return {};
    })
    .Does([](const Call& c) -> Status {
      const auto x = c.args[ForeachNorm::x], out = c.args[ForeachNorm::out];
      for (size_t i = 0; i < x.size(); ++i) {
        Tensor one = out[i];
        one.rank = 0;
        simd::Norm(x[i], (1u << x[i].rank) - 1, c.args[ForeachNorm::scalar].re, one, c.parallel);
      }
      return {};
    });

}  // namespace npu::ops
