// Rows of any element type in and out of a compute type: f32 for f16, bf16 and f32; f64; i64 for integers and bool.
//
//   float buffer[kChunk];
//   const float* x = Read(p, DType::bf16, /*stride=*/1, n, buffer);   // p itself when it already is a dense f32 row
//   Write(y, n, out, DType::bf16, 1);
//
// Values are rounded once on the way out. Out of range float to integer saturates where C++ would be undefined; bool is
// true for everything but zero, NaN included. Types without a real value (complex, none) are not accepted.
#pragma once

#include <cstdint>
#include <type_traits>

#include "tensor/dtype.h"

namespace npu::simd {

// Elements that a kernel converts at a time: 8 KiB of f32, so that several rows stay in L1.
inline constexpr int64_t kChunk = 2048;

// `src` points at element 0, strides are in elements.
void Load(const void* src, DType type, int64_t stride, int64_t n, float* dst);
void Load(const void* src, DType type, int64_t stride, int64_t n, double* dst);
void Load(const void* src, DType type, int64_t stride, int64_t n, int64_t* dst);
void Write(const float* src, int64_t n, void* dst, DType type, int64_t stride);
void Write(const double* src, int64_t n, void* dst, DType type, int64_t stride);
void Write(const int64_t* src, int64_t n, void* dst, DType type, int64_t stride);

template <class C>
constexpr DType DTypeOf() {
  if constexpr (std::is_same_v<C, float>) return DType::f32;
  if constexpr (std::is_same_v<C, double>) return DType::f64;
  return DType::i64;
}

template <class C>
const C* Read(const void* src, DType type, int64_t stride, int64_t n, C* buffer) {
  if (type == DTypeOf<C>() && stride == 1) return static_cast<const C*>(src);
  Load(src, type, stride, n, buffer);
  return buffer;
}

// Where to compute a row of results: in place when it is a dense row of the compute type, else in `buffer`; Write then.
template <class C>
C* Target(void* dst, DType type, int64_t stride, C* buffer) {
  return type == DTypeOf<C>() && stride == 1 ? static_cast<C*>(dst) : buffer;
}
template <class C>
void Finish(const C* row, int64_t n, void* dst, DType type, int64_t stride) {
  if (static_cast<const void*>(row) != dst) Write(row, n, dst, type, stride);
}

// One element.
double LoadDouble(const void* src, DType type);
int64_t LoadInt(const void* src, DType type);

// Address of element `index` of a tensor's memory.
inline void* At(void* base, DType type, int64_t index) { return static_cast<char*>(base) + index * ItemSize(type); }
inline const void* At(const void* base, DType type, int64_t index) {
  return static_cast<const char*>(base) + index * ItemSize(type);
}

}  // namespace npu::simd
