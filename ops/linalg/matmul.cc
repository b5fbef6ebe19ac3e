// Products without an addend. cubeMathType allows the card a lower precision; here f32 stays f32 whatever it says.
#include "gen/abi/ops.h"
#include "ops/linalg/product.h"

namespace npu::ops {

using abi::Matmul, abi::Mm, abi::BatchMatMul, abi::Mv, abi::Dot;

NPU_OP(Matmul) = Op<Matmul>()
                     .Rules(rule::Product(Matmul::self, Matmul::mat2, Matmul::out, 0))
                     .Uses(Matmul::cubeMathType)
                     .Like("torch.matmul(self, mat2)")
                     .Tolerance("accumulated")
                     .Prepares([](Planning& p) -> Status {
                       ProductCost(p, p.args[Matmul::self], p.args[Matmul::mat2], p.args[Matmul::out]);
                       return {};
                     })
                     .Does([](const Call& c) {
                       return RunProduct(c, c.args[Matmul::self], c.args[Matmul::mat2], c.args[Matmul::out]);
                     });

NPU_OP(Mm) = Op<Mm>()
                 .Rules(rule::Product(Mm::self, Mm::mat2, Mm::out, 22))
                 .Uses(Mm::cubeMathType)
                 .Like("torch.mm(self, mat2)")
                 .Tolerance("accumulated")
                 .Prepares([](Planning& p) -> Status {
                   ProductCost(p, p.args[Mm::self], p.args[Mm::mat2], p.args[Mm::out]);
                   return {};
                 })
                 .Does([](const Call& c) {
                   return RunProduct(c, c.args[Mm::self], c.args[Mm::mat2], c.args[Mm::out]);
                 });

NPU_OP(BatchMatMul) = Op<BatchMatMul>()
                          .Rules(rule::Product(BatchMatMul::self, BatchMatMul::mat2, BatchMatMul::out, 33))
                          .Uses(BatchMatMul::cubeMathType)
                          .Like("torch.bmm(self, mat2)")
                          .Tolerance("accumulated")
                          .Prepares([](Planning& p) -> Status {
                            ProductCost(p, p.args[BatchMatMul::self], p.args[BatchMatMul::mat2],
                                        p.args[BatchMatMul::out]);
                            return {};
                          })
                          .Does([](const Call& c) {
                            return RunProduct(c, c.args[BatchMatMul::self], c.args[BatchMatMul::mat2],
                                              c.args[BatchMatMul::out]);
                          });

NPU_OP(Mv) = Op<Mv>()
                 .Rules(rule::Product(Mv::self, Mv::vec, Mv::out, 21))
                 .Required(Mv::out)
                 .Uses(Mv::cubeMathType)
                 .Like("torch.mv(self, vec)")
                 .Tolerance("accumulated")
                 .Does([](const Call& c) {
                   return RunProduct(c, c.args[Mv::self], c.args[Mv::vec], *c.args[Mv::out]);
                 });

NPU_OP(Dot) = Op<Dot>()
                  .Rules(rule::Product(Dot::self, Dot::tensor, Dot::out, 11))
                  .Like("torch.dot(self, tensor)")
                  .Tolerance("accumulated")
                  .Does([](const Call& c) {
                    return RunProduct(c, c.args[Dot::self], c.args[Dot::tensor], c.args[Dot::out]);
                  });

}  // namespace npu::ops
