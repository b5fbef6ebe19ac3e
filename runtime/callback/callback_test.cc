#include "runtime/callback/callback.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <functional>
#include <mutex>
#include <thread>

namespace npu::rt {
namespace {

using std::chrono::milliseconds;
const char* const kFn = "test";
Deadline Soon() { return Deadline::Never(); }

struct FunctionTask final : Task {
  explicit FunctionTask(std::function<void()> f) : body(std::move(f)) {}
  Outcome Run(TaskContext&) override {
    body();
    return Outcome::Done();
  }
  const char* Name() const override { return "test"; }
  std::function<void()> body;
};
TaskPtr Do(std::function<void()> f) { return std::make_unique<FunctionTask>(std::move(f)); }

// The client's thread that serves callbacks, as torch_npu's does.
class Server {
 public:
  Server() : thread_([this] {
    id_ = static_cast<uint64_t>(pthread_self());
    while (!stop_) static_cast<void>(ProcessCallbacks(Deadline::In(milliseconds(10)), kFn));
  }) {
    while (id_ == 0) std::this_thread::yield();
  }
  ~Server() {
    stop_ = true;
    thread_.join();
  }
  uint64_t id() const { return id_; }

 private:
  std::atomic<uint64_t> id_{0};
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

struct Seen {
  std::atomic<int> calls{0};
  std::atomic<pthread_t> where{};
};
void Count(void* data) {
  auto* seen = static_cast<Seen*>(data);
  seen->where = pthread_self();
  ++seen->calls;
}

TEST(Callback, RunsOnTheSubscribedThreadAndHoldsTheStream) {
  Pool pool(0, 1);
  auto stream = TaskStream::Make(pool, {});
  Server server;
  ASSERT_TRUE(Subscribe(server.id(), *stream, kFn).ok());
  Seen seen;
  int calls_before_next = -1;
  ASSERT_TRUE(QueueCallback(Count, &seen, true, *stream, kFn).ok());
  ASSERT_TRUE(stream->Enqueue(Do([&] { calls_before_next = seen.calls; })).ok());
  EXPECT_TRUE(stream->Synchronize(Soon()).ok());
  EXPECT_EQ(calls_before_next, 1);
  EXPECT_EQ(static_cast<uint64_t>(seen.where.load()), server.id());
  EXPECT_TRUE(Unsubscribe(server.id(), *stream, kFn).ok());
}

TEST(Callback, BindingRules) {
  Pool pool(0, 1);
  auto stream = TaskStream::Make(pool, {}), other = TaskStream::Make(pool, {});
  Server server;
  Seen seen;
  EXPECT_EQ(AclCode(QueueCallback(Count, &seen, true, *stream, kFn).code()), 107015);
  EXPECT_EQ(AclCode(Unsubscribe(server.id(), *stream, kFn).code()), 107011);
  ASSERT_TRUE(Subscribe(server.id(), *stream, kFn).ok());
  EXPECT_EQ(AclCode(Subscribe(server.id(), *stream, kFn).code()), 107011);
  EXPECT_EQ(AclCode(Unsubscribe(server.id() + 1, *stream, kFn).code()), 107012);
  EXPECT_EQ(AclCode(QueueHostFunction(Count, &seen, *stream, kFn).code()), 107011);
  ASSERT_TRUE(QueueHostFunction(Count, &seen, *other, kFn).ok());
  EXPECT_EQ(AclCode(Subscribe(server.id(), *other, kFn).code()), 107011);
  EXPECT_TRUE(other->Synchronize(Soon()).ok());
  EXPECT_EQ(seen.calls, 1);
  EXPECT_EQ(AclCode(ProcessCallbacks(Soon(), kFn).code()), 107012);
  ASSERT_TRUE(Unsubscribe(server.id(), *stream, kFn).ok());
  ForgetCallbacks(*other, false);
}

TEST(Callback, ProcessingWaitsForItsLimit) {
  Pool pool(0, 1);
  auto stream = TaskStream::Make(pool, {});
  const auto self = static_cast<uint64_t>(pthread_self());
  ASSERT_TRUE(Subscribe(self, *stream, kFn).ok());
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(AclCode(ProcessCallbacks(Deadline::In(milliseconds(30)), kFn).code()), 507012);
  EXPECT_GE(std::chrono::steady_clock::now() - start, milliseconds(30));
  ASSERT_TRUE(Unsubscribe(self, *stream, kFn).ok());
}

// Python: the main thread holds the interpreter's lock while it synchronises one stream; callbacks of another want it.
TEST(Callback, MayWantALockThatASynchronisingThreadHolds) {
  Pool pool(0, 1);
  auto busy = TaskStream::Make(pool, {}), calling = TaskStream::Make(pool, {}), hosting = TaskStream::Make(pool, {});
  Server server;
  ASSERT_TRUE(Subscribe(server.id(), *calling, kFn).ok());
  static std::mutex interpreter;
  static std::atomic<int> calls;
  calls = 0;
  const auto want = [](void*) {
    const std::lock_guard lock(interpreter);
    ++calls;
  };
  {
    const std::lock_guard held(interpreter);
    for (int i = 0; i < 20; ++i) {
      ASSERT_TRUE(QueueCallback(want, nullptr, true, *calling, kFn).ok());
      ASSERT_TRUE(QueueHostFunction(want, nullptr, *hosting, kFn).ok());
      ASSERT_TRUE(busy->Enqueue(Do([] {})).ok());
      ASSERT_TRUE(busy->Synchronize(Soon()).ok());
    }
    // The callbacks' own streams cannot finish, but waiting for them ends at the limit and nothing else is stuck.
    EXPECT_EQ(calling->Synchronize(Deadline::In(milliseconds(20))).code(), Code::kSyncTimeout);
  }
  EXPECT_TRUE(calling->Synchronize(Soon()).ok());
  EXPECT_TRUE(hosting->Synchronize(Soon()).ok());
  EXPECT_EQ(calls, 40);
  ASSERT_TRUE(Unsubscribe(server.id(), *calling, kFn).ok());
  ForgetCallbacks(*hosting, false);
}

TEST(Callback, AnAbandonedFunctionIsNotCalledLater) {
  Pool pool(0, 1);
  auto first = TaskStream::Make(pool, {}), second = TaskStream::Make(pool, {});
  struct Hold {
    std::atomic<bool> inside{false}, go{false};
  } hold;
  const auto wait = [](void* data) {
    auto* h = static_cast<Hold*>(data);
    h->inside = true;
    while (!h->go) std::this_thread::yield();
  };
  ASSERT_TRUE(QueueHostFunction(wait, &hold, *first, kFn).ok());
  while (!hold.inside) std::this_thread::yield();
  // The card's thread is inside a function: what comes now waits in line.
  Seen abandoned, kept;
  ASSERT_TRUE(QueueHostFunction(Count, &abandoned, *second, kFn).ok());
  ASSERT_TRUE(second->Enqueue(Do([] {})).ok());
  for (int i = 0; i < 20; ++i) std::this_thread::sleep_for(milliseconds(1));  // until the stream has handed it over
  second->Abort(Error(Code::kStreamAbort, "over"));
  EXPECT_EQ(second->Synchronize(Soon()).code(), Code::kStreamAbort);
  hold.go = true;
  ASSERT_TRUE(first->Synchronize(Soon()).ok());
  ASSERT_TRUE(QueueHostFunction(Count, &kept, *first, kFn).ok());
  ASSERT_TRUE(first->Synchronize(Soon()).ok());
  EXPECT_EQ(kept.calls, 1);
  EXPECT_EQ(abandoned.calls, 0);
  ForgetCallbacks(*first, true);
  ForgetCallbacks(*second, true);
}

TEST(Callback, AStreamDestroyedByForceTakesItsCallbacksAlong) {
  Pool pool(0, 1);
  auto stream = TaskStream::Make(pool, {});
  const auto self = static_cast<uint64_t>(pthread_self());
  ASSERT_TRUE(Subscribe(self, *stream, kFn).ok());
  auto other = TaskStream::Make(pool, {});
  ASSERT_TRUE(Subscribe(self, *other, kFn).ok());
  Seen gone, stays;
  ASSERT_TRUE(QueueCallback(Count, &gone, false, *stream, kFn).ok());
  ASSERT_TRUE(QueueCallback(Count, &stays, false, *other, kFn).ok());
  ASSERT_TRUE(stream->Synchronize(Soon()).ok());
  ASSERT_TRUE(other->Synchronize(Soon()).ok());
  ForgetCallbacks(*stream, true);
  ASSERT_TRUE(ProcessCallbacks(Deadline::In(milliseconds(200)), kFn).ok());
  EXPECT_EQ(gone.calls, 0);
  EXPECT_EQ(stays.calls, 1);
  ForgetCallbacks(*other, true);
}

TEST(Callback, AbortingAStreamLeavesAQueuedCallbackBehind) {
  Pool pool(0, 1);
  auto stream = TaskStream::Make(pool, {});
  // Nobody serves this id.
  ASSERT_TRUE(Subscribe(12345, *stream, kFn).ok());
  Seen seen;
  ASSERT_TRUE(QueueCallback(Count, &seen, true, *stream, kFn).ok());
  stream->Abort(Error(Code::kStreamAbort, "over"));
  EXPECT_EQ(stream->Synchronize(Soon()).code(), Code::kStreamAbort);
  EXPECT_EQ(seen.calls, 0);
  ForgetCallbacks(*stream, false);
}

}  // namespace
}  // namespace npu::rt
