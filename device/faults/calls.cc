// Calls that fail on demand: what the edge of the libraries asks (base/status/boundary.h).
#include <cstring>
#include <mutex>

#include "base/os/fork.h"
#include "base/status/boundary.h"
#include "device/faults/faults.h"
#include "device/machine/state_file.h"

namespace npu::device {
namespace {

constinit std::atomic<uint32_t> no_faults{0};

bool Names(const FaultRecord& fault, const char* name) {
  return strnlen(fault.call, sizeof fault.call) < sizeof fault.call && std::strcmp(fault.call, name) == 0;
}

// The machine that this process uses, or would use, without joining it. Mapped for as long as the process lives.
StateLayout* LookedAt() {
  if (const Machine* machine = Joined()) return &machine->shared();
  static std::mutex mutex;
  static StateFile* file = nullptr;
  const std::lock_guard lock(mutex);
  if (file == nullptr) {
    auto config = ConfigFromEnvironment();
    auto opened = config.ok() ? StateFile::Open(config->name, StateFile::Missing::kLeave)
                              : Result<std::unique_ptr<StateFile>>(config.status());
    if (!opened.ok() || *opened == nullptr || (*opened)->fresh()) return nullptr;
    file = opened->release();
    file->Unlock();
  }
  return &file->layout();
}

bool Fails(const char* name, int32_t* code) {
  StateLayout* layout = LookedAt();
  if (layout == nullptr) {  // nobody has made a machine yet; joining one looks again
    boundary::fault_gate.armed.store(&no_faults, std::memory_order_release);
    return false;
  }
  boundary::fault_gate.armed.store(&layout->figures.faults.armed_calls, std::memory_order_release);
  if (layout->figures.faults.armed_calls.load(std::memory_order_acquire) == 0) return false;
  for (FaultRecord& fault : layout->figures.faults.faults) {
    if (fault.state.load(std::memory_order_acquire) != kFaultArmed) continue;
    if (fault.kind.load(std::memory_order_relaxed) != static_cast<uint32_t>(FaultKind::kCallFails)) continue;
    if (!Names(fault, name) || !IsForThisProcess(fault) || !Matches(fault)) continue;
    *code = fault.code.load(std::memory_order_relaxed);
    return true;
  }
  return false;
}

const bool registered = [] {
  boundary::fault_gate.look.store(&Fails, std::memory_order_release);
  return true;
}();

}  // namespace

void WatchCalls(StateLayout& layout) {
  static_cast<void>(registered);
  boundary::fault_gate.armed.store(&layout.figures.faults.armed_calls, std::memory_order_release);
}

}  // namespace npu::device
