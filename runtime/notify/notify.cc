#include "runtime/notify/notify.h"

#include <algorithm>
#include <chrono>
#include <unordered_map>

#include "base/handle/table.h"
#include "runtime/context/context.h"
#include "runtime/context/devices.h"
#include "runtime/context/kinds.h"
#include "runtime/workers/process.h"
#include "runtime/workers/timer.h"

namespace npu::rt {
namespace {

HandleTable<Notify>& notifies() {
  static auto* table = new HandleTable<Notify>(kNotifyHandle, "notify");
  return *table;
}
std::atomic<uint32_t> next_id{0};

class NotifyTask final : public Task {
 public:
  explicit NotifyTask(Ref<Notify> notify) : notify_(std::move(notify)) {}
  Outcome Run(TaskContext&) override { return Outcome::Done(notify_->Set()); }
  // Who waits for the bit would wait for ever; it learns of the failure from the stream that had it.
  void Drop(const Status&) override { static_cast<void>(notify_->Set()); }
  const char* Name() const override { return "notify record"; }
  uint32_t CostNs() const override { return 200; }

 private:
  Ref<Notify> notify_;
};

class NotifyWaitTask final : public Task {
 public:
  NotifyWaitTask(Ref<Notify> notify, uint64_t limit_ms) : notify_(std::move(notify)), limit_ms_(limit_ms) {}
  ~NotifyWaitTask() override {
    if (parked_) notify_->RemoveWaker(this);
  }
  Outcome Run(TaskContext& context) override {
    if (context.stopping) return Outcome::Done(Error(Code::kStreamAbort, "A wait for a notify was aborted."));
    if (limit_ms_ > 0 && deadline_.never()) {
      deadline_ = Deadline::FromMs(static_cast<int64_t>(limit_ms_));
      alarm_.Set(deadline_.at(), context.waker);
    }
    const auto taken = notify_->TakeOrPark(this, context.waker, bell_);
    if (!taken.ok()) return Outcome::Done(taken.status());
    if (*taken) return Outcome::Done();
    parked_ = true;
    if (!deadline_.passed()) return Outcome::Parked();
    return Outcome::Done(Error(Code::kEventSyncTimeout, "Notify {} was not recorded within {} ms.", notify_->id(), limit_ms_)
                             .Remedy("Look at the stream that is to record it, or raise the limit."));
  }
  const char* Name() const override { return "notify wait"; }

 private:
  Ref<Notify> notify_;
  const uint64_t limit_ms_;
  bool parked_ = false;
  Deadline deadline_ = Deadline::Never();
  Alarm alarm_;
  BellWait bell_;
};

// Words change by WriteValue, which wakes at once, and by kernels, copies and other processes, which do not: those are seen
// by looking again, at first soon and then less often.
struct Watchers {
  std::mutex mutex;
  std::unordered_map<const uint64_t*, WakerList> wakers;
};
Watchers& watchers() {
  static auto* w = new Watchers;
  return *w;
}
constexpr auto kFirstLook = std::chrono::microseconds(50);
constexpr auto kLastLook = std::chrono::milliseconds(2);

uint64_t Load(const uint64_t* word) { return __atomic_load_n(word, __ATOMIC_ACQUIRE); }

class ValueWriteTask final : public Task {
 public:
  ValueWriteTask(uint64_t* word, uint64_t value) : word_(word), value_(value) {}
  Outcome Run(TaskContext&) override {
    __atomic_store_n(word_, value_, __ATOMIC_RELEASE);
    WakerList wake;
    {
      Watchers& w = watchers();
      const std::lock_guard lock(w.mutex);
      const auto found = w.wakers.find(word_);
      if (found != w.wakers.end()) wake = found->second;  // they stay until their task goes
    }
    for (const auto& [who, waker] : wake.TakeAll()) waker.Wake();
    return Outcome::Done();
  }
  const char* Name() const override { return "value write"; }
  uint32_t CostNs() const override { return 200; }

 private:
  uint64_t* const word_;
  const uint64_t value_;
};

class ValueWaitTask final : public Task {
 public:
  ValueWaitTask(const uint64_t* word, uint64_t value, Compare compare) : word_(word), value_(value), compare_(compare) {}
  ~ValueWaitTask() override {
    if (!watched_) return;
    Watchers& w = watchers();
    const std::lock_guard lock(w.mutex);
    const auto found = w.wakers.find(word_);
    if (found == w.wakers.end()) return;
    found->second.Remove(this);
    if (found->second.size() == 0) w.wakers.erase(found);
  }
  Outcome Run(TaskContext& context) override {
    if (Holds(compare_, Load(word_), value_)) return Outcome::Done();
    if (context.stopping) return Outcome::Done(Error(Code::kStreamAbort, "A wait for a value was aborted."));
    if (!watched_) {
      watched_ = true;
      Watchers& w = watchers();
      const std::lock_guard lock(w.mutex);
      w.wakers[word_].Add(this, context.waker);
    }
    if (Holds(compare_, Load(word_), value_)) return Outcome::Done();
    alarm_.Set(Deadline::Clock::now() + look_, context.waker);
    look_ = std::min<std::chrono::nanoseconds>(look_ * 2, kLastLook);
    return Outcome::Parked();
  }
  const char* Name() const override { return "value wait"; }

 private:
  const uint64_t* const word_;
  const uint64_t value_;
  const Compare compare_;
  bool watched_ = false;
  std::chrono::nanoseconds look_ = kFirstLook;
  Alarm alarm_;
};

}  // namespace

Status Notify::Set() {
  WakerList wake;
  {
    const std::lock_guard lock(mutex_);
    if (shared_) return shared_->Set();
    set_ = true;
    std::swap(wake, wakers_);
  }
  for (const auto& [who, waker] : wake.TakeAll()) waker.Wake();
  return {};
}

Result<bool> Notify::TakeOrPark(const void* who, const Waker& waker, BellWait& bell) {
  const std::lock_guard lock(mutex_);
  if (shared_) {
    const uint32_t seen = shared_->BellSeen();
    NPU_ASSIGN(const bool taken, shared_->Take());
    if (!taken) shared_->WakeOnChange(seen, waker, bell);
    return taken;
  }
  if (set_) {
    set_ = false;
    return true;
  }
  wakers_.Add(who, waker);
  return false;
}

void Notify::RemoveWaker(const void* who) {
  const std::lock_guard lock(mutex_);
  wakers_.Remove(who);
}

size_t Notify::waiting() const {
  const std::lock_guard lock(mutex_);
  return wakers_.size();
}

void Notify::Clear() {
  const std::lock_guard lock(mutex_);
  if (shared_) shared_->Clear();
  set_ = false;
  stamps_.clear();
}

Result<std::string> Notify::Export(bool open_to_all, const char* function) {
  if (imported_) {
    return Error(Code::kOutOfRange, "{}: this notify belongs to another process.", function)
        .Remedy("Let the process that made it export it.");
  }
  WakerList wake;
  std::string key;
  {
    const std::lock_guard lock(mutex_);
    if (!shared_) {
      NPU_ASSIGN(shared_, SharedNotify::Make(set_));
      std::swap(wake, wakers_);
    }
    if (open_to_all) shared_->OpenToAll();
    key = shared_->Key();
  }
  // Who waits already looks again, now where others see the bit.
  for (const auto& [who, waker] : wake.TakeAll()) waker.Wake();
  return key;
}

Status Notify::Allow(std::span<const int32_t> pids, const char* function) {
  const std::lock_guard lock(mutex_);
  if (imported_ || !shared_) {
    return Error(Code::kOutOfRange, "{}: this notify was not exported by this process.", function)
        .Remedy("Call aclrtNotifyGetExportKey first, in the process that made it.");
  }
  return shared_->Allow(pids, function);
}

Status Notify::Record(TaskStream& stream) {
  if (strict::On()) {
    auto stamp = strict::Record(stream.line());
    const std::lock_guard lock(mutex_);
    stamps_.push_back(std::move(stamp));
  }
  return stream.Enqueue(std::make_unique<NotifyTask>(Ref<Notify>::Share(this)));
}

Status Notify::WaitAndReset(TaskStream& stream, uint64_t limit_ms) {
  if (strict::On()) {
    strict::Stamp stamp;
    {
      const std::lock_guard lock(mutex_);
      if (!shared_ && !stamps_.empty()) {
        stamp = std::move(stamps_.front());
        stamps_.pop_front();
      }
    }
    // A wait that was given before its record, or for another process, cannot be followed.
    if (stamp) {
      strict::Wait(stream.line(), stamp);
    } else {
      strict::Unknown(stream.line());
    }
  }
  return stream.Enqueue(std::make_unique<NotifyWaitTask>(Ref<Notify>::Share(this), limit_ms));
}

namespace {
Result<void*> AddNotify(std::unique_ptr<SharedNotify> imported, const char* function) {
  NPU_ASSIGN(const device::Machine* machine, TheMachine());
  const uint32_t limit = machine->profile().max_notifies;
  if (notifies().size() >= limit) {
    return Error(Code::kNoNotifyResource, "{}: this process has {} notifies, which is the limit of {}.", function, limit,
                 machine->profile().soc)
        .Remedy("Destroy notifies that are no longer used.");
  }
  const uint32_t id = next_id.fetch_add(1, std::memory_order_relaxed);
  void* raw = notifies().Add(Ref<Notify>::Adopt(new Notify(id, std::move(imported))));
  if (raw == nullptr) return Error(Code::kNoNotifyResource, "{}: no notify handles are left.", function);
  return raw;
}
}  // namespace

Result<void*> MakeNotify(const char* function) {
  NPU_TRY(Current(function).status());
  return AddNotify(nullptr, function);
}

Result<void*> OpenNotify(std::string_view key, const char* function) {
  NPU_TRY(Current(function).status());
  NPU_ASSIGN(std::unique_ptr<SharedNotify> imported, SharedNotify::Open(key, function));
  return AddNotify(std::move(imported), function);
}

Result<Ref<Notify>> FindNotify(const void* raw, const char* function) {
  if (Forked()) return ForkedError(function);
  return notifies().Get(raw, function, "notify");
}

Status DestroyNotify(void* raw, const char* function) {
  if (Forked()) return ForkedError(function);
  return notifies().Remove(raw, function, "notify").status();
}

bool Holds(Compare compare, uint64_t word, uint64_t value) {
  switch (compare) {
    case Compare::kAtLeast: return static_cast<int64_t>(word - value) >= 0;
    case Compare::kEqual: return word == value;
    case Compare::kAnd: return (word & value) != 0;
    case Compare::kNor: return ~(word | value) != 0;
  }
  return false;
}

Status WriteValue(uint64_t* local, uint64_t value, TaskStream& stream) {
  if (strict::On()) strict::Shared(reinterpret_cast<std::byte*>(local));
  return stream.Enqueue(std::make_unique<ValueWriteTask>(local, value));
}

size_t ValueWaiters() {
  Watchers& w = watchers();
  const std::lock_guard lock(w.mutex);
  size_t all = 0;
  for (const auto& [word, list] : w.wakers) all += list.size();
  return all;
}

Status WaitForValue(const uint64_t* local, uint64_t value, Compare compare, TaskStream& stream) {
  if (strict::On()) strict::Unknown(stream.line());
  return stream.Enqueue(std::make_unique<ValueWaitTask>(local, value, compare));
}

}  // namespace npu::rt
