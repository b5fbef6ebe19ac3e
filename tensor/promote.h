// Torch's type promotion: which type an operation on mixed types is computed in.
//
//   Promotion p;
//   p.AddTensor(self.dtype, self.rank); p.AddScalar(alpha);
//   DType compute = p.Result();
//
// Tensors with dimensions decide before 0-d tensors, those before plain numbers; a lower group matters only by its kind
// (bool < integer < float < complex).
#pragma once

#include <cstdint>
#include <initializer_list>

#include "tensor/dtype.h"
#include "tensor/scalar.h"

namespace npu {

// A set of types as bits, for tables that are constant data.
struct TypeSet {
  uint64_t bits = 0;
  constexpr TypeSet() = default;
  constexpr TypeSet(std::initializer_list<DType> types) {
    for (DType t : types) bits |= uint64_t{1} << static_cast<unsigned>(t);
  }
  constexpr bool Has(DType t) const { return t != DType::none && (bits >> static_cast<unsigned>(t) & 1) != 0; }
  constexpr TypeSet operator|(TypeSet o) const { TypeSet r; r.bits = bits | o.bits; return r; }
  constexpr bool operator==(const TypeSet&) const = default;
};

inline constexpr TypeSet kHalfs{DType::f16, DType::bf16};
inline constexpr TypeSet kFloats{DType::f32, DType::f64, DType::f16, DType::bf16};
inline constexpr TypeSet kInts{DType::i8, DType::i16, DType::i32, DType::i64, DType::u8};
inline constexpr TypeSet kIndexTypes{DType::i32, DType::i64};
inline constexpr TypeSet kBool{DType::b8};
inline constexpr TypeSet kNumbers = kFloats | kInts;
inline constexpr TypeSet kReals = kNumbers | kBool;
inline constexpr TypeSet kComplexes{DType::c64, DType::c128};
inline constexpr TypeSet kUnsigned{DType::u16, DType::u32, DType::u64};
inline constexpr TypeSet kAnyType = kReals | kComplexes | kUnsigned | TypeSet{DType::c32};

// torch.promote_types; none where torch refuses (uint64 with a signed integer).
DType PromoteTypes(DType a, DType b);
// torch.can_cast(from, to): no float into integer, no complex into float, nothing but bool into bool.
bool CanCast(DType from, DType to);

class Promotion {
 public:
  void AddTensor(DType t, int rank) { Join(rank > 0 ? dims_ : zero_dim_, t); }
  void AddScalar(const Scalar& s);
  DType Result() const;

 private:
  static void Join(DType& into, DType t) { into = into == DType::none ? t : PromoteTypes(into, t); }
  DType dims_ = DType::none, zero_dim_ = DType::none, number_ = DType::none;
};

}  // namespace npu
