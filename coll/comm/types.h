// HCCL's element types and reductions, by number, and what we know of them.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "kernels/simd/reduce_into.h"
#include "tensor/dtype.h"

namespace npu::coll {

// Numbers of HcclDataType and HcclReduceOp; bytes is 0 for numbers that are no type.
struct TypeInfo {
  std::string_view name;
  uint32_t bytes = 0;
  DType dtype = DType::none;  // none: only moved, never computed with
};
TypeInfo InfoOf(uint32_t hccl_type);

std::optional<simd::ReduceOp> ReduceOpOf(uint32_t hccl_reduce);
std::string_view NameOfReduce(uint32_t hccl_reduce);

// What a 910B reduces: int8 int16 int32 int64 fp16 fp32 bf16; products not of int16 and bf16.
bool CardReduces(uint32_t hccl_type, uint32_t hccl_reduce);

}  // namespace npu::coll
