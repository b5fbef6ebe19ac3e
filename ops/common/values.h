// Arguments as dense arrays of one compute type, for operators that are plain loops.
//
//   return WithFloat(x.dtype, [&]<class T>() -> Status {      // double for float64, float for all other types
//     const Values<T> in(x, c.parallel);                      // x's own memory when it is dense and of type T
//     Results<T> out(y, c.parallel);                          // written back, rounded once, when it goes out of scope
//     for (int64_t i = 0; i < in.size(); ++i) out[i] = in[i];
//     return {};
//   });
#pragma once

#include <complex>
#include <cstdint>
#include <optional>
#include <type_traits>

#include "base/task/parallel.h"
#include "kernels/simd/copy/copy.h"
#include "kernels/simd/rows/convert.h"
#include "kernels/simd/rows/scratch.h"
#include "tensor/shape.h"

namespace npu::ops {

template <class T>
constexpr DType TypeOf() {
  if constexpr (std::is_same_v<T, std::complex<float>>) return DType::c64;
  if constexpr (std::is_same_v<T, std::complex<double>>) return DType::c128;
  if constexpr (std::is_same_v<T, int32_t>) return DType::i32;
  if constexpr (std::is_same_v<T, uint8_t>) return DType::u8;
  if constexpr (std::is_arithmetic_v<T> && sizeof(T) != 1 && !std::is_same_v<T, int32_t>) return simd::DTypeOf<T>();
}

template <class T>
class Values {
 public:
  Values(const Tensor& t, Parallel& parallel) : size_(t.Numel()) {
    if (t.dtype == TypeOf<T>() && t.Contiguous()) {
      data_ = t.As<const T>();
      return;
    }
    scratch_.emplace(size_);
    data_ = scratch_->data();
    if (size_ > 0) simd::Copy(t, MakeContiguous(scratch_->data(), TypeOf<T>(), t.Shape()), parallel);
  }
  const T* data() const { return data_; }
  const T& operator[](int64_t i) const { return data_[i]; }
  int64_t size() const { return size_; }

 private:
  std::optional<simd::Scratch<T>> scratch_;
  const T* data_ = nullptr;
  int64_t size_;
};

// Uninitialised unless `loads`: then it begins with what the tensor holds.
template <class T>
class Results {
 public:
  Results(const Tensor& t, Parallel& parallel, bool loads = false) : to_(t), size_(t.Numel()), parallel_(parallel) {
    if (t.dtype == TypeOf<T>() && t.Contiguous()) {
      data_ = t.As<T>();
      return;
    }
    scratch_.emplace(size_);
    data_ = scratch_->data();
    if (loads && size_ > 0) simd::Copy(t, MakeContiguous(data_, TypeOf<T>(), t.Shape()), parallel);
  }
  ~Results() {
    if (scratch_ && size_ > 0) simd::Copy(MakeContiguous(data_, TypeOf<T>(), to_.Shape()), to_, parallel_);
  }
  Results(const Results&) = delete;
  Results& operator=(const Results&) = delete;

  T* data() { return data_; }
  T& operator[](int64_t i) { return data_[i]; }
  int64_t size() const { return size_; }

 private:
  std::optional<simd::Scratch<T>> scratch_;
  Tensor to_;
  T* data_ = nullptr;
  int64_t size_;
  Parallel& parallel_;
};

// f.operator()<T>() with the type that values of type `t` are computed in.
template <class F>
auto WithFloat(DType t, F&& f) {
  return t == DType::f64 ? f.template operator()<double>() : f.template operator()<float>();
}
// The same, with std::complex for complex types.
template <class F>
auto WithFloatOrComplex(DType t, F&& f) {
  if (t == DType::c64) return f.template operator()<std::complex<float>>();
  if (t == DType::c128) return f.template operator()<std::complex<double>>();
  return WithFloat(t, f);
}
// The same, with int64_t for integers and bool.
template <class F>
auto WithNumber(DType t, F&& f) {
  return IsFloat(t) ? WithFloat(t, f) : f.template operator()<int64_t>();
}

// Size of the last dimension but `back`; 1 when there is none.
inline int64_t SizeAt(const Tensor& t, int back) {
  return t.rank > back ? t.shape[static_cast<size_t>(t.rank - 1 - back)] : 1;
}

// A grain for loops whose body touches about `per_item` elements.
inline int64_t Grain(int64_t per_item) { return std::max<int64_t>(1, 16384 / std::max<int64_t>(1, per_item)); }

}  // namespace npu::ops
