#include "runtime/stream/task_stream.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <unordered_set>
#include <utility>

#include "base/task/polling.h"
#include "device/meters/meters.h"
#include "runtime/callback/exception.h"
#include "runtime/workers/metered.h"
#include "runtime/workers/process.h"

namespace npu::rt {
namespace {
// How far a synchronising thread follows "waits for": longer chains are left to the workers.
constexpr int kHelpDepth = 256;
constexpr int kSyncSpinPauses = 300;
// A worker gives the stream back after so many tasks, so that a busy stream does not starve the others of its card.
constexpr int kTasksPerTurn = 64;
// Bounds a producer's nap, so that it notices a stream that has parked.
constexpr auto kThrottleNap = std::chrono::milliseconds(1);
constexpr int kEndless = 1 << 30;
// How long a synchronising call may last once the process is exiting and the workers are gone.
constexpr auto kExitPatience = std::chrono::milliseconds(50);

uint32_t ThreadId() {
  thread_local uint32_t id = 0;  // constant at first: no guard on the way in
  if (id == 0) [[unlikely]] id = static_cast<uint32_t>(gettid());
  return id;
}

// Every stream that exists, also one whose handle is gone while its last task still runs.
struct Streams {
  std::mutex mutex;
  std::unordered_set<TaskStream*> all;
};
Streams& streams() {
  static auto* s = new Streams;
  return *s;
}
}  // namespace

// What wakers hold: may outlive the stream.
class TaskStream::Target final : public Waker::Target {
 public:
  explicit Target(TaskStream* stream) : stream_(stream) {}
  void Wake() override {
    Ref<TaskStream> stream;
    {
      const std::lock_guard lock(mutex_);
      if (stream_ == nullptr || !stream_->TryAddRef()) return;
      stream = Ref<TaskStream>::Adopt(stream_);
    }
    stream->OnWake();
  }
  void Forget() {
    const std::lock_guard lock(mutex_);
    stream_ = nullptr;
  }

 private:
  std::mutex mutex_;
  TaskStream* stream_;
};

Ref<TaskStream> TaskStream::Make(Pool& pool, const Options& options) {
  return Ref<TaskStream>::Adopt(new TaskStream(pool, options));
}

TaskStream::TaskStream(Pool& pool, const Options& options)
    : Stream(options.saturates), pool_(pool), options_(options), target_(std::make_shared<Target>(this)), waker_(target_) {
  const std::lock_guard lock(streams().mutex);
  streams().all.insert(this);
}

TaskStream::~TaskStream() {
  {
    const std::lock_guard lock(streams().mutex);
    streams().all.erase(this);
  }
  target_->Forget();
  if (strict::On()) strict::Ended(line());
  if (options_.release_context != nullptr) options_.release_context(options_.context);
}

Status TaskStream::Enqueue(TaskPtr task) {
  uint64_t position = 0;
  return Submit(std::move(task), &position);
}

Status TaskStream::Submit(TaskPtr task, uint64_t* position) {
  const uint32_t cost = task->CostNs();
  std::unique_lock lock(mutex_);
  if (!aborted_.ok()) {
    const Status why = aborted_;
    lock.unlock();
    task->Drop(why);
    return why;
  }
  *position = ++submitted_;
  submitter_ = ThreadId();
  if (state_ != State::kIdle) {
    queue_.push_back(std::move(task));
    const bool far_ahead = queue_.size() > kDepth && state_ != State::kParked;
    lock.unlock();
    if (far_ahead) Throttle();
    return {};
  }
  if (cost != 0 && cost < kInlineNs) {
    state_ = State::kRunning;
    current_ = std::move(task);
    AddRef();
    lock.unlock();
    Drain(1, kNobody, /*caller=*/true);
    return {};
  }
  queue_.push_back(std::move(task));
  AddRef();
  MakeReady(lock);
  return {};
}

Status TaskStream::Launch(void* self, RunNow run, MakeTask make, const Quick& quick) {
  const uint32_t cost_ns = quick.cost_ns;
  if (cost_ns == 0 || cost_ns >= kInlineNs) return Enqueue(make(self));
  {
    const std::lock_guard lock(mutex_);
    const bool dropping = stop_on_failure_ && !failure_.ok();
    if (!aborted_.ok() || state_ != State::kIdle || dropping) run = nullptr;
    if (run != nullptr) {
      state_ = State::kRunning;
      ++submitted_;
      submitter_ = ThreadId();
    }
  }
  if (run == nullptr) return Enqueue(make(self));
  CardView view = View(cost_ns);
  TaskContext context{view, waker_, false};
  Outcome outcome;
  Kept gone;
  try {
    outcome = RunMetered(pool_.meter(), quick.work, {.planned_ns = cost_ns}, [this] { return GiveUp(); },
                         [&] { return run(self, context); }, [](const Status&) {});
  } catch (const std::exception& e) {
    outcome = Outcome::Done(Error(Code::kInternal, "A task ended with an exception: {}.", e.what()));
  }
  std::unique_lock lock(mutex_);
  if (outcome.step == Outcome::Step::kParked) {
    outcome = Outcome::Done(Error(Code::kInternal, "Work that said it would take {} ns wanted to wait.", cost_ns));
  }
  Account(std::move(outcome.status), &gone);
  if (queue_.empty()) {
    state_ = State::kIdle;
    lock.unlock();
  } else {
    AddRef();
    MakeReady(lock);
  }
  pool_.NoteBusy(cost_ns);
  return {};
}

// Precondition: state idle or running by this thread or parked, with the active reference held.
void TaskStream::MakeReady(std::unique_lock<std::mutex>& lock) {
  state_ = State::kReady;
  const bool helper = helpers_ > 0;  // that thread runs the stream; it kicks the pool if it leaves instead
  const bool push = !std::exchange(in_pool_queue_, true);
  Ref<TaskStream> self = push ? Ref<TaskStream>::Share(this) : Ref<TaskStream>();
  lock.unlock();
  if (helper) progress_.notify_all();
  const auto wake = helper ? Pool::Wake::kNone : Pool::Wake::kOne;
  if (push) {
    pool_.Push(std::move(self), static_cast<int>(options_.priority), wake);
  } else if (wake == Pool::Wake::kOne) {
    pool_.Kick();
  }
}

void TaskStream::OnWake() {
  std::unique_lock lock(mutex_);
  if (state_ == State::kParked) {
    MakeReady(lock);
  } else if (state_ == State::kRunning) {
    wake_pending_ = true;
  }
}

bool TaskStream::Claim() {
  const std::lock_guard lock(mutex_);
  if (state_ == State::kParked) {
    const auto* polling = dynamic_cast<const PollingTask*>(current_.get());
    if (polling == nullptr || !polling->Polls()) return false;
  } else if (state_ != State::kReady) {
    return false;
  }
  state_ = State::kRunning;
  return true;
}

void TaskStream::Serve() {
  {
    const std::lock_guard lock(mutex_);
    in_pool_queue_ = false;
    if (state_ != State::kReady) return;
    state_ = State::kRunning;
  }
  DrainTimed(kTasksPerTurn, kNobody);
}

void TaskStream::DrainTimed(int turns, uint64_t until) {
  Pool& pool = pool_;  // this object may go with its last task
  const auto start = std::chrono::steady_clock::now();
  Drain(turns, until);
  pool.NoteBusy(static_cast<uint64_t>(std::chrono::nanoseconds(std::chrono::steady_clock::now() - start).count()));
}

Outcome TaskStream::RunGuarded(Task& task, TaskContext& context, bool caller) {
  const uint32_t cost_ns = task.CostNs();
  const MeteredRun how{.planned_ns = cost_ns, .off_caller = !caller && cost_ns != 0 && cost_ns < kInlineNs};
  try {
    return RunMetered(pool_.meter(), task.Work(), how, [this] { return GiveUp(); },
                      [&] { return task.Run(context); }, [&](const Status& why) { task.Drop(why); });
  } catch (const std::exception& e) {
    return Outcome::Done(Error(Code::kInternal, "{}: the task ended with an exception: {}.", task.Name(), e.what()));
  }
}

Status TaskStream::GiveUp() const {
  if (Status why = AbortReason(); !why.ok()) return why;
  if (Exiting()) return Error(Code::kTaskAbort, "Card {}: the process is ending.", card());
  return {};
}

void TaskStream::Account(Status status, Kept* gone) {
  if (!status.ok() && aborted_.ok()) {
    NoteException({static_cast<uint32_t>(done_.load(std::memory_order_relaxed) + 1), id(), submitter_, card(), status.code()});
  }
  if (!status.ok() && failure_.ok()) failure_ = std::move(status);
  Advance(1 + std::exchange(dropped_behind_, 0), gone);
}

void TaskStream::Advance(uint64_t tasks, Kept* gone) {
  const uint64_t done = done_.fetch_add(tasks, std::memory_order_release) + tasks;
  if (done < wake_at_) return;
  for (; !kept_.empty() && kept_.front().first <= done; kept_.pop_front()) gone->push_back(std::move(kept_.front().second));
  wake_at_ = kept_.empty() ? kNobody : kept_.front().first;
  progress_.notify_all();  // who waits for less than wake_at_ says so again
}

void TaskStream::KeepUntilDone(const std::shared_ptr<void>& thing) {
  const std::lock_guard lock(mutex_);
  if (done_.load(std::memory_order_relaxed) == submitted_) return;
  kept_.emplace_back(submitted_, thing);
  wake_at_ = std::min(wake_at_, kept_.front().first);
}

void TaskStream::KeepUntilAllDone(std::shared_ptr<void> thing) {
  std::vector<Ref<TaskStream>> all;
  {
    const std::lock_guard lock(streams().mutex);
    for (TaskStream* stream : streams().all) {
      if (stream->TryAddRef()) all.push_back(Ref<TaskStream>::Adopt(stream));
    }
  }
  for (const auto& stream : all) stream->KeepUntilDone(thing);
}

// Runs at most `turns` tasks and none once `until` tasks are done. Precondition: this thread has put the state to
// running and an active reference is held. Leaves the stream idle, parked or ready.
void TaskStream::Drain(int turns, uint64_t until, bool caller) {
  bool idle = false;
  Kept gone;
  std::unique_lock lock(mutex_);
  while (true) {
    if (!current_) {
      // An abort between the claim of this stream and the look at its queue leaves dropped tasks with nobody before them.
      if (dropped_behind_ > 0) Advance(std::exchange(dropped_behind_, 0), &gone);
      if (queue_.empty()) {
        state_ = State::kIdle;
        idle = true;
        break;
      }
      if (turns <= 0 || done_.load(std::memory_order_relaxed) >= until) {
        MakeReady(lock);
        return;
      }
      current_ = std::move(queue_.front());
      queue_.pop_front();
    }
    --turns;
    wake_pending_ = false;
    const bool stopping = !aborted_.ok();
    const bool drop = !stopping && stop_on_failure_ && !failure_.ok();
    const Status why = stopping ? aborted_ : drop ? failure_ : Status();
    lock.unlock();
    gone.clear();

    Outcome outcome;
    if (!drop) {
      CardView view = View(current_->CostNs());
      TaskContext context{view, waker_, stopping};
      outcome = RunGuarded(*current_, context, caller);
    }
    const bool parked = outcome.step == Outcome::Step::kParked && !stopping;
    if (drop || (outcome.step == Outcome::Step::kParked && stopping)) current_->Drop(why);
    if (!parked) current_.reset();

    lock.lock();
    if (parked) {
      if (wake_pending_ || !aborted_.ok()) continue;
      state_ = State::kParked;
      break;
    }
    blocked_on_ = {};
    Account(std::move(outcome.status), &gone);
  }
  lock.unlock();
  gone.clear();
  if (idle) Release();
}

bool TaskStream::Idle() const {
  const std::lock_guard lock(mutex_);
  return done_.load(std::memory_order_acquire) == submitted_;
}

uint64_t TaskStream::submitted() const {
  const std::lock_guard lock(mutex_);
  return submitted_;
}

Status TaskStream::Failure() const {
  const std::lock_guard lock(mutex_);
  return aborted_.ok() ? failure_ : aborted_;
}

Status TaskStream::AbortReason() const {
  const std::lock_guard lock(mutex_);
  return aborted_;
}

void TaskStream::SetStopOnFailure(bool stop) {
  const std::lock_guard lock(mutex_);
  stop_on_failure_ = stop;
}

void TaskStream::SetCoreLimit(int kind, uint32_t cores, uint32_t all) {
  settings_.core_limit[kind].store(cores, std::memory_order_relaxed);
  const std::lock_guard lock(mutex_);
  core_parts_[kind] = cores == 0 ? 1000 : std::max<int>(1, static_cast<int>(uint64_t{1000} * cores / all));
  // A kernel of ours uses threads as both kinds of cores: the tighter limit holds.
  core_part_.store(std::min(core_parts_[0], core_parts_[1]), std::memory_order_relaxed);
}

bool TaskStream::stop_on_failure() const {
  const std::lock_guard lock(mutex_);
  return stop_on_failure_;
}

void TaskStream::SetBlockedOn(Ref<TaskStream> other) {
  const std::lock_guard lock(mutex_);
  std::swap(blocked_on_, other);
}

// Runs one step of this stream, or of the stream it waits for at the end of the chain; false when there is nothing that
// this thread could run.
bool TaskStream::Help(uint64_t until) {
  Ref<TaskStream> stream = Ref<TaskStream>::Share(this);
  for (int depth = 0; stream && depth < kHelpDepth; ++depth) {
    if (stream->Claim()) {
      stream->DrainTimed(stream.get() == this ? kEndless : 1, stream.get() == this ? until : kNobody);
      return true;
    }
    Ref<TaskStream> next;
    {
      const std::lock_guard lock(stream->mutex_);
      next = stream->blocked_on_;
    }
    stream = std::move(next);
  }
  return false;
}

void TaskStream::Throttle() {
  const device::meters::HostWait wait(card());
  while (true) {
    uint64_t until = 0;
    {
      std::unique_lock lock(mutex_);
      if (queue_.size() <= kDepth / 2 || state_ == State::kParked || state_ == State::kIdle) return;
      until = done_.load(std::memory_order_relaxed) + queue_.size() - kDepth / 2;
      if (state_ == State::kRunning) {
        wake_at_ = std::min(wake_at_, until);
        progress_.wait_for(lock, kThrottleNap);
        continue;
      }
    }
    if (Claim()) DrainTimed(kEndless, until);
  }
}

Status TaskStream::WaitFor(uint64_t until, Deadline deadline) {
  if (done_.load(std::memory_order_acquire) >= until) return {};
  const device::meters::HostWait wait(card());
  const bool help = deadline.never() || Exiting();
  if (Exiting()) deadline = deadline.left() < kExitPatience ? deadline : Deadline::In(kExitPatience);
  bool timed_out = false, slept = false;
  while (done_.load(std::memory_order_acquire) < until) {
    if (help && Help(until)) continue;
    if (deadline.passed()) {
      timed_out = true;
      break;
    }
    for (int i = 0; i < kSyncSpinPauses && done_.load(std::memory_order_acquire) < until; ++i) Pause();
    std::unique_lock lock(mutex_);
    slept = true;
    if (help) ++helpers_;
    const auto moved = [&] {
      if (done_.load(std::memory_order_relaxed) >= until || (help && state_ == State::kReady)) return true;
      wake_at_ = std::min(wake_at_, until);
      return false;
    };
    if (deadline.never()) {
      progress_.wait(lock, moved);
    } else {
      progress_.wait_until(lock, deadline.at(), moved);
    }
    if (help) --helpers_;
  }
  if (help && slept) pool_.Kick();  // this thread may have been counted on to run the stream
  if (!timed_out) return {};
  return Error(Code::kSyncTimeout, "Stream {} of card {} was not done within the time limit: {} of {} tasks have run.",
               options_.id, card(), done_.load(std::memory_order_relaxed), submitted())
      .Remedy("Wait longer, or look for a task that waits for something that never comes.");
}

Status TaskStream::WaitIdle(Deadline deadline) {
  NPU_TRY(WaitFor(submitted(), deadline));
  if (strict::On()) strict::Synchronized(line());
  return {};
}

Status TaskStream::Synchronize(Deadline deadline) {
  NPU_TRY(WaitIdle(deadline));
  const std::lock_guard lock(mutex_);
  if (!aborted_.ok()) return aborted_;
  return std::exchange(failure_, Status());
}

void TaskStream::Abort(const Status& why) {
  std::deque<TaskPtr> dropped;
  {
    const std::lock_guard lock(mutex_);
    if (aborted_.ok()) aborted_ = why;
    dropped.swap(queue_);
  }
  for (auto& task : dropped) task->Drop(why);
  const size_t count = dropped.size();
  dropped.clear();
  Kept gone;
  std::unique_lock lock(mutex_);
  if (state_ == State::kRunning || current_) {  // in this order: a running thread owns current_
    dropped_behind_ += count;
  } else {
    Advance(count, &gone);
  }
  if (state_ == State::kParked) {
    MakeReady(lock);
  } else if (state_ == State::kRunning) {
    wake_pending_ = true;
  }
  if (lock.owns_lock()) lock.unlock();
  gone.clear();
}

}  // namespace npu::rt
