#include "tensor/dtype.h"

namespace npu {

int ItemSize(DType t) {
  switch (t) {
    case DType::i8: case DType::u8: case DType::b8: return 1;
    case DType::f16: case DType::bf16: case DType::i16: case DType::u16: return 2;
    case DType::f32: case DType::i32: case DType::u32: case DType::c32: return 4;
    case DType::f64: case DType::i64: case DType::u64: case DType::c64: return 8;
    case DType::c128: return 16;
    case DType::none: return 0;
  }
  return 0;
}

std::string_view Name(DType t) {
  switch (t) {
    case DType::f32: return "float32";
    case DType::f16: return "float16";
    case DType::bf16: return "bfloat16";
    case DType::f64: return "float64";
    case DType::i8: return "int8";
    case DType::i16: return "int16";
    case DType::i32: return "int32";
    case DType::i64: return "int64";
    case DType::u8: return "uint8";
    case DType::u16: return "uint16";
    case DType::u32: return "uint32";
    case DType::u64: return "uint64";
    case DType::b8: return "bool";
    case DType::c32: return "complex32";
    case DType::c64: return "complex64";
    case DType::c128: return "complex128";
    case DType::none: break;
  }
  return "unknown type";
}

bool IsFloat(DType t) { return t == DType::f32 || t == DType::f64 || IsHalf(t); }
bool IsHalf(DType t) { return t == DType::f16 || t == DType::bf16; }
bool IsComplex(DType t) { return t == DType::c32 || t == DType::c64 || t == DType::c128; }
bool IsInt(DType t) { return !IsFloat(t) && !IsComplex(t) && t != DType::b8 && t != DType::none; }

}  // namespace npu
