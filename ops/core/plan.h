// Phase one: from the words of a call to an executor that can be run.
#pragma once

#include <concepts>

#include "ops/core/op_def.h"

namespace npu::ops {

class Executor;

// What rules and Prepares() see of a call in the making.
class Planning {
 public:
  Planning(const OpDef& definition, Executor& executor) : op(definition), executor_(executor) {}

  const OpDef& op;
  Args args;

  std::string_view ParamName(Token k) const { return op.params[k.index].name; }
  template <class T>
  const T& Kernel() const { return *static_cast<const T*>(op.kernel); }

  // Device memory that Does() gets as `scratch`, aligned to 512 bytes. Several requests add up; returns the offset.
  uint64_t NeedScratch(uint64_t bytes);
  // A value that Does() reads with c.State<T>(). One per call; it must be copyable as bytes.
  template <class T>
    requires std::is_trivially_copyable_v<T>
  T& NewState(const T& value = {}) {
    return *static_cast<T*>(AddState(&value, sizeof(T)));
  }
  // Rough run time; decides whether an idle stream runs the call at once. Without it bytes moved decide.
  void Cost(double ns);
  // A failure of this call that begins with the function's name.
  template <class... A>
  Status Refuse(fmt::format_string<A...> format, A&&... a) const {
    return Status(Code::kInvalidParam, fmt::format("{}: {}", op.name, fmt::format(format, std::forward<A>(a)...)));
  }

 private:
  void* AddState(const void* value, size_t bytes);
  Executor& executor_;
};

// The one function behind every exported ...GetWorkspaceSize: `words` are the parameters in the table's order, one machine
// word each. Returns an aclnnStatus; reports its text.
int32_t PlanCall(const OpDef& op, const uint64_t* words, uint64_t* workspace_bytes, void** executor) noexcept;

// The same without the boundary.
Result<Executor*> Plan(const OpDef& op, const uint64_t* words);

}  // namespace npu::ops
