// Contexts: what a thread works in. A device has one primary context in a process, made by the first SetDevice and counted;
// explicit ones come from CreateContext. A context owns its streams.
//
//   NPU_TRY(SetDevice(0, "aclrtSetDevice"));
//   NPU_ASSIGN(Ref<Context> context, Current("aclrtMalloc"));     // kContextNull, or opens the default device
//   NPU_ASSIGN(void* raw, context->CreateStream({.priority = 0}, "aclrtCreateStream"));
//
// Any thread may call anything. A thread keeps its current context as long as it does not choose another one; after that
// context is gone it has none, also with a default device (which opens only for threads that never had a context).
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "base/handle/ref.h"
#include "base/status/status.h"
#include "base/time/deadline.h"
#include "runtime/stream/task_stream.h"

namespace npu::rt {

class Context {
 public:
  struct StreamOptions {
    uint32_t priority = 0;
    uint32_t flags = 0;
  };

  int device() const { return device_; }  // logical
  int card() const { return card_; }      // physical
  bool primary() const { return primary_; }
  bool open() const { return open_.load(std::memory_order_acquire); }
  void* handle() const { return handle_; }
  Pool& pool() const { return pool_; }

  Result<void*> CreateStream(const StreamOptions& options, const char* function);
  // Waits for its work unless forced.
  Status DestroyStream(void* raw, bool force, const char* function);
  Ref<TaskStream> default_stream() const;
  void* default_stream_handle() const { return default_stream_raw_; }
  std::vector<Ref<TaskStream>> Streams() const;

  // Options that clients set on a context and read back; nothing when never set.
  static constexpr int kSysParams = 3;
  void SetSysParam(int option, int64_t value) { sys_params_[option].store(value, std::memory_order_relaxed); }
  std::optional<int64_t> SysParam(int option) const {
    const int64_t value = sys_params_[option].load(std::memory_order_relaxed);
    return value < 0 ? std::nullopt : std::optional<int64_t>(value);
  }

  // Saturation mode: some operator's result was beyond the range of its type since the last Clear.
  void NoteOverflow() { overflow_.store(true, std::memory_order_relaxed); }
  void ClearOverflow() { overflow_.store(false, std::memory_order_relaxed); }
  bool overflow() const { return overflow_.load(std::memory_order_relaxed); }

  // Waits for all streams; the first failure among them.
  Status Synchronize(Deadline deadline);
  // Drops what is queued on all streams and answers `why` from them ever after; waits until nothing runs.
  Status Abort(const Status& why, Deadline deadline);

  void AddRef() { refs_.fetch_add(1, std::memory_order_relaxed); }
  void Release() {
    if (refs_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }

 private:
  friend struct Contexts;
  Context(int device, int card, bool primary);
  ~Context();
  // Waits for work until then, aborts what is left, and takes streams and handle away.
  void Close(Deadline patience);
  Status AddStream(const StreamOptions& options, const char* function, void** raw);

  const int device_, card_;
  const bool primary_;
  Pool& pool_;
  void* handle_ = nullptr;
  void* default_stream_raw_ = nullptr;
  std::atomic<int64_t> sys_params_[kSysParams] = {-1, -1, -1};
  std::atomic<bool> open_{true};
  std::atomic<bool> overflow_{false};
  std::atomic<uint32_t> refs_{1};
  mutable std::mutex mutex_;
  Ref<TaskStream> default_stream_;
  std::vector<void*> streams_;  // handles, the default stream's first
};

// Streams by handle; ResolveStream (stream.h) adds the rules of contexts. This one takes streams of any context.
Result<Ref<TaskStream>> FindStream(const void* raw, const char* function);
// As ResolveStream, for those who need more than the contract.
Result<Ref<TaskStream>> ResolveTaskStream(void* raw, const char* function);
// The same without the rule that the stream belongs to the current context.
Result<Ref<TaskStream>> ResolveAnyStream(void* raw, const char* function);

Status SetDevice(int device, const char* function);
Status ResetDevice(int device, bool force, const char* function);
bool PrimaryActive(int device);

// The calling thread's context.
Result<Ref<Context>> Current(const char* function);
// The same without opening the default device: null when there is none.
Ref<Context> CurrentOrNull();
// The logical device the thread is on; the default device counts though it is not opened by this.
Result<int> CurrentDevice(const char* function);
// The open primary context of a device; kDeviceNotOpened (507033) otherwise.
Result<Ref<Context>> PrimaryOf(int device, const char* function);

Result<Ref<Context>> CreateContext(int device, const char* function);
Status DestroyContext(void* raw, const char* function);
Status SetCurrent(void* raw, const char* function);

// How many more streams this process can make on a card.
Result<uint32_t> StreamsLeft(int card);
// Drops everything queued on a device in this process; its streams answer kTaskAbort from then on.
Status AbortDevice(int device, Deadline deadline, const char* function);

}  // namespace npu::rt
