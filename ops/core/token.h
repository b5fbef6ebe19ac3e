// Tokens: a token is the index of one parameter of one operator, and its type says what stands there.
//
// gen/abi/<operator>.h declares them from abi/aclnn.tsv, e.g. abi::Add::self is TensorIn{0}. Args takes a token and gives
// the value in the right type; a rule takes tokens and binds itself to those parameters.
#pragma once

#include <cstdint>
#include <string_view>

namespace npu::ops {

// What a parameter is at the boundary.
enum class Kind : uint8_t {
  tensor, tensor_list, scalar, scalar_list, ints, bools, floats, boolean, int8, int32, int64, uint64, real32, real64, text, dtype,
};
enum class Role : uint8_t { in, out, inout };

struct Param {
  std::string_view name;
  Kind kind;
  Role role = Role::in;
  bool maybe = false;  // the table knows a call that passes null
};

struct Token { uint8_t index = 0xff; };
// Any single tensor; rules take this.
struct TensorToken : Token {};
struct TensorIn : TensorToken {};
struct MaybeIn : TensorToken {};
struct TensorOut : TensorToken {};   // written only
struct MaybeOut : TensorToken {};
struct TensorRef : TensorToken {};   // read and written
struct MaybeRef : TensorToken {};
struct ListToken : Token {};
struct ListIn : ListToken {};
struct MaybeListIn : ListToken {};
struct ListOut : ListToken {};
struct ListRef : ListToken {};
struct ScalarToken : Token {};
struct ScalarIn : ScalarToken {};
struct MaybeScalar : ScalarToken {};
struct ScalarListIn : Token {};
struct IntsToken : Token {};
struct IntsIn : IntsToken {};
struct MaybeInts : IntsToken {};
struct BoolsIn : Token {};
struct FloatsIn : Token {};
struct BoolIn : Token {};
struct IntIn : Token {};     // int8, int32, int64, uint64
struct RealIn : Token {};    // float, double
struct TextIn : Token {};
struct DTypeIn : Token {};

}  // namespace npu::ops

// The tables' tokens live beside the operators' names.
namespace npu::abi {
using namespace npu::ops;  // NOLINT(google-build-using-namespace)
}
