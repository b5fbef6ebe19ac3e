// The arguments of one call as a value: descriptors, numbers and arrays copied out of the client's objects.
//
//   const Tensor& x = c.args[abi::Add::self];
//   const Tensor* w = c.args[abi::LayerNorm::weightOptional];   // null when the client passed null
//   double eps = c.args[abi::LayerNorm::eps];
//
// Everything lies in one block without pointers inside, so a plan is copied by copying bytes. `data` of a tensor is the
// address kernels use. A null or empty-list argument reads as null, an empty span or an empty list.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "ops/core/token.h"
#include "tensor/scalar.h"
#include "tensor/tensor.h"

namespace npu::ops {

class Args {
 public:
  struct Slot {
    union {
      int64_t i;
      double d;
      struct { uint32_t offset, count; } at;  // in the block; offset 0 is null
    };
  };

  Args() = default;
  explicit Args(std::byte* block) : block_(block) {}

  const Tensor& operator[](TensorIn k) const { return *One(k); }
  const Tensor& operator[](TensorRef k) const { return *One(k); }
  const Tensor& operator[](TensorOut k) const { return *One(k); }
  const Tensor* operator[](MaybeIn k) const { return One(k); }
  const Tensor* operator[](MaybeRef k) const { return One(k); }
  const Tensor* operator[](MaybeOut k) const { return One(k); }
  // Any tensor token, null when absent.
  const Tensor* Maybe(TensorToken k) const { return One(k); }
  // Elements of a list that are null have dtype none.
  std::span<const Tensor> operator[](ListToken k) const { return Many<Tensor>(k); }

  const Scalar& operator[](ScalarIn k) const { return *Many<Scalar>(k).data(); }
  const Scalar* operator[](MaybeScalar k) const { return Maybe(k); }
  const Scalar* Maybe(ScalarToken k) const { return slot(k).at.offset ? Many<Scalar>(k).data() : nullptr; }
  std::span<const Scalar> operator[](ScalarListIn k) const { return Many<Scalar>(k); }

  std::span<const int64_t> operator[](IntsToken k) const { return Many<int64_t>(k); }
  std::span<const bool> operator[](BoolsIn k) const { return Many<bool>(k); }
  std::span<const float> operator[](FloatsIn k) const { return Many<float>(k); }
  bool operator[](BoolIn k) const { return slot(k).i != 0; }
  int64_t operator[](IntIn k) const { return slot(k).i; }
  double operator[](RealIn k) const { return slot(k).d; }
  DType operator[](DTypeIn k) const { return static_cast<DType>(slot(k).i); }
  std::string_view operator[](TextIn k) const {
    const auto s = Many<char>(k);
    return {s.data(), s.size()};
  }

  // For pointers (all kinds but numbers): the client passed null.
  bool Null(Token k) const { return slot(k).at.offset == 0; }

  std::byte* block() const { return block_; }
  Slot& slot(Token k) const { return reinterpret_cast<Slot*>(block_)[k.index]; }
  template <class T>
  std::span<T> Many(Token k) const {
    const auto at = slot(k).at;
    return {reinterpret_cast<T*>(block_ + at.offset), at.offset ? at.count : 0};
  }

 private:
  const Tensor* One(Token k) const {
    const uint32_t offset = slot(k).at.offset;
    return offset ? reinterpret_cast<const Tensor*>(block_ + offset) : nullptr;
  }
  std::byte* block_ = nullptr;
};

}  // namespace npu::ops
