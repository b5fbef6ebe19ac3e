// Declaring an operator.
//
//   using abi::LayerNorm;
//   NPU_OP(LayerNorm) = Op<LayerNorm>()
//       .Rules(rule::SameShape(LayerNorm::input, LayerNorm::out), rule::SameDtype(LayerNorm::input, LayerNorm::out), …)
//       .Uses(LayerNorm::eps)
//       .Like("torch.native_layer_norm(input, normalizedShape, weightOptional, biasOptional, eps)")
//       .Does([](const Call& c) -> Status { … });
//
// Each step is consteval and returns a changed copy; the conversion to OpDef checks the promises: every output has a shape
// and a type, every parameter is used, there is something to run and something to compare with. A broken promise is a
// compile error that names the function called for it below.
#pragma once

#include "ops/core/op_def.h"

namespace npu::ops {

// Declared, never defined, not constexpr: calling one is the compile error.
void every_output_needs_a_shape_rule();
void every_output_needs_a_dtype_rule();
void every_parameter_is_used_by_a_rule_or_by_Uses();
void operator_needs_Does();
void operator_needs_Like();
void too_many_rules();
void too_many_samples();

class Builder {
 public:
  consteval Builder(std::string_view name, std::span<const Param> params) {
    d_.name = name;
    d_.params = params;
  }

  template <class... R>
  consteval Builder Rules(R... rules) const {
    Builder b = *this;
    (b.AddRule(rules), ...);
    return b;
  }
  // Parameters that only the run function reads.
  template <class... T>
  consteval Builder Uses(T... tokens) const {
    Builder b = *this;
    ((b.d_.used |= Bit(tokens)), ...);
    return b;
  }
  // Corrects the table: these may be null …
  template <class... T>
  consteval Builder Optional(T... tokens) const {
    Builder b = *this;
    ((b.d_.optional |= Bit(tokens)), ...);
    return b;
  }
  // … and these never are, whatever the table has seen.
  template <class... T>
  consteval Builder Required(T... tokens) const {
    Builder b = *this;
    ((b.d_.required |= Bit(tokens)), ...);
    return b;
  }
  // Python, evaluated with the parameters' names bound to CPU tensors; several results are compared with the outputs in
  // order. For lists and in-place operators the names are bound to copies of the inputs.
  consteval Builder Like(std::string_view python) const {
    Builder b = *this;
    b.d_.judge = python;
    return b;
  }
  // How far from torch: "exact", "rounded" (the default: a few roundings in the compute type), "ulp" (vector math),
  // "accumulated" (over many terms).
  consteval Builder Tolerance(std::string_view kind) const {
    Builder b = *this;
    b.d_.tolerance = kind;
    return b;
  }
  // Good values for a parameter that no rule knows: a Python list.
  consteval Builder Samples(Token token, std::string_view python_list) const {
    Builder b = *this;
    if (b.d_.sample_count == kMaxSamples) too_many_samples();
    b.d_.samples[b.d_.sample_count++] = {token.index, python_list};
    return b;
  }
  // Runs at the end of phase one, after all rules: chooses kernels, asks for scratch, refuses what no rule can say.
  consteval Builder Prepares(PrepareFn f) const {
    Builder b = *this;
    b.d_.prepare = f;
    return b;
  }
  consteval Builder Does(RunFn f) const {
    Builder b = *this;
    b.d_.run = f;
    b.runs_ = true;
    return b;
  }
  // Outputs whose true shape is known only after running; their aclTensor stays reachable as c.live[i].
  template <class... T>
  consteval Builder DataDependent(T... outputs) const {
    Builder b = *this;
    ((b.d_.live |= Bit(outputs)), ...);
    return b;
  }

  // For families.
  consteval Builder Keyed(const void* kernel) const {
    Builder b = *this;
    b.d_.kernel = kernel;
    return b;
  }
  consteval Builder Describes(KernelFacts (*facts)(const void*)) const {
    Builder b = *this;
    b.d_.facts = facts;
    return b;
  }
  template <class... T>
  consteval Builder Slots(T... tokens) const {
    Builder b = *this;
    size_t i = 0;
    ((b.d_.slots[i++] = tokens.index, b.d_.used |= Bit(tokens)), ...);
    return b;
  }
  consteval Builder Slot(size_t i, Token token) const {
    Builder b = *this;
    b.d_.slots[i] = token.index;
    b.d_.used |= Bit(token);
    return b;
  }
  consteval Builder Imm(int64_t v) const {
    Builder b = *this;
    b.d_.imm = v;
    return b;
  }
  consteval Builder Family(std::string_view name) const {
    Builder b = *this;
    b.d_.family = name;
    return b;
  }

  consteval operator OpDef() const {  // NOLINT(google-explicit-constructor)
    for (size_t p = 0; p < d_.params.size(); ++p) {
      const Param& param = d_.params[p];
      if (param.role == Role::out && !Bound(p, &RuleKind::shapes)) every_output_needs_a_shape_rule();
      if (param.role == Role::out && !Bound(p, &RuleKind::types)) every_output_needs_a_dtype_rule();
      if ((d_.used >> p & 1) == 0) every_parameter_is_used_by_a_rule_or_by_Uses();
    }
    if (!runs_) operator_needs_Does();
    if (d_.judge.empty()) operator_needs_Like();
    return d_;
  }

 private:
  static consteval uint64_t Bit(Token t) { return t.index == 0xff ? 0 : uint64_t{1} << t.index; }
  consteval void AddRule(const Rule& r) {
    if (d_.rule_count == kMaxRules) too_many_rules();
    for (uint8_t p : r.params)
      if (p != 0xff) d_.used |= uint64_t{1} << p;
    d_.rules[d_.rule_count++] = r;
  }
  consteval bool Bound(size_t p, uint8_t RuleKind::* which) const {
    for (size_t r = 0; r < d_.rule_count; ++r)
      for (size_t i = 0; i < d_.rules[r].params.size(); ++i)
        if (d_.rules[r].params[i] == p && (d_.rules[r].kind->*which >> i & 1) != 0) return true;
    return false;
  }
  OpDef d_;
  bool runs_ = false;  // g++ 12 with -fsanitize=undefined takes no function's address for a constant to compare
};

template <class A>
consteval Builder Op() {
  return Builder(A::kName, A::kParams);
}

// Declares and defines the operator of one table row. gen/aclnn.py finds these lines and exports exactly them.
#define NPU_OP(X)            \
  extern const OpDef op_##X; \
  constinit const OpDef op_##X

}  // namespace npu::ops
