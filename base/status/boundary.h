// The edge of a library: what every exported function does around the one call behind it.
//
// Generated entries use these; hand-written ones (variadic functions) may too. Nothing thrown passes the edge.
#pragma once

#include <cstdint>
#include <exception>
#include <new>

#include "base/status/last_error.h"
#include "base/status/status.h"

namespace npu::boundary {

using CodeOf = int32_t (*)(Code);  // AclCode, NnCode, HcclCode or DcmiCode

// Records the failure for this thread and gives the number for the caller.
int32_t Refuse(const Status& status, CodeOf code_of) noexcept;
// For functions without code behind them: what is owed, and what is refused for good.
int32_t Owed(const char* name, CodeOf code_of) noexcept;
int32_t Unsupported(const char* name, const char* why, CodeOf code_of) noexcept;
// The exception being handled, as a failure of `name`.
Status Thrown(const char* name) noexcept;

template <class F>
int32_t Run(const char* name, CodeOf code_of, F&& call) noexcept {
  try {
    const Status status = call();
    if (status.ok()) [[likely]]
      return 0;
    return Refuse(status, code_of);
  } catch (...) {
    return Refuse(Thrown(name), code_of);
  }
}

// For functions that return something else than a status: a zero value stands for failure.
template <class T, class F>
T Value(const char* name, F&& call) noexcept {
  try {
    return call();
  } catch (...) {
    Refuse(Thrown(name), AclCode);
    return T();
  }
}

}  // namespace npu::boundary

#define NPU_EXPORT __attribute__((visibility("default")))
