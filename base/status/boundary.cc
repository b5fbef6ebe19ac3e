#include "base/status/boundary.h"

namespace npu::boundary {

int32_t Refuse(const Status& status, CodeOf code_of) noexcept {
  const int32_t code = code_of(status.code());
  try {
    RecordError(status, code);
  } catch (...) {
    // Memory is exhausted: the number alone has to do.
  }
  return code;
}

namespace {
constinit std::atomic<uint32_t> ask_first{1};
constinit std::atomic<uint32_t> never{0};
}  // namespace

constinit FaultGate fault_gate{&ask_first};

bool FailsOnDemand(const char* name, int32_t* code) noexcept {
  const auto look = fault_gate.look.load(std::memory_order_acquire);
  if (look == nullptr) {
    const std::atomic<uint32_t>* first = &ask_first;
    fault_gate.armed.compare_exchange_strong(first, &never, std::memory_order_acq_rel);
    return false;
  }
  try {
    if (!look(name, code)) return false;
    RecordError(Error(Code::kInternal, "{}: a failure with {} was injected.", name, *code)
                    .Remedy("anynpu faults lists what was injected, anynpu clear ends it."),
                *code);
    return true;
  } catch (...) {
    return false;
  }
}

int32_t Owed(const char* name, CodeOf code_of) noexcept {
  return Run(name, code_of, [&] { return NotYet(name); });
}

int32_t Unsupported(const char* name, const char* why, CodeOf code_of) noexcept {
  return Run(name, code_of, [&] { return npu::Unsupported(name, why); });
}

Status Thrown(const char* name) noexcept {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return Error(Code::kBadAlloc, "{}: the host has no memory left for this call.", name)
        .Remedy("Close other programs or give the process more memory.");
  } catch (const std::exception& e) {
    return Error(Code::kInternal, "{}: a fault inside AnyNPU: {}.", name, e.what()).Remedy("Please report it.");
  } catch (...) {
    return Error(Code::kInternal, "{}: a fault inside AnyNPU.", name).Remedy("Please report it.");
  }
}

}  // namespace npu::boundary
