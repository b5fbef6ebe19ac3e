// Checks that the interface layer makes by itself (code 100000), shared by the adapters.
#pragma once

#include "base/status/status.h"

namespace npu::calls {

inline Status NotNull(const void* pointer, const char* function, const char* parameter) {
  if (pointer != nullptr) [[likely]] return {};
  return Error(Code::kInvalidParam, "{}: {} is null.", function, parameter).Remedy("Pass a valid pointer.");
}

inline Status NotZero(uint64_t value, const char* function, const char* parameter) {
  if (value != 0) [[likely]] return {};
  return Error(Code::kInvalidParam, "{}: {} is 0.", function, parameter).Remedy("Pass a size above 0.");
}

}  // namespace npu::calls

// In a function of npu::calls, whose name is that of the C function.
#define NPU_NOT_NULL(parameter) NPU_TRY(::npu::calls::NotNull(parameter, __func__, #parameter))
#define NPU_NOT_ZERO(parameter) NPU_TRY(::npu::calls::NotZero(parameter, __func__, #parameter))
