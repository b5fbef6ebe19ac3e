// Element types, numbered as aclDataType so that the boundary needs no table.
#pragma once

#include <cstdint>
#include <string_view>

namespace npu {

enum class DType : int8_t {
  f32 = 0, f16 = 1, i8 = 2, i32 = 3, u8 = 4, i16 = 6, u16 = 7, u32 = 8, i64 = 9, u64 = 10, f64 = 11, b8 = 12,
  c64 = 16, c128 = 17, bf16 = 27, c32 = 33,
  none = -1,
};

int ItemSize(DType t);                 // bytes; 0 for types we do not compute with
std::string_view Name(DType t);        // torch's spelling without "torch.": "float32", "bfloat16", "bool"
bool IsFloat(DType t);                 // f16 bf16 f32 f64
bool IsComplex(DType t);
bool IsInt(DType t);                   // signed and unsigned integers, not bool
bool IsHalf(DType t);                  // f16 bf16

}  // namespace npu
