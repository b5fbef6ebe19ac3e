// What becomes of an operator on the NPU: which functions torch_npu calls for it, whether this build has them, and the
// types that each kind of chip takes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace npu::doctor {

struct Function {
  std::string name;      // aclnnGelu
  bool defined = false;  // in this build
  struct Parameter {
    std::string name, types_910b, types_a3, types_310p, types_950;
  };
  std::vector<Parameter> parameters;  // tensors only; empty when the types are not known
};

struct Operator {
  std::string asked, name;  // what was asked for, and the operator that does it: gelu
  std::string kernel;       // npu, composed, cpu, or empty when torch has no such operator
  std::vector<Function> functions;
  std::vector<Operator> parts;  // of a function that is made of others: linear is addmm and mm
  // native, refused, composed, cpu, or unknown.
  std::string State() const;
};

// Names as programs write them: torch.nn.functional.gelu, F.gelu, torch.Tensor.add_, torch.nn.GELU, aten::add,
// torch_npu.npu_rms_norm, aclnnGelu.
bool LooksLikeOperator(std::string_view name);
Operator Describe(std::string_view name);

}  // namespace npu::doctor
