// Matrix products as operators see them: shapes as torch.matmul reads them, mixed float types, an optional addend.
//
//   NPU_OP(Mm) = Op<Mm>().Rules(rule::Product(Mm::self, Mm::mat2, Mm::out, 2)) …
//       .Does([](const Call& c) { return RunProduct(c, c.args[Mm::self], c.args[Mm::mat2], c.args[Mm::out]); });
#pragma once

#include <complex>

#include "ops/core/builder.h"
#include "ops/core/rule.h"

namespace npu::ops {

namespace rule {
namespace check {
Status Product(const Planning&, const Rule&);
Status Addend(const Planning&, const Rule&);
}  // namespace check

inline constexpr RuleKind kProduct{"matrix_product", check::Product, 0b100, 0b100};
inline constexpr RuleKind kAddend{"addend", check::Addend, 0, 0};

// a @ b has the shape of out and its type can be stored there. `ranks`: rank a, rank b as two decimal digits (22 for
// mm, 21 for mv), 0 for whatever torch.matmul takes, 133 for addbmm, which sums over the batch.
consteval Rule Product(TensorToken a, TensorToken b, TensorToken out, int ranks) {
  return Bind(kProduct, ranks, a, b, out);
}
// self can be expanded to out, and is of a float type like it or of out's own type.
consteval Rule Addend(TensorToken self, TensorToken out) { return Bind(kAddend, 0, self, out); }
}  // namespace rule

// out = alpha * (a @ b) + beta * self; self may be null.
struct ProductTerms {
  std::complex<double> alpha = 1, beta = 0;
  const Tensor* self = nullptr;
};
Status RunProduct(const Call& c, const Tensor& a, const Tensor& b, const Tensor& out, const ProductTerms& terms = {});

// Sets the cost of a call from its sizes.
void ProductCost(Planning& plan, const Tensor& a, const Tensor& b, const Tensor& out);

}  // namespace npu::ops
