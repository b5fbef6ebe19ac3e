// The stream that runs: a FIFO of tasks served by whichever thread claims it.
//
// States: idle (nothing queued), ready (work queued, nobody on it), running (one thread inside), parked (the front task
// waits for a Waker). A ready stream is in its pool's queue; a worker or a synchronising thread claims it. Small work on an
// idle stream runs on the enqueuing thread, which claims it in the same step.
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "runtime/stream/stream.h"
#include "runtime/workers/pool.h"

namespace npu::rt {

// Work estimated below this runs inline on an idle stream: the price of waking a worker (docs/performance.md, Runtime).
inline constexpr uint32_t kInlineNs = 3000;

// What clients set on a stream and read back.
struct StreamSettings {
  std::atomic<uint32_t> overflow_switch{0};
  std::atomic<uint32_t> user_tag{0};
  std::atomic<uint32_t> cache_op_info{0};
  std::atomic<uint32_t> core_limit[2] = {0, 0};  // cube, vector; 0 is the device's
};

class TaskStream final : public Stream {
 public:
  struct Options {
    Context* context = nullptr;
    void (*release_context)(Context*) = nullptr;  // gives back the stream's count of its context
    uint32_t id = 0;
    uint32_t priority = 0;
    uint32_t flags = 0;
    bool saturates = false;
  };
  static Ref<TaskStream> Make(Pool& pool, const Options& options);

  // Any thread.
  Status Enqueue(TaskPtr task) override;
  Status Launch(void* self, RunNow run, MakeTask make, const Quick& quick) override;
  Status Synchronize(Deadline deadline) override;
  bool Idle() const override;
  Context& context() const override { return *options_.context; }
  int card() const override { return pool_.card(); }
  uint32_t id() const override { return options_.id; }
  uint32_t priority() const { return options_.priority; }
  uint32_t flags() const { return options_.flags; }
  StreamSettings& settings() { return settings_; }
  // Kept by the context as long as the stream's switch is on.
  void NoteOverflow() override;

  // Cores of a kind (limits.h) that kernels of this stream may use, of `all` that the card has; 0: no limit of its own.
  void SetCoreLimit(int kind, uint32_t cores, uint32_t all);

  // The failure that the next synchronise will report; ok when there is none.
  Status Failure() const;
  // Why the stream was aborted; ok while it was not.
  Status AbortReason() const;
  // Waits until nothing is queued, without taking the failure.
  Status WaitIdle(Deadline deadline);

  // With stop, tasks behind a failed one are dropped until the failure has been reported; without, they run.
  void SetStopOnFailure(bool stop);
  bool stop_on_failure() const;

  // Drops what is queued, makes a waiting task finish, and answers `why` to everything from now on. Does not wait.
  void Abort(const Status& why);

  // The front task waits for `other`, so that a synchronising thread can run that one. Called by the task inside Run.
  void SetBlockedOn(Ref<TaskStream> other);

  // As Enqueue; `*position` is the task's number on this stream, from 1.
  Status Submit(TaskPtr task, uint64_t* position);
  // Number of the last task given to this stream.
  uint64_t submitted() const;
  // Waits until so many tasks are done; takes no failure. Without a limit the thread helps; with one it leaves the work to
  // the workers, since a task that it ran itself could outlast the limit.
  Status WaitFor(uint64_t until, Deadline deadline);

  // Holds `thing` until the tasks given so far are done; not at all when they are.
  void KeepUntilDone(const std::shared_ptr<void>& thing);
  // The same for all streams of the process: how memory that queued work may still use is given back without waiting.
  static void KeepUntilAllDone(std::shared_ptr<void> thing);

  // A producer that is this far ahead is slowed down: it runs tasks itself or sleeps a little, as long as the stream makes
  // progress. It never waits for a parked stream, which may be waiting for what the producer is about to queue.
  static constexpr size_t kDepth = 4096;

  // For the pool: runs tasks if the stream is still ready.
  void Serve();

 private:
  enum class State : uint8_t { kIdle, kReady, kRunning, kParked };
  class Target;
  static constexpr uint64_t kNobody = ~uint64_t{0};

  TaskStream(Pool& pool, const Options& options);
  ~TaskStream() override;

  void OnWake();
  bool Claim();
  // `caller`: this is the thread that gave the stream its work, which goes on with its own as soon as that is done.
  void Drain(int turns, uint64_t until, bool caller = false);
  void DrainTimed(int turns, uint64_t until);
  // What was kept and is no longer needed. Let go of without the lock.
  using Kept = std::vector<std::shared_ptr<void>>;
  void Account(Status status, Kept* gone);
  void Advance(uint64_t tasks, Kept* gone);
  void MakeReady(std::unique_lock<std::mutex>& lock);
  bool Help(uint64_t until);
  void Throttle();
  Outcome RunGuarded(Task& task, TaskContext& context, bool caller);
  // While a card hangs: why a task need not wait any longer; ok when it must.
  Status GiveUp() const;

  // The card's threads for a task of that cost. Work below kWorthSplittingNs is shared only after its first block has shown that
  // the estimate was wrong.
  CardView View(uint32_t cost_ns) const {
    return {pool_.parallel(), core_part_.load(std::memory_order_relaxed), cost_ns != 0 && cost_ns < kWorthSplittingNs};
  }

  Pool& pool_;
  std::atomic<int> core_part_{1000};  // thousandths of the card's workers that kernels of this stream may use
  const Options options_;
  StreamSettings settings_;
  std::shared_ptr<Target> target_;
  Waker waker_;

  mutable std::mutex mutex_;  // held for a few instructions, never while a task runs
  std::condition_variable progress_;
  std::deque<TaskPtr> queue_;
  TaskPtr current_;  // touched without the lock only by the thread in state running
  State state_ = State::kIdle;
  bool wake_pending_ = false;    // woken while the task was still deciding to park
  bool in_pool_queue_ = false;
  bool stop_on_failure_ = false;
  int core_parts_[2] = {1000, 1000};  // thousandths of the card's cores, by kind
  int helpers_ = 0;              // threads asleep in WaitFor that will run this stream when it becomes ready
  uint64_t wake_at_ = kNobody;   // the smallest count of done tasks that somebody waits for
  uint64_t dropped_behind_ = 0;  // tasks an abort dropped behind the running one; they count as done with it
  Status failure_;               // first failed task since the last report
  Status aborted_;               // sticky
  Ref<TaskStream> blocked_on_;
  uint64_t submitted_ = 0;
  uint32_t submitter_ = 0;  // thread that queued last
  std::deque<std::pair<uint64_t, std::shared_ptr<void>>> kept_;  // count of done tasks that lets go of it → thing
  std::atomic<uint64_t> done_{0};
};

}  // namespace npu::rt
