// Tensors in the card's own layouts, for the few operators that take them.
//
//   NPU_OP(X) = Op<X>().Imm(kTakesFormats)…
//   FormatOf(args, X::mat2)     // aclFormat; the view's strides then say nothing about memory
//   StorageOf(args, X::mat2)    // the storage as a dense tensor
//
// All other operators refuse private formats in phase one.
#pragma once

#include "ops/core/args.h"

namespace npu::ops {

inline constexpr int64_t kTakesFormats = int64_t{1} << 40;  // OpDef::imm

// Phase one puts them behind the view.
struct Formatted {
  Tensor view, storage;
  int64_t format;
};

inline const Formatted& FormattedOf(const Args& args, TensorToken token) {
  return *reinterpret_cast<const Formatted*>(args.Maybe(token));
}
inline int64_t FormatOf(const Args& args, TensorToken token) { return FormattedOf(args, token).format; }
inline const Tensor& StorageOf(const Args& args, TensorToken token) { return FormattedOf(args, token).storage; }

}  // namespace npu::ops
