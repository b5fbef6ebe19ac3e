// Events: a mark on a stream that other streams and threads wait for, with the time at which the stream reached it.
//
//   NPU_ASSIGN(void* raw, MakeEvent({.flags = kEventSync}, "aclrtCreateEventWithFlag"));
//   NPU_ASSIGN(Ref<Event> event, FindEvent(raw, "aclrtRecordEvent"));
//   NPU_TRY(event->Record(*stream, "aclrtRecordEvent"));
//   NPU_TRY(event->WaitOn(*other, Deadline::Never(), "aclrtStreamWaitEvent"));   // waits for the latest record of now
//
// Each record is a mark of its own: a wait holds on to the one it was queued for, however often the event is recorded again.
// Any thread may call anything.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

#include "base/handle/ref.h"
#include "base/status/status.h"
#include "base/task/task.h"
#include "base/time/deadline.h"
#include "runtime/event/shared_mark.h"
#include "runtime/stream/task_stream.h"
#include "runtime/workers/waker_list.h"

namespace npu::rt {

// Flag bits, the numbers of the ABI.
enum EventFlags : uint32_t {
  kEventSync = 1,
  kEventCaptureProgress = 2,
  kEventReservedBit = 4,
  kEventTimeLine = 8,
  kEventDeviceUseOnly = 0x10,
  kEventExternal = 0x20,
  kEventIpc = 0x40,
};

// One record on one stream.
class EventMark {
 public:
  bool done() const { return done_.load(std::memory_order_acquire); }
  // Valid when done.
  const Status& status() const { return status_; }
  int64_t time_ns() const { return time_ns_; }

  void Finish(Status status);
  // Parks the task `who`: false when the mark is done already.
  bool AddWaker(const void* who, const Waker& waker, Ref<TaskStream>* recorder);
  void RemoveWaker(const void* who);
  size_t waiting() const;  // for tests
  strict::Stamp stamp;     // strict memory: before anybody else sees the mark
  // Before anybody else sees the mark.
  void SetPlace(Ref<TaskStream> stream, uint64_t position);
  // Helps and waits until the mark is done.
  Status Wait(Deadline deadline, const char* function);

 private:
  mutable std::mutex mutex_;
  WakerList wakers_;
  Ref<TaskStream> stream_;  // from SetPlace until done
  uint64_t position_ = 0;
  Status status_;
  int64_t time_ns_ = 0;
  std::atomic<bool> done_{false};
};

class Event {
 public:
  enum class Kind : uint8_t { kPlain, kEx };
  struct Options {
    uint32_t flags = kEventSync | kEventTimeLine;
    Kind kind = Kind::kPlain;
  };

  uint32_t flags() const { return options_.flags; }
  bool ex() const { return options_.kind == Kind::kEx; }
  uint32_t id() const { return id_; }

  Status Record(TaskStream& stream, const char* function);
  // `limit_ms`: 0 means the process-wide limit of queued waits.
  Status WaitOn(TaskStream& stream, uint64_t limit_ms, const char* function);
  Status Reset(TaskStream& stream, const char* function);
  Status Synchronize(Deadline deadline, const char* function);

  // Whether the latest record has run; without one, Ex events count as reached and others do not. The failure of a stream
  // that could not get there comes as the status.
  Result<bool> Reached(const char* function) const;
  // The latest record, or null when never recorded (or reset since).
  std::shared_ptr<EventMark> latest() const;
  bool WaitsPending() const { return waits_pending_->load(std::memory_order_acquire) > 0; }

  void AddRef() { refs_.fetch_add(1, std::memory_order_relaxed); }
  void Release() {
    if (refs_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }

  // `shared` for IPC events only.
  Event(const Options& options, uint32_t id, int card, std::unique_ptr<SharedMark> shared = nullptr);
  SharedMark* shared() const { return shared_.get(); }
  ~Event();

 private:
  const Options options_;
  const uint32_t id_;
  const int card_;
  const std::unique_ptr<SharedMark> shared_;
  std::atomic<uint32_t> refs_{1};
  mutable std::mutex mutex_;
  std::shared_ptr<EventMark> latest_;
  std::shared_ptr<std::atomic<int>> waits_pending_;
};

Result<void*> MakeEvent(const Event::Options& options, const char* function);
// An event of another process, from the bytes of ExportEvent; destroyed like any other.
Result<void*> OpenEvent(const void* handle, const char* function);
Status DestroyEvent(void* raw, const char* function);
Result<Ref<Event>> FindEvent(const void* raw, const char* function);
// How many more plain events can be made on the current device.
Result<uint32_t> EventsLeft(const char* function);

// Milliseconds from `start` to `end`.
Result<float> ElapsedMs(const Event& start, const Event& end, const char* function);
// Microseconds on the monotonic clock.
Result<uint64_t> TimestampUs(const Event& event, const char* function);

// The process-wide limit of queued waits; 0 is none.
void SetWaitLimit(uint32_t seconds);
uint64_t WaitLimitMs();

}  // namespace npu::rt
