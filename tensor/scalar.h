// One number as a client passed it: its own type, and its value in every form a kernel may ask for.
#pragma once

#include <cstdint>

#include "tensor/dtype.h"

namespace npu {

struct Scalar {
  DType dtype = DType::none;
  double re = 0, im = 0;  // the value as a float; exact for integers up to 2^53
  int64_t i = 0;          // the value as an integer; floats are truncated, out of range ones saturate, NaN is 0

  static Scalar Of(double v);
  static Scalar Of(int64_t v);
  static Scalar Of(bool v);
  // Reads one value of type `t`. False for types that are no numbers here.
  static bool Read(const void* value, DType t, Scalar* out);

  bool Floating() const { return IsFloat(dtype); }
  bool Complex() const { return IsComplex(dtype); }
  bool IsOne() const { return im == 0 && (Floating() ? re == 1.0 : i == 1); }
  bool IsZero() const { return im == 0 && (Floating() || Complex() ? re == 0.0 : i == 0); }
  bool Truth() const { return !IsZero(); }
};

float HalfToFloat(uint16_t bits);
uint16_t FloatToHalf(float v);      // nearest even
float Bf16ToFloat(uint16_t bits);
uint16_t FloatToBf16(float v);      // nearest even, NaN stays NaN

}  // namespace npu
