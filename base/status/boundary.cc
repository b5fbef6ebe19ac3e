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
