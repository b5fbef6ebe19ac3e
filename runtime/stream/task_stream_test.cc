#include "runtime/stream/task_stream.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <thread>
#include <vector>

namespace npu::rt {
namespace {

using std::chrono::milliseconds;

struct FunctionTask final : Task {
  FunctionTask(std::function<Outcome(TaskContext&)> f, uint32_t cost, std::function<void(const Status&)> d = {})
      : body(std::move(f)), dropped(std::move(d)), cost_ns(cost) {}
  Outcome Run(TaskContext& context) override { return body(context); }
  void Drop(const Status& why) override {
    if (dropped) dropped(why);
  }
  const char* Name() const override { return "test"; }
  uint32_t CostNs() const override { return cost_ns; }
  std::function<Outcome(TaskContext&)> body;
  std::function<void(const Status&)> dropped;
  uint32_t cost_ns;
};

TaskPtr Do(std::function<void()> f, uint32_t cost = 0) {
  return std::make_unique<FunctionTask>([f = std::move(f)](TaskContext&) { f(); return Outcome::Done(); }, cost);
}
TaskPtr Fail(const char* text) {
  return std::make_unique<FunctionTask>([text](TaskContext&) { return Outcome::Done(Error(Code::kTaskException, "{}", text)); }, 0);
}

// A one-shot signal that parks streams, as events do.
struct Gate {
  std::mutex mutex;
  std::vector<Waker> wakers;
  bool open = false;
  void Open() {
    std::vector<Waker> wake;
    {
      const std::lock_guard lock(mutex);
      open = true;
      wake.swap(wakers);
    }
    for (const auto& w : wake) w.Wake();
  }
  Outcome Pass(TaskContext& context) {
    const std::lock_guard lock(mutex);
    if (open) return Outcome::Done();
    if (context.stopping) return Outcome::Done(Error(Code::kStreamAbort, "stopped"));
    wakers.push_back(context.waker);
    return Outcome::Parked();
  }
};
TaskPtr WaitAt(Gate& gate) {
  return std::make_unique<FunctionTask>([&gate](TaskContext& c) { return gate.Pass(c); }, 0);
}

class StreamTest : public ::testing::Test {
 protected:
  Pool pool{0, 1};
  Ref<TaskStream> Make() { return TaskStream::Make(pool, {}); }
};

TEST_F(StreamTest, RunsTasksInOrderOnOneThreadAtATime) {
  auto stream = Make();
  std::vector<int> seen;
  std::atomic<int> inside{0};
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(stream->Enqueue(Do([&, i] {
      EXPECT_EQ(inside.fetch_add(1), 0);
      seen.push_back(i);
      inside.fetch_sub(1);
    }, i % 3 == 0 ? 100 : 0)).ok());
  }
  EXPECT_TRUE(stream->Synchronize(Deadline::Never()).ok());
  ASSERT_EQ(seen.size(), 1000u);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(seen[i], i);
  EXPECT_TRUE(stream->Idle());
}

TEST_F(StreamTest, SmallWorkOnAnIdleStreamRunsOnTheCaller) {
  auto stream = Make();
  std::thread::id where;
  ASSERT_TRUE(stream->Enqueue(Do([&] { where = std::this_thread::get_id(); }, 100)).ok());
  EXPECT_EQ(where, std::this_thread::get_id());
  EXPECT_TRUE(stream->Idle());
}

TEST_F(StreamTest, SmallWorkBehindAWaitIsQueued) {
  auto stream = Make();
  Gate gate;
  std::atomic<bool> ran{false};
  ASSERT_TRUE(stream->Enqueue(WaitAt(gate)).ok());
  ASSERT_TRUE(stream->Enqueue(Do([&] { ran = true; }, 100)).ok());
  EXPECT_FALSE(ran);
  EXPECT_FALSE(stream->Idle());
  EXPECT_EQ(stream->Synchronize(Deadline::In(milliseconds(20))).code(), Code::kSyncTimeout);
  gate.Open();
  EXPECT_TRUE(stream->Synchronize(Deadline::Never()).ok());
  EXPECT_TRUE(ran);
}

TEST_F(StreamTest, LaunchRunsInlineOrAsksForATask) {
  struct Work {
    int inlined = 0;
    std::atomic<int> queued{0};
  } work;
  const auto run = [](void* self, TaskContext&) { ++static_cast<Work*>(self)->inlined; return Outcome::Done(); };
  const auto make = [](void* self) { return Do([self] { ++static_cast<Work*>(self)->queued; }); };
  auto stream = Make();
  ASSERT_TRUE(stream->Launch(&work, run, make, 500).ok());
  EXPECT_EQ(work.inlined, 1);
  ASSERT_TRUE(stream->Launch(&work, run, make, kInlineNs).ok());
  EXPECT_TRUE(stream->Synchronize(Deadline::Never()).ok());
  EXPECT_EQ(work.queued, 1);
  Gate gate;
  ASSERT_TRUE(stream->Enqueue(WaitAt(gate)).ok());
  ASSERT_TRUE(stream->Launch(&work, run, make, 500).ok());
  gate.Open();
  EXPECT_TRUE(stream->Synchronize(Deadline::Never()).ok());
  EXPECT_EQ(work.inlined, 1);
  EXPECT_EQ(work.queued, 2);
}

TEST_F(StreamTest, ReportsTheFirstFailureOnce) {
  auto stream = Make();
  ASSERT_TRUE(stream->Enqueue(Fail("boom")).ok());
  ASSERT_TRUE(stream->Enqueue(Fail("later")).ok());
  const Status status = stream->Synchronize(Deadline::Never());
  EXPECT_EQ(status.code(), Code::kTaskException);
  EXPECT_EQ(status.text(), "boom");
  EXPECT_TRUE(stream->Synchronize(Deadline::Never()).ok());
}

TEST_F(StreamTest, StopOnFailureDropsWhatFollowsUntilReported) {
  auto stream = Make();
  stream->SetStopOnFailure(true);
  std::atomic<int> ran{0}, dropped{0};
  Gate gate;
  ASSERT_TRUE(stream->Enqueue(WaitAt(gate)).ok());
  ASSERT_TRUE(stream->Enqueue(Fail("boom")).ok());
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(stream->Enqueue(std::make_unique<FunctionTask>(
        [&](TaskContext&) { ++ran; return Outcome::Done(); }, 10u, [&](const Status&) { ++dropped; })).ok());
  }
  gate.Open();
  EXPECT_EQ(stream->Synchronize(Deadline::Never()).text(), "boom");
  EXPECT_EQ(ran, 0);
  EXPECT_EQ(dropped, 5);
  ASSERT_TRUE(stream->Enqueue(Do([&] { ++ran; })).ok());
  EXPECT_TRUE(stream->Synchronize(Deadline::Never()).ok());
  EXPECT_EQ(ran, 1);
}

TEST_F(StreamTest, AbortDropsAndStopsWaiters) {
  auto stream = Make();
  Gate never;
  std::atomic<int> dropped{0};
  ASSERT_TRUE(stream->Enqueue(WaitAt(never)).ok());
  ASSERT_TRUE(stream->Enqueue(std::make_unique<FunctionTask>(
      [](TaskContext&) { return Outcome::Done(); }, 0u, [&](const Status&) { ++dropped; })).ok());
  stream->Abort(Error(Code::kTaskAbort, "aborted on request"));
  EXPECT_EQ(stream->Synchronize(Deadline::Never()).code(), Code::kTaskAbort);
  EXPECT_EQ(dropped, 1);
  EXPECT_EQ(stream->Enqueue(Do([] {})).code(), Code::kTaskAbort);
  EXPECT_TRUE(stream->Idle());
}

TEST_F(StreamTest, AnExceptionBecomesAFailure) {
  auto stream = Make();
  ASSERT_TRUE(stream->Enqueue(Do([] { throw std::runtime_error("no"); })).ok());
  EXPECT_EQ(stream->Synchronize(Deadline::Never()).code(), Code::kInternal);
}

TEST_F(StreamTest, AParkedStreamDoesNotHoldTheOnlyWorker) {
  auto a = Make(), b = Make();
  Gate gate;
  std::atomic<bool> b_ran{false};
  ASSERT_TRUE(a->Enqueue(WaitAt(gate)).ok());
  ASSERT_TRUE(b->Enqueue(Do([&] { b_ran = true; })).ok());
  ASSERT_TRUE(b->Enqueue(Do([&] { gate.Open(); })).ok());
  EXPECT_TRUE(a->Synchronize(Deadline::Never()).ok());
  EXPECT_TRUE(b_ran);
}

TEST_F(StreamTest, SeveralProducersAndSynchronisers) {
  auto stream = Make();
  std::atomic<int> ran{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 500; ++i) {
        ASSERT_TRUE(stream->Enqueue(Do([&] { ++ran; }, i % 2 ? 50 : 0)).ok());
        if (i % 50 == 0) {
          EXPECT_TRUE(stream->Synchronize(Deadline::Never()).ok());
        }
      }
    });
  }
  for (auto& t : threads) t.join();
  EXPECT_TRUE(stream->Synchronize(Deadline::Never()).ok());
  EXPECT_EQ(ran, 2000);
}

TEST_F(StreamTest, AProducerIsSlowedDownButNeverStuck) {
  auto stream = Make();
  std::atomic<int> ran{0};
  constexpr int kTasks = 4 * static_cast<int>(TaskStream::kDepth);
  size_t most = 0;
  for (int i = 0; i < kTasks; ++i) {
    ASSERT_TRUE(stream->Enqueue(Do([&] { ++ran; })).ok());
    most = std::max(most, static_cast<size_t>(i + 1 - ran));
  }
  EXPECT_LE(most, TaskStream::kDepth + 2);
  EXPECT_TRUE(stream->Synchronize(Deadline::Never()).ok());
  EXPECT_EQ(ran, kTasks);
  // What a parked stream waits for may come from this very thread.
  Gate gate;
  ASSERT_TRUE(stream->Enqueue(WaitAt(gate)).ok());
  for (int i = 0; i < kTasks; ++i) ASSERT_TRUE(stream->Enqueue(Do([&] { ++ran; })).ok());
  gate.Open();
  EXPECT_TRUE(stream->Synchronize(Deadline::Never()).ok());
  EXPECT_EQ(ran, 2 * kTasks);
}

TEST_F(StreamTest, AStreamMayDieWhileItsWakerLives) {
  Waker waker;
  {
    auto stream = Make();
    ASSERT_TRUE(stream->Enqueue(std::make_unique<FunctionTask>([&](TaskContext& c) { waker = c.waker; return Outcome::Done(); }, 0u)).ok());
    EXPECT_TRUE(stream->Synchronize(Deadline::Never()).ok());
  }
  waker.Wake();
}

TEST_F(StreamTest, WhatQueuedWorkMayUseIsKeptUntilItIsDone) {
  auto a = Make(), b = Make();
  const auto kept = [](const std::weak_ptr<int>& thing) { return !thing.expired(); };
  const auto keep = [&](std::shared_ptr<int> thing) {
    a->KeepUntilDone(thing);
    b->KeepUntilDone(thing);
  };
  auto thing = std::make_shared<int>(1);
  std::weak_ptr<int> weak = thing;
  keep(std::move(thing));
  EXPECT_FALSE(kept(weak)) << "nothing is queued";

  Gate first, second;
  ASSERT_TRUE(a->Enqueue(WaitAt(first)).ok());
  ASSERT_TRUE(b->Enqueue(WaitAt(second)).ok());
  thing = std::make_shared<int>(2);
  weak = thing;
  keep(std::move(thing));
  ASSERT_TRUE(a->Enqueue(Do([] {})).ok());  // later work is not waited for
  EXPECT_TRUE(kept(weak));
  first.Open();
  ASSERT_TRUE(a->Synchronize(Deadline::Never()).ok());
  EXPECT_TRUE(kept(weak)) << "the other stream may use it";
  second.Open();
  ASSERT_TRUE(b->Synchronize(Deadline::Never()).ok());
  EXPECT_FALSE(kept(weak));

  // Dropped work uses nothing any more; work that runs does until it ends.
  Gate never;
  std::atomic<bool> runs{false}, go{false};
  ASSERT_TRUE(a->Enqueue(Do([&] { runs = true; while (!go) std::this_thread::yield(); })).ok());
  ASSERT_TRUE(a->Enqueue(WaitAt(never)).ok());
  while (!runs) std::this_thread::yield();
  thing = std::make_shared<int>(3);
  weak = thing;
  keep(std::move(thing));
  a->Abort(Error(Code::kStreamAbort, "over"));
  EXPECT_TRUE(kept(weak));
  go = true;
  ASSERT_TRUE(a->WaitIdle(Deadline::Never()).ok());
  for (int i = 0; i < 10000 && kept(weak); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_FALSE(kept(weak));
}

TEST(CoreLimit, IsTheNumberOfThreadsKernelsGet) {
  Pool pool(0, 8);
  auto stream = TaskStream::Make(pool, {});
  const auto threads = [&] {
    int workers = 0;
    std::atomic<int> blocks{0};
    EXPECT_TRUE(stream->Enqueue(std::make_unique<FunctionTask>([&](TaskContext& c) {
      workers = c.parallel.Workers();
      c.parallel.For(1000, 1, [&](int64_t begin, int64_t end) { blocks += static_cast<int>(end - begin); });
      return Outcome::Done();
    }, 0)).ok());
    EXPECT_TRUE(stream->Synchronize(Deadline::Never()).ok());
    EXPECT_EQ(blocks, 1000);
    return workers;
  };
  EXPECT_EQ(threads(), 8);
  stream->SetCoreLimit(0, 5, 20);
  EXPECT_EQ(threads(), 2);
  stream->SetCoreLimit(1, 1, 40);
  EXPECT_EQ(threads(), 1);
  stream->SetCoreLimit(1, 0, 1);
  EXPECT_EQ(threads(), 2);
  pool.parallel().Limit(500);
  EXPECT_EQ(threads(), 1);
  stream->SetCoreLimit(0, 0, 1);
  EXPECT_EQ(threads(), 4);
  pool.parallel().Limit(1000);
  EXPECT_EQ(threads(), 8);
}

TEST_F(StreamTest, TwoCardsDrivenByOneThread) {
  Pool other(1, 1);
  auto a = Make();
  auto b = TaskStream::Make(other, {});
  // Each card waits for the other in turn, as collectives between two cards of one process do.
  constexpr int kRounds = 200;
  std::vector<std::unique_ptr<Gate>> a_done, b_done;
  for (int i = 0; i < kRounds; ++i) {
    a_done.push_back(std::make_unique<Gate>());
    b_done.push_back(std::make_unique<Gate>());
  }
  for (int i = 0; i < kRounds; ++i) {
    Gate *ga = a_done[i].get(), *gb = b_done[i].get();
    ASSERT_TRUE(a->Enqueue(Do([=] { ga->Open(); })).ok());
    ASSERT_TRUE(a->Enqueue(WaitAt(*gb)).ok());
    ASSERT_TRUE(b->Enqueue(WaitAt(*ga)).ok());
    ASSERT_TRUE(b->Enqueue(Do([=] { gb->Open(); })).ok());
  }
  EXPECT_TRUE(a->Synchronize(Deadline::Never()).ok());
  EXPECT_TRUE(b->Synchronize(Deadline::Never()).ok());
}

}  // namespace
}  // namespace npu::rt
