// Notifies (one-bit semaphores between streams) and waits for words of device memory.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include "base/handle/ref.h"
#include "base/status/status.h"
#include "base/task/task.h"
#include "runtime/stream/task_stream.h"
#include "runtime/workers/waker_list.h"

namespace npu::rt {

class Notify {
 public:
  explicit Notify(uint32_t id) : id_(id) {}
  uint32_t id() const { return id_; }

  Status Record(TaskStream& stream);
  // Waits for the bit and clears it; limit 0 is none.
  Status WaitAndReset(TaskStream& stream, uint64_t limit_ms);
  void Clear();

  // For the tasks.
  void Set();
  bool TakeOrPark(const void* who, const Waker& waker);
  void RemoveWaker(const void* who);
  size_t waiting() const;  // for tests

  void AddRef() { refs_.fetch_add(1, std::memory_order_relaxed); }
  void Release() {
    if (refs_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }

 private:
  const uint32_t id_;
  std::atomic<uint32_t> refs_{1};
  mutable std::mutex mutex_;
  bool set_ = false;
  WakerList wakers_;
};

Result<void*> MakeNotify(const char* function);
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
