// A stream runs its tasks one after another, on whichever worker of its card is free.
//
//   NPU_ASSIGN(Ref<Stream> stream, ResolveStream(raw, "aclrtSynchronizeStream"));
//   NPU_TRY(stream->Enqueue(std::make_unique<CopyTask>(dst, src, bytes)));
//   NPU_TRY(stream->Synchronize(Deadline::Never()));     // reports the first failed task
//
// Enqueue and Launch may be called from any thread. A task runs with no lock of ours held.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>

#include "base/handle/ref.h"
#include "base/status/status.h"
#include "base/task/task.h"
#include "base/time/deadline.h"
#include "device/strict/strict.h"

namespace npu::rt {

class Context;

class Stream {
 public:
  // Queues the task behind what is there. Fails when the stream is aborted or the process is shutting down.
  virtual Status Enqueue(TaskPtr task) = 0;

  // What Launch is told about the work: rough run time in ns, and what it does to the card.
  struct Quick {
    uint32_t cost_ns;
    TaskWork work;
    Quick(uint32_t cost, const TaskWork& does = {}) : cost_ns(cost), work(does) {}  // NOLINT: a cost alone will do
  };

  // The quick door for work that needs no Task object when it may run at once: if the stream is idle, nothing it waits
  // for is pending, no other thread is inside it and its cost is below the price of a hand-off, `run` is called here and
  // now with the card's threads; otherwise `make` is asked for a Task and that is queued.
  using RunNow = Outcome (*)(void* self, TaskContext& context);
  using MakeTask = TaskPtr (*)(void* self);
  virtual Status Launch(void* self, RunNow run, MakeTask make, const Quick& quick) = 0;

  // Runs ready tasks of this stream on the calling thread, then waits. First failed task, or kSyncTimeout.
  virtual Status Synchronize(Deadline deadline) = 0;
  virtual bool Idle() const = 0;  // all tasks so far are done

  virtual Context& context() const = 0;
  virtual int card() const = 0;   // physical
  virtual uint32_t id() const = 0;
  strict::Line& line() { return line_; }  // for strict memory
  // Results of operators stay in the range of their type instead of becoming infinite; fixed when the stream is made.
  bool saturates() const { return saturates_; }
  // An operator's result was beyond that range.
  virtual void NoteOverflow() = 0;

  void AddRef() { refs_.fetch_add(1, std::memory_order_relaxed); }
  // For weak holders: false once the last reference is gone.
  bool TryAddRef() {
    uint32_t refs = refs_.load(std::memory_order_relaxed);
    while (refs != 0) {
      if (refs_.compare_exchange_weak(refs, refs + 1, std::memory_order_acquire, std::memory_order_relaxed)) return true;
    }
    return false;
  }
  void Release() {
    if (refs_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }

 protected:
  explicit Stream(bool saturates = false) : saturates_(saturates) {}
  virtual ~Stream() = default;

 private:
  std::atomic<uint32_t> refs_{1};
  const bool saturates_;
  strict::Line line_;
};

// A client's stream word: null is the default stream of the current context (kContextNull without one). Foreign and
// destroyed handles answer kInvalidHandle, a stream of another context kStreamContext; the text names `function`.
Result<Ref<Stream>> ResolveStream(void* raw, const char* function);

}  // namespace npu::rt
