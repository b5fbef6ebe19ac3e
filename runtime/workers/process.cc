#include "runtime/workers/process.h"

#include <atomic>
#include <cstdlib>
#include <mutex>

#include "base/os/process.h"
#include "runtime/workers/pool.h"

namespace npu::rt {
namespace {
std::atomic<bool> exiting{false};
std::atomic<os::ForkGuard*> guard{nullptr};  // made with the first use, never destroyed
}  // namespace

void NoteUse() {
  if (guard.load(std::memory_order_acquire) != nullptr) return;
  static std::once_flag once;
  std::call_once(once, [] {
    std::atexit([] { StopWorkersForExit(); });
    guard.store(new os::ForkGuard, std::memory_order_release);
  });
}

bool Forked() {
  const os::ForkGuard* made = guard.load(std::memory_order_acquire);
  return made != nullptr && made->Forked();
}

Status ForkedError(const char* function) {
  return Error(Code::kUninitialized,
               "{}: this process was forked from one that had already used an NPU; devices do not survive a fork.", function)
      .Remedy("Start workers with the 'spawn' or 'forkserver' method, or fork before the first NPU call.");
}

bool Exiting() { return exiting.load(std::memory_order_relaxed); }

void StopWorkersForExit() {
  if (Forked()) return;
  exiting.store(true, std::memory_order_seq_cst);
  Pool::StopAll();
}

}  // namespace npu::rt
