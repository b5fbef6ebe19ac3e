// aclnnEqual: whether two tensors are the same, as one bool.
#include <cstring>
#include <memory>

#include "gen/abi/equal.h"
#include "kernels/simd/compare.h"
#include "ops/core/builder.h"
#include "ops/core/rule.h"
#include "tensor/shape.h"

namespace npu::ops {

using abi::Equal;
NPU_OP(Equal) = Op<Equal>()
    .Rules(rule::DtypeIn(Equal::out, kBool), rule::AnyShape(Equal::out))
    .Uses(Equal::self, Equal::other)
    .Like("torch.tensor(self.shape == other.shape and bool((self == other).all()))")
    .Tolerance("exact")
    .Prepares([](Planning& p) -> Status {
      const int64_t n = p.args[Equal::out].Numel();
      if (n == 1) return {};
      return p.Refuse("out has {} elements.", n).Remedy("It holds one bool.");
    })
    .Does([](const Call& c) -> Status {
      const Tensor& a = c.args[Equal::self];
      const Tensor& b = c.args[Equal::other];
      auto* result = c.args[Equal::out].As<uint8_t>();
      *result = 0;
      if (!SameShape(a.Shape(), b.Shape())) return {};
      const auto n = static_cast<size_t>(a.Numel());
      const auto differs = std::make_unique<uint8_t[]>(n + 1);
      const Tensor map = MakeContiguous(differs.get(), DType::b8, a.Shape());
      Promotion type;
      type.AddTensor(a.dtype, 1);
      type.AddTensor(b.dtype, 1);
      simd::Pointwise p{&simd::kNe, type.Result()};
      p.in[0] = &a;
      p.in[1] = &b;
      p.out = &map;
      simd::RunPointwise(p, c.parallel);
      *result = n == 0 || std::memchr(differs.get(), 1, n) == nullptr;
      return {};
    });

}  // namespace npu::ops
