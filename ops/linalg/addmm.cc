// Products added to a tensor: beta * self + alpha * (a @ b). With beta 0 self is not read, so its NaNs do not matter.
#include "gen/abi/ops.h"
#include "ops/linalg/product.h"
#include "tensor/shape.h"

namespace npu::ops {
namespace {

std::complex<double> Number(const Scalar& s) { return {s.re, s.im}; }
ProductTerms Terms(const Scalar& alpha, const Scalar& beta, const Tensor* self) {
  return {Number(alpha), Number(beta), self};
}

}  // namespace

using abi::Addmm, abi::InplaceAddmm, abi::Addmv, abi::Baddbmm, abi::Addbmm;

NPU_OP(Addmm) = Op<Addmm>()
                    .Rules(rule::Product(Addmm::mat1, Addmm::mat2, Addmm::out, 22),
                           rule::Addend(Addmm::self, Addmm::out))
                    .Uses(Addmm::beta, Addmm::alpha, Addmm::cubeMathType)
                    .Like("torch.addmm(self, mat1, mat2, beta=beta, alpha=alpha)")
                    .Tolerance("accumulated")
                    .Prepares([](Planning& p) -> Status {
                      ProductCost(p, p.args[Addmm::mat1], p.args[Addmm::mat2], p.args[Addmm::out]);
                      return {};
                    })
                    .Does([](const Call& c) {
                      return RunProduct(c, c.args[Addmm::mat1], c.args[Addmm::mat2], c.args[Addmm::out],
                                        Terms(c.args[Addmm::alpha], c.args[Addmm::beta], c.args.Maybe(Addmm::self)));
                    });

NPU_OP(InplaceAddmm) = Op<InplaceAddmm>()
                           .Rules(rule::Product(InplaceAddmm::mat1, InplaceAddmm::mat2, InplaceAddmm::selfRef, 22))
                           .Uses(InplaceAddmm::beta, InplaceAddmm::alpha, InplaceAddmm::cubeMathType)
                           .Like("selfRef.addmm_(mat1, mat2, beta=beta, alpha=alpha)")
                           .Tolerance("accumulated")
                           .Prepares([](Planning& p) -> Status {
                             ProductCost(p, p.args[InplaceAddmm::mat1], p.args[InplaceAddmm::mat2],
                                         p.args[InplaceAddmm::selfRef]);
                             return {};
                           })
                           .Does([](const Call& c) {
                             const Tensor& self = c.args[InplaceAddmm::selfRef];
                             return RunProduct(c, c.args[InplaceAddmm::mat1], c.args[InplaceAddmm::mat2], self,
                                               Terms(c.args[InplaceAddmm::alpha], c.args[InplaceAddmm::beta], &self));
                           });

NPU_OP(Addmv) = Op<Addmv>()
                    .Rules(rule::Product(Addmv::mat, Addmv::vec, Addmv::out, 21), rule::Addend(Addmv::self, Addmv::out))
                    .Uses(Addmv::beta, Addmv::alpha, Addmv::cubeMathType)
                    .Like("torch.addmv(self, mat, vec, beta=beta, alpha=alpha)")
                    .Tolerance("accumulated")
                    .Does([](const Call& c) {
                      return RunProduct(c, c.args[Addmv::mat], c.args[Addmv::vec], c.args[Addmv::out],
                                        Terms(c.args[Addmv::alpha], c.args[Addmv::beta], &c.args[Addmv::self]));
                    });

NPU_OP(Baddbmm) = Op<Baddbmm>()
                      .Rules(rule::Product(Baddbmm::batch1, Baddbmm::batch2, Baddbmm::out, 33),
                             rule::Addend(Baddbmm::self, Baddbmm::out))
                      .Uses(Baddbmm::beta, Baddbmm::alpha, Baddbmm::cubeMathType)
                      .Like("torch.baddbmm(self, batch1, batch2, beta=beta, alpha=alpha)")
                      .Tolerance("accumulated")
                      .Prepares([](Planning& p) -> Status {
                        ProductCost(p, p.args[Baddbmm::batch1], p.args[Baddbmm::batch2], p.args[Baddbmm::out]);
                        return {};
                      })
                      .Does([](const Call& c) {
                        return RunProduct(c, c.args[Baddbmm::batch1], c.args[Baddbmm::batch2], c.args[Baddbmm::out],
                                          Terms(c.args[Baddbmm::alpha], c.args[Baddbmm::beta], &c.args[Baddbmm::self]));
                      });

// The sum over the batch is kept in f32 in scratch when the result is a half type, and rounded once.
NPU_OP(Addbmm) = Op<Addbmm>()
                     .Rules(rule::Product(Addbmm::batch1, Addbmm::batch2, Addbmm::out, 133),
                            rule::Addend(Addbmm::self, Addbmm::out))
                     .Uses(Addbmm::beta, Addbmm::alpha, Addbmm::cubeMathType)
                     .Like("torch.addbmm(self, batch1, batch2, beta=beta, alpha=alpha)")
                     .Tolerance("accumulated")
                     .Prepares([](Planning& p) -> Status {
                       const Tensor& out = p.args[Addbmm::out];
                       if (IsHalf(out.dtype)) p.NeedScratch(static_cast<uint64_t>(out.Numel()) * 4);
                       return {};
                     })
                     .Does([](const Call& c) -> Status {
                       const Tensor &b1 = c.args[Addbmm::batch1], &b2 = c.args[Addbmm::batch2],
                                    &out = c.args[Addbmm::out];
                       const Tensor sum = IsHalf(out.dtype) ? MakeContiguous(c.scratch, DType::f32, out.Shape()) : out;
                       auto matrix = [](const Tensor& t, int64_t i) {
                         Tensor m = t;
                         m.rank = 2;
                         m.data = static_cast<char*>(t.data) + i * t.strides[0] * ItemSize(t.dtype);
                         for (size_t d = 0; d < 2; ++d) m.shape[d] = t.shape[d + 1], m.strides[d] = t.strides[d + 1];
                         return m;
                       };
                       const int64_t batch = b1.shape[0];
                       const std::complex<double> alpha = Number(c.args[Addbmm::alpha]), beta = Number(c.args[Addbmm::beta]);
                       if (batch == 0) {  // a product of no terms leaves beta * self
                         Tensor none1 = out, none2 = out;
                         none1.shape[1] = none2.shape[0] = 0;
                         none1.dtype = none2.dtype = b1.dtype;
                         return RunProduct(c, none1, none2, out, {alpha, beta, &c.args[Addbmm::self]});
                       }
                       for (int64_t i = 0; i < batch; ++i) {
                         const ProductTerms terms =
                             i == 0 ? ProductTerms{alpha, beta, &c.args[Addbmm::self]} : ProductTerms{alpha, 1, &sum};
                         NPU_TRY(RunProduct(c, matrix(b1, i), matrix(b2, i), i + 1 == batch ? out : sum, terms));
                       }
                       return {};
                     });

}  // namespace npu::ops
