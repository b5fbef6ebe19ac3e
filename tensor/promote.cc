#include "tensor/promote.h"

#include <algorithm>

namespace npu {
namespace {
bool Unsigned(DType t) { return t == DType::u8 || t == DType::u16 || t == DType::u32 || t == DType::u64; }

DType SignedOf(int bytes) {
  switch (bytes) {
    case 1: return DType::i8;
    case 2: return DType::i16;
    case 4: return DType::i32;
    case 8: return DType::i64;
    default: return DType::none;
  }
}

DType PromoteInts(DType a, DType b) {
  if (Unsigned(a) == Unsigned(b)) return ItemSize(a) >= ItemSize(b) ? a : b;
  const int u = ItemSize(Unsigned(a) ? a : b), s = ItemSize(Unsigned(a) ? b : a);
  return SignedOf(s > u ? s : 2 * u);  // 16 bytes is none: nothing holds uint64 and a sign
}

DType ComplexOf(DType real) {
  if (real == DType::f64) return DType::c128;
  return real == DType::f16 ? DType::c32 : DType::c64;
}

DType RealOf(DType complex) {
  if (complex == DType::c128) return DType::f64;
  return complex == DType::c32 ? DType::f16 : DType::f32;
}

DType PromoteFloats(DType a, DType b) {
  if (IsHalf(a) && IsHalf(b)) return DType::f32;  // float16 with bfloat16
  return ItemSize(a) >= ItemSize(b) ? a : b;
}
}  // namespace

DType PromoteTypes(DType a, DType b) {
  if (a == b) return a;
  if (a == DType::none || b == DType::none) return DType::none;
  if (IsComplex(a) || IsComplex(b)) {
    if (!IsComplex(a)) std::swap(a, b);
    if (!IsComplex(b) && !IsFloat(b)) return a;
    const DType ra = RealOf(a), rb = IsComplex(b) ? RealOf(b) : b;
    return ComplexOf(ra == rb ? ra : PromoteFloats(ra, rb));
  }
  if (IsFloat(a) && IsFloat(b)) return PromoteFloats(a, b);
  if (IsFloat(a)) return a;
  if (IsFloat(b)) return b;
  if (a == DType::b8) return b;
  if (b == DType::b8) return a;
  return PromoteInts(a, b);
}

bool CanCast(DType from, DType to) {
  if (from == to) return true;
  if (IsComplex(from) && !IsComplex(to)) return false;
  if (IsFloat(from) && IsInt(to)) return false;
  return to != DType::b8;
}

void Promotion::AddScalar(const Scalar& s) {
  DType t = s.dtype;
  if (IsComplex(t)) t = DType::c64;
  else if (IsFloat(t)) t = DType::f32;
  else if (t != DType::b8) t = DType::i64;
  Join(number_, t);
}

namespace {
DType Combine(DType higher, DType lower) {
  if (lower == DType::none || IsComplex(higher)) return higher;
  if (higher == DType::none) return lower;
  if (IsFloat(higher)) return IsComplex(lower) ? ComplexOf(higher) : higher;
  if (higher == DType::b8 || IsFloat(lower) || IsComplex(lower)) return PromoteTypes(higher, lower);
  return higher;
}
}  // namespace

DType Promotion::Result() const { return Combine(dims_, Combine(zero_dim_, number_)); }

}  // namespace npu
