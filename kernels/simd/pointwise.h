// Elementwise kernels: one function per operation and lane type, over gap-free tiles; strides, broadcasting and conversion
// between stored and computed types are done around them by RunPointwise.
//
//   Pointwise p{&simd::kAdd, DType::bf16};        // computed in f32 lanes, rounded once to bfloat16
//   p.in[0] = &self; p.in[1] = &other; p.out = &out;
//   p.imm.Set(0, alpha);
//   RunPointwise(p, parallel);
//
// The result does not depend on the number of threads.
#pragma once

#include <array>
#include <cstdint>

#include "base/task/parallel.h"
#include "tensor/promote.h"
#include "tensor/tensor.h"

namespace npu::simd {

// What registers hold: halves are computed in f32, small integers and bool in i32.
enum class Lane : uint8_t { f32, f64, i32, i64, c128, b8 };
inline constexpr int kLanes = 6;
inline constexpr int LaneBytes(Lane l) {
  switch (l) {
    case Lane::f32:
    case Lane::i32: return 4;
    case Lane::f64:
    case Lane::i64: return 8;
    case Lane::c128: return 16;
    case Lane::b8: return 1;
  }
  return 0;
}
Lane LaneOf(DType t);
// Unsigned types whose values the signed lane holds; order and right shifts of u64 would need lanes of their own.
inline constexpr TypeSet kUnsignedInLanes{DType::u16, DType::u32};

// Numbers that go with the operation (alpha, bounds, slope …) in every form; 1 unless set.
struct Imm {
  static constexpr int kCount = 4;
  std::array<double, kCount> d{1, 1, 1, 1};
  std::array<double, kCount> im{};
  std::array<int64_t, kCount> i{1, 1, 1, 1};
  void Set(int k, const Scalar& s) {
    d[static_cast<size_t>(k)] = s.re;
    im[static_cast<size_t>(k)] = s.im;
    i[static_cast<size_t>(k)] = s.i;
  }
};

// in[k] and out point to n lanes without gaps. out may be in[k]. Predicates write bytes 0 and 1.
using TileFn = void (*)(const void* const* in, void* out, int64_t n, const Imm& imm);

struct PointwiseKernel {
  std::string_view name;
  int arity;
  TypeSet types;              // compute types
  bool predicate;             // result is bool
  uint8_t mask_operand;       // operand that is bool whatever the compute type (where's condition); 0xff: none
  uint8_t cost;               // rough, in tenths of a ns per element of f32
  std::string_view tolerance; // how far from torch: "exact", "rounded", "ulp"
  TileFn (*find)(Lane lane);  // for the best instruction set of this machine; null when the lane has none
};

struct Pointwise {
  const PointwiseKernel* kernel;
  DType compute;
  std::array<const Tensor*, 3> in{};
  const Tensor* out = nullptr;
  Imm imm{};
  // in[k] is a 0-d number that keeps its precision: it is not rounded to a compute type narrower than the lane.
  std::array<bool, 3> number{};
};

// A number as a 0-d operand over the scalar's own storage.
inline Tensor NumberTensor(const Scalar& s) {
  Tensor t;
  t.dtype = s.Complex() ? DType::c128 : s.Floating() ? DType::f64 : DType::i64;
  t.data = const_cast<void*>(s.Floating() || s.Complex() ? static_cast<const void*>(&s.re) : &s.i);
  return t;
}

// Operands are expanded to out's shape. An operand may be exactly `out`; one that overlaps it otherwise is copied first.
void RunPointwise(const Pointwise& p, Parallel& parallel);
// Rough time on one thread.
double PointwiseNs(const PointwiseKernel& kernel, int64_t numel);

// out = in, converted; shapes as in RunPointwise.
void CopyTensor(const Tensor& in, const Tensor& out, Parallel& parallel);
void FillTensor(const Tensor& out, const Scalar& value, Parallel& parallel);

}  // namespace npu::simd
