// The two phases behind every exported operator function; gen/aclnn.py writes the entries that call them.
#pragma once

#include <bit>
#include <cstdint>

#include "ops/core/plan.h"

struct aclTensor;
struct aclTensorList;
struct aclScalar;
struct aclScalarList;
struct aclIntArray;
struct aclBoolArray;
struct aclFloatArray;
struct aclOpExecutor;

#define NPU_ENTRY __attribute__((visibility("default")))

namespace npu::opapi {

inline uint64_t Word(double v) { return std::bit_cast<uint64_t>(v); }

inline int32_t Phase1(const ops::OpDef& op, const uint64_t* words, uint64_t* workspace_bytes, aclOpExecutor** executor) noexcept {
  return ops::PlanCall(op, words, workspace_bytes, reinterpret_cast<void**>(executor));
}

// Puts the plan on the stream, or runs it here when the stream is idle and the plan short. The executor is used up unless
// it is repeatable.
int32_t Phase2(const ops::OpDef& op, void* workspace, uint64_t workspace_bytes, aclOpExecutor* executor, void* stream) noexcept;

// The same as a Status, for callers inside; `executor` is one that Plan made.
Status Launch(const ops::OpDef& op, void* workspace, uint64_t workspace_bytes, void* executor, void* stream);

}  // namespace npu::opapi
