// A Task is one command of a stream as a value: it owns all it needs and is run by whichever thread serves the stream.
//
//   struct CopyTask final : Task {
//     Outcome Run(TaskContext&) override { std::memcpy(dst, src, bytes); return Outcome::Done(); }
//   };
//
// A task never blocks its worker. One that must wait (event, notify, peer, host callback) hands a Waker to whoever will
// signal and returns Parked(); its stream is queued again by Waker::Wake, also when the signal comes from another process.
// Wake-ups may be spurious: Run is called again from the start and tests its condition again. Run is never called by two
// threads at once and no lock of ours is held while it runs.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "base/status/status.h"
#include "base/task/parallel.h"

namespace npu {

// Wakes one parked stream. Copies are cheap; may outlive the stream; any thread may call it; waking twice is harmless.
class Waker {
 public:
  class Target {
   public:
    virtual ~Target() = default;
    virtual void Wake() = 0;
  };
  Waker() = default;
  explicit Waker(std::shared_ptr<Target> target) : target_(std::move(target)) {}
  void Wake() const {
    if (target_) target_->Wake();
  }

 private:
  std::shared_ptr<Target> target_;
};

struct Outcome {
  enum class Step : uint8_t { kDone, kParked };
  Step step = Step::kDone;
  Status status;  // how it went, when done

  static Outcome Done(Status status = {}) { return {Step::kDone, std::move(status)}; }
  static Outcome Parked() { return {Step::kParked, {}}; }
};

struct TaskContext {
  Parallel& parallel;    // the threads of this card
  const Waker& waker;    // wakes this task's stream; copy it before returning Parked
  bool stopping = false;  // the stream is being aborted: a task that waits must finish with an error now
};

// What a task does to its card, for the card's figures: units and flows as device/figures/layout.h numbers them.
struct TaskWork {
  static constexpr uint8_t kUncounted = 0xff;
  const char* op = nullptr;  // the operator; static text
  uint8_t unit = kUncounted;
  uint8_t flow = 0;
  uint64_t bytes = 0;
  bool counted() const { return unit != kUncounted; }
};

class Task {
 public:
  virtual ~Task() = default;
  virtual Outcome Run(TaskContext& context) = 0;
  // Called instead of Run when the task will never run (its stream failed before it, or was aborted): whoever waits for
  // its effect must learn `why`. The task is destroyed next.
  virtual void Drop(const Status& why) { static_cast<void>(why); }
  // Static text, for traces and errors, e.g. "aclnnAdd".
  virtual const char* Name() const = 0;
  // Rough run time in ns; below about 3000 an idle stream runs it on the calling thread. 0 means unknown: never inline.
  virtual uint32_t CostNs() const { return 0; }
  // Asked before the first run, and after a run that parked. Waits and host callbacks use no unit of the card.
  virtual TaskWork Work() const { return {}; }
};

using TaskPtr = std::unique_ptr<Task>;

}  // namespace npu
