// Products in types that are not worth a register tile: f64, complex and the integers.
#pragma once

#include "kernels/gemm/gemm.h"

namespace npu::gemm {

Status Plain(Parallel& parallel, const Problem& p, const Operand& a, const Operand& b, const Operand& c,
             const Operand& self);

}  // namespace npu::gemm
