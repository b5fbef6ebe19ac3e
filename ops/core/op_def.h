// An operator's definition as plain constant data, and what its functions are given.
//
// Definitions are made by ops/core/builder.h; ops/README.md has the recipe.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>

#include "base/status/status.h"
#include "base/task/parallel.h"
#include "ops/core/args.h"
#include "ops/core/token.h"
#include "tensor/promote.h"

namespace npu::ops {

struct OpDef;
class Planning;
class TensorObject;

// A kind of rule, e.g. "these two broadcast". A rule checks a call in phase one, and by its name tells the generated tests
// which samples are good and which must fail (tests/conformance/rules.py).
struct Rule;
struct RuleKind {
  std::string_view name;
  Status (*check)(const Planning& plan, const Rule& rule);
  // Which of the rule's parameters get their shape, their type from it; bit i is params[i]. The builder proves that every
  // output has both.
  uint8_t shapes = 0;
  uint8_t types = 0;
};

struct Rule {
  const RuleKind* kind = nullptr;
  std::array<uint8_t, 6> params{0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
  int64_t imm = 0;      // the kind's own: a type set, a rank …
};

// What Does() gets. `scratch` is the workspace as a kernel address.
struct Call {
  const OpDef& op;
  Args args;
  std::byte* scratch;
  uint64_t scratch_bytes;
  Parallel& parallel;
  const void* state;                       // what Prepares() left
  TensorObject* const* live;               // outputs kept by .DataDependent(), in that order

  template <class T>
  const T& State() const { return *static_cast<const T*>(state); }
  template <class T>
  const T& Kernel() const;
};

// What a family's kernel says about itself; read by describe only.
struct KernelFacts {
  std::string_view name;
  TypeSet types;
  std::string_view tolerance;
};

using RunFn = Status (*)(const Call&);
using PrepareFn = Status (*)(Planning&);

inline constexpr int kMaxRules = 12, kMaxSlots = 8, kMaxSamples = 6;

struct SampleText {
  uint8_t param = 0xff;
  std::string_view values;  // a Python expression: the list of good values
};

struct OpDef {
  std::string_view name;
  std::span<const Param> params;
  std::array<Rule, kMaxRules> rules{};
  uint8_t rule_count = 0;
  RunFn run = nullptr;
  PrepareFn prepare = nullptr;
  const void* kernel = nullptr;
  std::array<uint8_t, kMaxSlots> slots{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};  // the family's, by its own order
  int64_t imm = 0;                                                                       // the family's
  std::string_view family;                  // for describe
  KernelFacts (*facts)(const void* kernel) = nullptr;
  std::string_view judge;                   // Python
  std::string_view tolerance;               // exact, rounded, ulp, accumulated: what the tests allow; empty: the kernel's
  std::array<SampleText, kMaxSamples> samples{};
  uint8_t sample_count = 0;
  uint64_t used = 0;       // parameters that a rule, a slot or .Uses names
  uint64_t optional = 0;   // may be null although the table has no mark, and the reverse
  uint64_t required = 0;
  uint64_t live = 0;       // outputs whose shape depends on data

  bool MayBeNull(size_t param) const {
    return (params[param].maybe || (optional >> param & 1) != 0) && (required >> param & 1) == 0;
  }
};

template <class T>
const T& Call::Kernel() const { return *static_cast<const T*>(op.kernel); }

}  // namespace npu::ops
