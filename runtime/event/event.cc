#include "runtime/event/event.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <utility>

#include "base/handle/table.h"
#include "base/parity/parity.h"
#include "device/meters/meters.h"
#include "runtime/context/chip_limits.h"
#include "runtime/context/context.h"
#include "runtime/context/devices.h"
#include "runtime/context/kinds.h"
#include "runtime/workers/process.h"
#include "runtime/workers/timer.h"

namespace npu::rt {
namespace {

HandleTable<Event>& events() {
  static auto* table = new HandleTable<Event>(kEventHandle, "event");
  return *table;
}

std::atomic<uint64_t> wait_limit_ms{0};
std::atomic<uint32_t> next_id{0};
constexpr int kMaxCards = device::kMaxCards;
std::atomic<uint32_t> plain_events[kMaxCards];  // by card: those that hold a hardware number on the real product
std::atomic<uint32_t> other_events[kMaxCards];  // and those that do not, by the reference

int64_t NowNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

class RecordTask final : public Task {
 public:
  explicit RecordTask(std::shared_ptr<EventMark> mark) : mark_(std::move(mark)) {}
  Outcome Run(TaskContext&) override {
    mark_->Finish({});
    return Outcome::Done();
  }
  void Drop(const Status& why) override { mark_->Finish(why); }
  const char* Name() const override { return "event record"; }
  uint32_t CostNs() const override { return 200; }

 private:
  std::shared_ptr<EventMark> mark_;
};

class WaitTask final : public Task {
 public:
  WaitTask(std::shared_ptr<EventMark> mark, TaskStream& own, uint64_t limit_ms, std::shared_ptr<std::atomic<int>> pending)
      : mark_(std::move(mark)), own_(own), limit_ms_(limit_ms), pending_(std::move(pending)) {
    pending_->fetch_add(1, std::memory_order_relaxed);
  }
  ~WaitTask() override {
    if (parked_) mark_->RemoveWaker(this);
    pending_->fetch_sub(1, std::memory_order_release);
  }

  Outcome Run(TaskContext& context) override {
    if (mark_->done()) return Finished();
    if (context.stopping) return Outcome::Done(Error(Code::kStreamAbort, "A wait for an event was aborted."));
    if (limit_ms_ > 0) {
      if (!started_) {
        started_ = true;
        deadline_ = Deadline::FromMs(static_cast<int64_t>(limit_ms_));
        alarm_.Set(deadline_.at(), context.waker);
      } else if (deadline_.passed()) {
        return Outcome::Done(Error(Code::kEventSyncTimeout,
                                   "Stream {} of card {} waited {} ms for an event that was not reached.", own_.id(),
                                   own_.card(), limit_ms_)
                                 .Remedy("Look at what its recording stream waits for, or raise the limit."));
      }
    }
    Ref<TaskStream> recorder;
    if (!mark_->AddWaker(this, context.waker, &recorder)) return Finished();
    parked_ = true;
    own_.SetBlockedOn(std::move(recorder));
    return Outcome::Parked();
  }
  const char* Name() const override { return "event wait"; }

 private:
  // What follows would use results that the failed stream has not made.
  Outcome Finished() const { return Outcome::Done(mark_->status()); }

  std::shared_ptr<EventMark> mark_;
  TaskStream& own_;
  const uint64_t limit_ms_;
  bool started_ = false, parked_ = false;
  Deadline deadline_ = Deadline::Never();
  Alarm alarm_;
  std::shared_ptr<std::atomic<int>> pending_;
};

// Records of IPC events: the event's object keeps the shared cell as long as the task is queued.
class SharedRecordTask final : public Task {
 public:
  SharedRecordTask(Ref<Event> event, std::shared_ptr<EventMark> mark, uint64_t number)
      : event_(std::move(event)), mark_(std::move(mark)), number_(number) {}
  Outcome Run(TaskContext&) override {
    Finish({});
    return Outcome::Done();
  }
  void Drop(const Status& why) override { Finish(why); }
  const char* Name() const override { return "event record"; }
  uint32_t CostNs() const override { return 500; }

 private:
  void Finish(const Status& status) {
    event_->shared()->Reach(number_, !status.ok());
    mark_->Finish(status);
  }
  Ref<Event> event_;
  std::shared_ptr<EventMark> mark_;
  const uint64_t number_;
};

class SharedWaitTask final : public Task {
 public:
  SharedWaitTask(Ref<Event> event, uint64_t number, uint64_t limit_ms)
      : event_(std::move(event)), number_(number), deadline_(limit_ms > 0 ? Deadline::FromMs(static_cast<int64_t>(limit_ms)) : Deadline::Never()) {}
  Outcome Run(TaskContext& context) override {
    const uint32_t seen = event_->shared()->BellSeen();
    const auto reached = event_->shared()->Reached(number_);
    if (!reached.ok()) return Outcome::Done(reached.status());
    if (*reached) return Outcome::Done();
    if (context.stopping) return Outcome::Done(Error(Code::kStreamAbort, "A wait for a shared event was aborted."));
    if (deadline_.passed()) {
      return Outcome::Done(Error(Code::kEventSyncTimeout, "A shared event was not reached within the limit of its wait.")
                               .Remedy("Look at the process that records it, or raise the limit."));
    }
    event_->shared()->WakeOnChange(seen, context.waker, wait_);
    return Outcome::Parked();
  }
  const char* Name() const override { return "event wait"; }

 private:
  Ref<Event> event_;
  const uint64_t number_;
  const Deadline deadline_;
  BellWait wait_;
};

class FunctionTask final : public Task {
 public:
  explicit FunctionTask(std::function<void()> f) : f_(std::move(f)) {}
  Outcome Run(TaskContext&) override {
    f_();
    return Outcome::Done();
  }
  const char* Name() const override { return "event reset"; }
  uint32_t CostNs() const override { return 200; }

 private:
  std::function<void()> f_;
};

Result<void*> AddEvent(const Event::Options& options, int card, std::unique_ptr<SharedMark> shared, const char* function) {
  const uint32_t id = next_id.fetch_add(1, std::memory_order_relaxed);
  void* raw = events().Add(Ref<Event>::Adopt(new Event(options, id, card, std::move(shared))));
  if (raw == nullptr) return Error(Code::kNoEventResource, "{}: no event handles are left.", function);
  return raw;
}

Status ForExternalOnly(const Event& event, const char* function) {
  if (event.flags() == kEventExternal) {
    return Error(Code::kFeatureNotSupported, "{}: the event was made for graphs (ACL_EVENT_EXTERNAL).", function)
        .Remedy("Use an event without that flag.");
  }
  return {};
}

}  // namespace

void EventMark::Finish(Status status) {
  std::vector<std::pair<const void*, Waker>> wake;
  Ref<TaskStream> stream;
  {
    const std::lock_guard lock(mutex_);
    if (done()) return;
    status_ = std::move(status);
    time_ns_ = NowNs();
    wake = wakers_.TakeAll();
    std::swap(stream, stream_);
    done_.store(true, std::memory_order_release);
  }
  for (const auto& [who, waker] : wake) waker.Wake();
}

bool EventMark::AddWaker(const void* who, const Waker& waker, Ref<TaskStream>* recorder) {
  const std::lock_guard lock(mutex_);
  if (done()) return false;
  wakers_.Add(who, waker);
  *recorder = stream_;
  return true;
}

void EventMark::RemoveWaker(const void* who) {
  const std::lock_guard lock(mutex_);
  wakers_.Remove(who);
}

size_t EventMark::waiting() const {
  const std::lock_guard lock(mutex_);
  return wakers_.size();
}

void EventMark::SetPlace(Ref<TaskStream> stream, uint64_t position) {
  const std::lock_guard lock(mutex_);
  if (done()) return;
  stream_ = std::move(stream);
  position_ = position;
}

Status EventMark::Wait(Deadline deadline, const char* function) {
  while (!done()) {
    Ref<TaskStream> stream;
    uint64_t position = 0;
    {
      const std::lock_guard lock(mutex_);
      stream = stream_;
      position = position_;
    }
    if (!stream) break;  // done since the look above: a mark that others see has its place until then
    if (!stream->WaitFor(position, deadline).ok() && !done()) {
      return Error(Code::kEventSyncTimeout, "{}: the event was not reached within the time limit; stream {} of card {} is to record it.",
                   function, stream->id(), stream->card())
          .Remedy("Wait longer, or look for a task that waits for something that never comes.");
    }
  }
  return status();
}

Event::Event(const Options& options, uint32_t id, int card, std::unique_ptr<SharedMark> shared)
    : options_(options), id_(id), card_(card), shared_(std::move(shared)), waits_pending_(std::make_shared<std::atomic<int>>(0)) {
  if (ex()) other_events[card_].fetch_add(1, std::memory_order_relaxed);
}

Event::~Event() { (ex() ? other_events : plain_events)[card_].fetch_sub(1, std::memory_order_relaxed); }

std::shared_ptr<EventMark> Event::latest() const {
  const std::lock_guard lock(mutex_);
  return latest_;
}

Status Event::Record(TaskStream& stream, const char* function) {
  if (flags() == kEventDeviceUseOnly) {
    return Error(Code::kOutOfRange, "{}: the event is for use by kernels only (ACL_EVENT_DEVICE_USE_ONLY).", function)
        .Remedy("Record an event without that flag.");
  }
  auto mark = std::make_shared<EventMark>();
  if (strict::On()) mark->stamp = strict::Record(stream.line());
  TaskPtr task;
  if (shared_) {
    NPU_ASSIGN(const uint64_t number, shared_->Issue(function));
    task = std::make_unique<SharedRecordTask>(Ref<Event>::Share(this), mark, number);
  } else {
    task = std::make_unique<RecordTask>(mark);
  }
  uint64_t position = 0;
  Status status = stream.Submit(std::move(task), &position);
  if (status.ok() && !mark->done()) mark->SetPlace(Ref<TaskStream>::Share(&stream), position);
  // Only now may others wait for it: they need to know where it stands. Where it was refused they learn why.
  const std::lock_guard lock(mutex_);
  latest_ = std::move(mark);
  return status;
}

Status Event::WaitOn(TaskStream& stream, uint64_t limit_ms, const char* function) {
  if (flags() == kEventTimeLine) {
    return Error(Code::kFeatureNotSupported, "{}: the event only takes times (ACL_EVENT_TIME_LINE) and cannot be waited for.", function)
        .Remedy("Create it with ACL_EVENT_SYNC as well.");
  }
  if (shared_) {
    if (strict::On()) strict::Unknown(stream.line());
    return stream.Enqueue(
        std::make_unique<SharedWaitTask>(Ref<Event>::Share(this), shared_->Issued(), limit_ms > 0 ? limit_ms : WaitLimitMs()));
  }
  auto mark = latest();
  if (strict::On() && mark) strict::Wait(stream.line(), mark->stamp);
  if (!mark || (mark->done() && mark->status().ok())) return stream.AbortReason();
  return stream.Enqueue(std::make_unique<WaitTask>(std::move(mark), stream, limit_ms > 0 ? limit_ms : WaitLimitMs(), waits_pending_));
}

Status Event::Reset(TaskStream& stream, const char* function) {
  const bool times_only = flags() == kEventTimeLine || flags() == kEventCaptureProgress;
  if (ex() || times_only) {
    return Error(Code::kFeatureNotSupported, "{}: {} cannot be reset.", function,
                 ex() ? "events of aclrtCreateEventExWithFlag" : "an event that only takes times")
        .Remedy("Record it again instead.");
  }
  auto mark = latest();
  if (!mark) return {};
  return stream.Enqueue(std::make_unique<FunctionTask>([self = Ref<Event>::Share(this), mark] {
    const std::lock_guard lock(self->mutex_);
    if (self->latest_ == mark) self->latest_ = nullptr;
  }));
}

Status Event::Synchronize(Deadline deadline, const char* function) {
  NPU_TRY(ForExternalOnly(*this, function));
  const auto mark = latest();
  if (mark) {
    NPU_TRY(mark->Wait(deadline, function));
    if (strict::On()) strict::Reached(mark->stamp);
  }
  if (!shared_) return {};
  const device::meters::HostWait wait(card_);
  return shared_->Wait(shared_->Issued(), deadline, function);
}

Result<bool> Event::Reached(const char* function) const {
  NPU_TRY(ForExternalOnly(*this, function));
  if (shared_) return shared_->Reached(shared_->Issued());
  const auto mark = latest();
  if (!mark) return ex();
  if (!mark->done()) return false;
  NPU_TRY(mark->status());
  if (strict::On()) strict::Reached(mark->stamp);
  return true;
}

Result<void*> MakeEvent(const Event::Options& options, const char* function) {
  NPU_ASSIGN(Ref<Context> context, Current(function));
  const int card = context->card();
  const bool counted = options.kind == Event::Kind::kPlain;
  if (!counted && parity::On()) [[unlikely]] {
    NPU_ASSIGN(device::Machine * machine, TheMachine());
    const uint64_t all = plain_events[card].load(std::memory_order_relaxed) + other_events[card].load(std::memory_order_relaxed);
    DoubtLimit("events", machine->profile().soc, all + 1, function, Code::kNoEventResource, "Whether events of this function count is not known");
  }
  if (counted) {
    NPU_ASSIGN(device::Machine * machine, TheMachine());
    const uint32_t limit = machine->profile().max_events;
    const uint32_t before = plain_events[card].fetch_add(1, std::memory_order_relaxed);
    if (parity::On()) [[unlikely]] {
      if (Status status = CheckLimit("events", machine->profile().soc, before + 1, function, Code::kNoEventResource); !status.ok()) {
        plain_events[card].fetch_sub(1, std::memory_order_relaxed);
        return status;
      }
    }
    if (before >= limit) {
      plain_events[card].fetch_sub(1, std::memory_order_relaxed);
      return Error(Code::kNoEventResource, "{}: device {} ({}) has {} events, which is its limit.", function, context->device(),
                   machine->profile().soc, limit)
          .Remedy("Destroy events that are no longer used, or use aclrtCreateEventExWithFlag, which has no such limit.");
    }
  }
  std::unique_ptr<SharedMark> shared;
  if (options.flags == kEventIpc) {
    NPU_ASSIGN(shared, SharedMark::Make(function));
  }
  return AddEvent(options, card, std::move(shared), function);
}

Result<void*> OpenEvent(const void* handle, const char* function) {
  NPU_ASSIGN(Ref<Context> context, Current(function));
  NPU_ASSIGN(std::unique_ptr<SharedMark> shared, SharedMark::Open(handle, function));
  return AddEvent({kEventIpc, Event::Kind::kEx}, context->card(), std::move(shared), function);
}

Status DestroyEvent(void* raw, const char* function) {
  if (Forked()) return ForkedError(function);
  return events().Remove(raw, function, "event").status();
}

Result<Ref<Event>> FindEvent(const void* raw, const char* function) {
  if (Forked()) [[unlikely]] return ForkedError(function);
  return events().Get(raw, function, "event");
}

Result<uint32_t> EventsLeft(const char* function) {
  NPU_ASSIGN(Ref<Context> context, Current(function));
  NPU_ASSIGN(device::Machine * machine, TheMachine());
  const uint32_t used = plain_events[context->card()].load(std::memory_order_relaxed);
  return machine->profile().max_events - std::min(used, machine->profile().max_events);
}

namespace {
Result<int64_t> TimeOf(const Event& event, const char* which, const char* function) {
  NPU_TRY(ForExternalOnly(event, function));
  if (event.shared() != nullptr) {
    return Error(Code::kFeatureNotSupported, "{}: {} is an IPC event, which takes no times.", function, which);
  }
  const auto mark = event.latest();
  if (!mark) {
    return Error(Code::kInternal, "{}: {} was never recorded.", function, which).Remedy("Record it on a stream first.");
  }
  if ((event.flags() & kEventTimeLine) == 0) {
    return Error(Code::kEventTimestamp, "{}: {} takes no times.", function, which)
        .Remedy("Create it with ACL_EVENT_TIME_LINE (enable_timing=True in torch).");
  }
  if (!mark->done()) {
    return Error(Code::kEventTimestamp, "{}: {} has not been reached yet.", function, which)
        .Remedy("Synchronise it before asking for its time.");
  }
  NPU_TRY(mark->status());
  return mark->time_ns();
}
}  // namespace

Result<float> ElapsedMs(const Event& start, const Event& end, const char* function) {
  NPU_ASSIGN(const int64_t from, TimeOf(start, "startEvent", function));
  NPU_ASSIGN(const int64_t to, TimeOf(end, "endEvent", function));
  return static_cast<float>(static_cast<double>(to - from) / 1e6);
}

Result<uint64_t> TimestampUs(const Event& event, const char* function) {
  NPU_ASSIGN(const int64_t time, TimeOf(event, "event", function));
  return static_cast<uint64_t>(time / 1000);
}

void SetWaitLimit(uint32_t seconds) { wait_limit_ms.store(uint64_t{seconds} * 1000, std::memory_order_relaxed); }
uint64_t WaitLimitMs() { return wait_limit_ms.load(std::memory_order_relaxed); }

}  // namespace npu::rt
