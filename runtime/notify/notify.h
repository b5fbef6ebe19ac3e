// Notifies (one-bit semaphores between streams) and waits for words of device memory.
//
// A notify that was exported or imported keeps its bit where other processes see it (shared_notify.h); the others are this
// process's own and know who waits.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>

#include "base/handle/ref.h"
#include "base/status/status.h"
#include "base/task/task.h"
#include "runtime/notify/shared_notify.h"
#include "runtime/stream/task_stream.h"
#include "runtime/workers/waker_list.h"

namespace npu::rt {

class Notify {
 public:
  explicit Notify(uint32_t id, std::unique_ptr<SharedNotify> imported = nullptr)
      : id_(id), imported_(imported != nullptr), shared_(std::move(imported)) {}
  uint32_t id() const { return id_; }

  Status Record(TaskStream& stream);
  // Waits for the bit and clears it; limit 0 is none.
  Status WaitAndReset(TaskStream& stream, uint64_t limit_ms);
  void Clear();

  // The key under which other processes open it: all of them, or those named by Allow.
  Result<std::string> Export(bool open_to_all, const char* function);
  Status Allow(std::span<const int32_t> pids, const char* function);

  // For the tasks. Setting a bit and waiting for it fail when the process that made it has gone.
  Status Set();
  Result<bool> TakeOrPark(const void* who, const Waker& waker, BellWait& bell);
  void RemoveWaker(const void* who);
  size_t waiting() const;  // for tests

  void AddRef() { refs_.fetch_add(1, std::memory_order_relaxed); }
  void Release() {
    if (refs_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }

 private:
  const uint32_t id_;
  const bool imported_;
  std::atomic<uint32_t> refs_{1};
  mutable std::mutex mutex_;
  bool set_ = false;                      // while it is not shared
  std::unique_ptr<SharedNotify> shared_;  // once it is, for good
  WakerList wakers_;
  std::deque<strict::Stamp> stamps_;  // strict memory: of records that no wait has taken yet
};

Result<void*> MakeNotify(const char* function);
// A notify of another process; destroyed like any other.
Result<void*> OpenNotify(std::string_view key, const char* function);
Result<Ref<Notify>> FindNotify(const void* raw, const char* function);
Status DestroyNotify(void* raw, const char* function);

// Numbers of the ABI (ACL_STREAM_WAIT_VALUE_*).
enum class Compare : uint8_t { kAtLeast = 0, kEqual = 1, kAnd = 2, kNor = 3 };
bool Holds(Compare compare, uint64_t word, uint64_t value);

// Queued store of a 64-bit word of device memory, and queued wait for one. `local` is the kernel's address.
Status WriteValue(uint64_t* local, uint64_t value, TaskStream& stream);
Status WaitForValue(const uint64_t* local, uint64_t value, Compare compare, TaskStream& stream);
size_t ValueWaiters();  // for tests: waits that are parked

}  // namespace npu::rt
