#include "runtime/callback/callback.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "base/os/thread.h"
#include "device/strict/strict.h"
#include "runtime/workers/process.h"

namespace npu::rt {
namespace {

constexpr auto kUnsubscribePatience = std::chrono::seconds(5);

// One function to call, shared between the stream's task and the thread that calls it: either may go first.
struct Call {
  enum class State : uint8_t { kWaiting, kRunning, kDone, kAbandoned };
  HostFunction function;
  void* data;
  const TaskStream* stream;
  Waker waker;
  std::atomic<State> state{State::kWaiting};

  void Run() {
    State waiting = State::kWaiting;
    if (!state.compare_exchange_strong(waiting, State::kRunning, std::memory_order_acq_rel)) return;
    // At exit the interpreter or objects behind the function may be gone.
    if (!Exiting()) {
      std::optional<strict::Callback> followed;
      if (strict::On()) followed.emplace();
      function(data);
    }
    state.store(State::kDone, std::memory_order_release);
    waker.Wake();
  }
  // It will not be called any more, unless it has begun.
  void Abandon() {
    State waiting = State::kWaiting;
    if (state.compare_exchange_strong(waiting, State::kAbandoned, std::memory_order_acq_rel)) waker.Wake();
  }
  bool Over() const {
    const State now = state.load(std::memory_order_acquire);
    return now == State::kDone || now == State::kAbandoned;
  }
};

// Calls in order, for one thread that serves them.
class Line {
 public:
  void Push(std::shared_ptr<Call> call) {
    {
      const std::lock_guard lock(mutex_);
      calls_.push_back(std::move(call));
    }
    changed_.notify_all();
  }
  // Runs what is there, waiting for the first; the number of calls.
  int Serve(Deadline deadline) {
    int served = 0;
    std::unique_lock lock(mutex_);
    const auto any = [this] { return !calls_.empty(); };
    if (deadline.never()) {
      changed_.wait(lock, any);
    } else if (!changed_.wait_until(lock, deadline.at(), any)) {
      return 0;
    }
    while (!calls_.empty()) {
      const std::shared_ptr<Call> call = std::move(calls_.front());
      calls_.pop_front();
      running_ = call->stream;
      server_ = pthread_self();
      lock.unlock();
      call->Run();
      ++served;
      lock.lock();
      running_ = nullptr;
      changed_.notify_all();
    }
    return served;
  }
  // What is queued for `stream` will not be called.
  void Abandon(const TaskStream* stream) {
    std::deque<std::shared_ptr<Call>> rest;
    {
      const std::lock_guard lock(mutex_);
      rest = TakeOf(stream);
    }
    for (const auto& call : rest) call->Abandon();
  }
  // Until nothing of `stream` is queued or running; what is left then is finished without being called.
  void Leave(const TaskStream* stream, Deadline deadline) {
    std::deque<std::shared_ptr<Call>> rest;
    {
      std::unique_lock lock(mutex_);
      const auto free = [&] {
        const bool inside = running_ == stream && !pthread_equal(server_, pthread_self());
        return !inside && std::none_of(calls_.begin(), calls_.end(), [&](const auto& c) { return c->stream == stream; });
      };
      changed_.wait_until(lock, deadline.at(), free);
      rest = TakeOf(stream);
    }
    for (const auto& call : rest) call->Abandon();
  }

 private:
  std::deque<std::shared_ptr<Call>> TakeOf(const TaskStream* stream) {
    std::deque<std::shared_ptr<Call>> taken;
    for (auto call = calls_.begin(); call != calls_.end();) {
      if ((*call)->stream == stream) {
        taken.push_back(std::move(*call));
        call = calls_.erase(call);
      } else {
        ++call;
      }
    }
    return taken;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Call>> calls_;
  const TaskStream* running_ = nullptr;
  pthread_t server_{};
};

class CallTask final : public Task {
 public:
  CallTask(std::shared_ptr<Call> call, std::shared_ptr<Line> line, bool block)
      : call_(std::move(call)), line_(std::move(line)), block_(block) {}
  Outcome Run(TaskContext& context) override {
    if (call_->Over()) return Outcome::Done();
    if (context.stopping) {
      call_->Abandon();
      return Outcome::Done(Error(Code::kStreamAbort, "A host function was abandoned: its stream was aborted."));
    }
    if (!line_) return Outcome::Parked();
    if (block_) call_->waker = context.waker;
    std::exchange(line_, nullptr)->Push(call_);
    return block_ ? Outcome::Parked() : Outcome::Done();
  }
  const char* Name() const override { return "host function"; }

 private:
  std::shared_ptr<Call> call_;
  std::shared_ptr<Line> line_;  // null once pushed
  const bool block_;
};

std::shared_ptr<Call> MakeCall(HostFunction function, void* data, const TaskStream& stream) {
  auto call = std::make_shared<Call>();
  call->function = function;
  call->data = data;
  call->stream = &stream;
  return call;
}

// Who serves a stream's callbacks.
struct Binding {
  uint64_t thread_id = 0;   // of the subscribed thread, or
  bool host_functions = false;
};

struct Registry {
  std::mutex mutex;
  std::map<const TaskStream*, Binding> bindings;
  std::map<uint64_t, std::shared_ptr<Line>> lines;   // of subscribed threads
  std::map<uint64_t, int> streams_of;                // how many streams a thread serves
  std::map<int, std::shared_ptr<Line>> host_lines;   // by card
};
Registry& registry() {
  static auto* r = new Registry;
  return *r;
}

Status AlreadyBound(const TaskStream& stream, const char* how, const char* function) {
  return Error(Code::kStreamSubscribed, "{}: stream {} is {}.", function, stream.id(), how)
      .Remedy("Use either aclrtSubscribeReport with aclrtLaunchCallback or aclrtLaunchHostFunc on a stream.");
}

Result<std::shared_ptr<Line>> HostLine(int card) {
  auto& line = registry().host_lines[card];
  if (line) return line;
  auto made = std::make_shared<Line>();
  NPU_TRY(os::Detach("npu-host", [made] {
    while (true) made->Serve(Deadline::Never());
  }));
  line = made;
  return line;
}

}  // namespace

Status Subscribe(uint64_t thread_id, TaskStream& stream, const char* function) {
  Registry& r = registry();
  const std::lock_guard lock(r.mutex);
  const auto [place, fresh] = r.bindings.try_emplace(&stream, Binding{thread_id, false});
  if (!fresh) return AlreadyBound(stream, place->second.host_functions ? "used by aclrtLaunchHostFunc" : "bound to a thread already", function);
  auto& line = r.lines[thread_id];
  if (!line) line = std::make_shared<Line>();
  ++r.streams_of[thread_id];
  return {};
}

Status Unsubscribe(uint64_t thread_id, TaskStream& stream, const char* function) {
  Registry& r = registry();
  std::shared_ptr<Line> line;
  {
    const std::lock_guard lock(r.mutex);
    const auto found = r.bindings.find(&stream);
    if (found == r.bindings.end()) return AlreadyBound(stream, "not bound to a thread", function);
    if (found->second.host_functions) return AlreadyBound(stream, "used by aclrtLaunchHostFunc", function);
    if (found->second.thread_id != thread_id) {
      return Error(Code::kThreadNotSubscribed, "{}: stream {} is bound to another thread.", function, stream.id())
          .Remedy("Pass the id that was given to aclrtSubscribeReport.");
    }
    line = r.lines[thread_id];
  }
  line->Leave(&stream, Deadline::In(kUnsubscribePatience));
  const std::lock_guard lock(r.mutex);
  r.bindings.erase(&stream);
  if (--r.streams_of[thread_id] <= 0) {
    r.streams_of.erase(thread_id);
    r.lines.erase(thread_id);
  }
  return {};
}

Status QueueCallback(HostFunction call, void* data, bool block, TaskStream& stream, const char* function) {
  std::shared_ptr<Line> line;
  {
    Registry& r = registry();
    const std::lock_guard lock(r.mutex);
    const auto found = r.bindings.find(&stream);
    if (found == r.bindings.end()) {
      return Error(Code::kStreamNoCallback, "{}: no thread is subscribed for stream {}.", function, stream.id())
          .Remedy("Call aclrtSubscribeReport first.");
    }
    if (found->second.host_functions) return AlreadyBound(stream, "used by aclrtLaunchHostFunc", function);
    line = r.lines[found->second.thread_id];
  }
  return stream.Enqueue(std::make_unique<CallTask>(MakeCall(call, data, stream), std::move(line), block));
}

Status ProcessCallbacks(Deadline deadline, const char* function) {
  std::shared_ptr<Line> line;
  {
    Registry& r = registry();
    const std::lock_guard lock(r.mutex);
    auto found = r.lines.find(static_cast<uint64_t>(pthread_self()));
    if (found == r.lines.end()) found = r.lines.find(static_cast<uint64_t>(gettid()));
    if (found == r.lines.end()) {
      return Error(Code::kThreadNotSubscribed, "{}: the calling thread is not subscribed.", function)
          .Remedy("Pass its id to aclrtSubscribeReport first.");
    }
    line = found->second;
  }
  if (line->Serve(deadline) > 0) return {};
  return Error(Code::kReportTimeout, "{}: no callback came within the time limit.", function).Remedy("Call it again; this is no fault.");
}

void ForgetCallbacks(const TaskStream& stream, bool abandon) {
  Registry& r = registry();
  const std::lock_guard lock(r.mutex);
  const auto found = r.bindings.find(&stream);
  if (found == r.bindings.end()) return;
  const uint64_t thread_id = found->second.thread_id;
  const bool counted = !found->second.host_functions;
  r.bindings.erase(found);
  if (counted && abandon) {
    if (const auto line = r.lines.find(thread_id); line != r.lines.end()) line->second->Abandon(&stream);
  }
  if (counted && --r.streams_of[thread_id] <= 0) {
    r.streams_of.erase(thread_id);
    r.lines.erase(thread_id);
  }
}

Status QueueHostFunction(HostFunction call, void* data, TaskStream& stream, const char* function) {
  std::shared_ptr<Line> line;
  {
    Registry& r = registry();
    const std::lock_guard lock(r.mutex);
    const auto [place, fresh] = r.bindings.try_emplace(&stream, Binding{0, true});
    if (!fresh && !place->second.host_functions) return AlreadyBound(stream, "bound to a thread by aclrtSubscribeReport", function);
    NPU_ASSIGN(line, HostLine(stream.card()));
  }
  return stream.Enqueue(std::make_unique<CallTask>(MakeCall(call, data, stream), std::move(line), /*block=*/true));
}

}  // namespace npu::rt
