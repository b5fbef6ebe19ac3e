// The edge of a library: what every exported function does around the one call behind it.
//
// Generated entries use these; hand-written ones (variadic functions) may too. Nothing thrown passes the edge.
#pragma once

#include <atomic>
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

// Calls that are to fail on demand. `armed` points to a word that is 0 as long as there are none; it begins as a word of
// ours that is 1, so that the first call asks `look`, which may set the pointer anew.
struct FaultGate {
  std::atomic<const std::atomic<uint32_t>*> armed;
  std::atomic<bool (*)(const char* name, int32_t* code)> look{nullptr};
};
extern FaultGate fault_gate;
// Asks; true when the call is to return *code.
bool FailsOnDemand(const char* name, int32_t* code) noexcept;
inline bool MayFail() { return fault_gate.armed.load(std::memory_order_acquire)->load(std::memory_order_relaxed) != 0; }

// What Run does but for failing on demand.
template <class F>
int32_t Guard(const char* name, CodeOf code_of, F&& call) noexcept {
  try {
    const Status status = call();
    if (status.ok()) [[likely]]
      return 0;
    return Refuse(status, code_of);
  } catch (...) {
    return Refuse(Thrown(name), code_of);
  }
}

template <class F>
int32_t Run(const char* name, CodeOf code_of, F&& call) noexcept {
  if (int32_t code = 0; MayFail() && FailsOnDemand(name, &code)) [[unlikely]]
    return code;
  return Guard(name, code_of, call);
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
