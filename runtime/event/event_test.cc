#include "runtime/event/event.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>
#include <thread>
#include <vector>

#include "runtime/workers/timer.h"

namespace npu::rt {
namespace {

using std::chrono::milliseconds;
const char* const kFn = "test";

struct FunctionTask final : Task {
  FunctionTask(std::function<Outcome(TaskContext&)> f, uint32_t cost) : body(std::move(f)), cost_ns(cost) {}
  Outcome Run(TaskContext& context) override { return body(context); }
  const char* Name() const override { return "test"; }
  uint32_t CostNs() const override { return cost_ns; }
  std::function<Outcome(TaskContext&)> body;
  uint32_t cost_ns;
};
TaskPtr Do(std::function<void()> f, uint32_t cost = 0) {
  return std::make_unique<FunctionTask>([f = std::move(f)](TaskContext&) { f(); return Outcome::Done(); }, cost);
}

Ref<Event> Make(uint32_t flags = kEventSync | kEventTimeLine, Event::Kind kind = Event::Kind::kEx) {
  return Ref<Event>::Adopt(new Event({flags, kind}, 0, 0));
}
Deadline Soon() { return Deadline::Never(); }

TEST(Event, AWaitHoldsItsStreamUntilTheRecord) {
  Pool pool(0, 1);
  auto a = TaskStream::Make(pool, {}), b = TaskStream::Make(pool, {});
  auto start = Make(), event = Make();
  std::atomic<int> order{0};
  int recorded = -1, waited = -1;
  std::atomic<bool> go{false};
  ASSERT_TRUE(a->Enqueue(Do([&] { while (!go) Pause(); })).ok());
  ASSERT_TRUE(a->Enqueue(Do([&] { recorded = order++; })).ok());
  ASSERT_TRUE(event->Record(*a, kFn).ok());
  ASSERT_TRUE(event->WaitOn(*b, 0, kFn).ok());
  ASSERT_TRUE(b->Enqueue(Do([&] { waited = order++; })).ok());
  EXPECT_FALSE(*event->Reached(kFn));
  go = true;
  EXPECT_TRUE(b->Synchronize(Soon()).ok());
  EXPECT_EQ(recorded, 0);
  EXPECT_EQ(waited, 1);
  EXPECT_TRUE(*event->Reached(kFn));
  EXPECT_TRUE(event->Synchronize(Soon(), kFn).ok());
}

TEST(Event, AWaitHoldsOnToTheRecordOfItsTime) {
  Pool pool(0, 2);
  auto a = TaskStream::Make(pool, {}), b = TaskStream::Make(pool, {}), c = TaskStream::Make(pool, {});
  auto event = Make();
  std::atomic<bool> go{false}, waited{false};
  ASSERT_TRUE(a->Enqueue(Do([&] { while (!go) std::this_thread::yield(); })).ok());
  ASSERT_TRUE(event->Record(*a, kFn).ok());
  ASSERT_TRUE(event->WaitOn(*c, 0, kFn).ok());
  ASSERT_TRUE(c->Enqueue(Do([&] { waited = true; })).ok());
  ASSERT_TRUE(event->Record(*b, kFn).ok());  // again, elsewhere, and reached at once
  ASSERT_TRUE(b->Synchronize(Soon()).ok());
  EXPECT_TRUE(*event->Reached(kFn));
  EXPECT_EQ(c->Synchronize(Deadline::In(milliseconds(20))).code(), Code::kSyncTimeout);
  EXPECT_FALSE(waited);
  go = true;
  EXPECT_TRUE(c->Synchronize(Soon()).ok());
}

TEST(Event, NeverRecorded) {
  auto ex = Make(), plain = Make(kEventSync, Event::Kind::kPlain);
  EXPECT_TRUE(*ex->Reached(kFn));
  EXPECT_FALSE(*plain->Reached(kFn));
  EXPECT_TRUE(ex->Synchronize(Soon(), kFn).ok());
  EXPECT_TRUE(plain->Synchronize(Soon(), kFn).ok());
  EXPECT_EQ(AclCode(ElapsedMs(*ex, *ex, kFn).status().code()), 507000);
}

TEST(Event, ElapsedTimeIsTakenOnTheStream) {
  Pool pool(0, 1);
  auto stream = TaskStream::Make(pool, {});
  auto start = Make(), end = Make(), untimed = Make(kEventSync);
  ASSERT_TRUE(start->Record(*stream, kFn).ok());
  ASSERT_TRUE(stream->Enqueue(Do([] { std::this_thread::sleep_for(milliseconds(5)); })).ok());
  ASSERT_TRUE(end->Record(*stream, kFn).ok());
  EXPECT_EQ(ElapsedMs(*start, *end, kFn).status().code(), Code::kEventTimestamp);
  ASSERT_TRUE(end->Synchronize(Soon(), kFn).ok());
  EXPECT_GE(*ElapsedMs(*start, *end, kFn), 5.0f);
  EXPECT_LE(*ElapsedMs(*end, *start, kFn), -5.0f);
  ASSERT_TRUE(untimed->Record(*stream, kFn).ok());
  EXPECT_EQ(ElapsedMs(*start, *untimed, kFn).status().code(), Code::kEventTimestamp);
}

TEST(Event, ResetIsForPlainEvents) {
  Pool pool(0, 1);
  auto stream = TaskStream::Make(pool, {});
  auto plain = Make(kEventSync, Event::Kind::kPlain), ex = Make();
  ASSERT_TRUE(plain->Record(*stream, kFn).ok());
  EXPECT_TRUE(*plain->Reached(kFn));
  ASSERT_TRUE(plain->Reset(*stream, kFn).ok());
  EXPECT_FALSE(*plain->Reached(kFn));
  EXPECT_EQ(ex->Reset(*stream, kFn).code(), Code::kFeatureNotSupported);
  EXPECT_EQ(Make(kEventTimeLine, Event::Kind::kPlain)->Reset(*stream, kFn).code(), Code::kFeatureNotSupported);
}

TEST(Event, AWaitWithALimitFailsItsStream) {
  Pool pool(0, 1);
  auto a = TaskStream::Make(pool, {}), b = TaskStream::Make(pool, {});
  auto event = Make();
  std::atomic<bool> go{false};
  ASSERT_TRUE(a->Enqueue(std::make_unique<FunctionTask>(
      [&](TaskContext& c) { return go || c.stopping ? Outcome::Done() : Outcome::Parked(); }, 0)).ok());
  ASSERT_TRUE(event->Record(*a, kFn).ok());
  ASSERT_TRUE(event->WaitOn(*b, 20, kFn).ok());
  EXPECT_EQ(b->Synchronize(Soon()).code(), Code::kEventSyncTimeout);
  EXPECT_EQ(event->Synchronize(Deadline::In(milliseconds(20)), kFn).code(), Code::kEventSyncTimeout);
  a->Abort(Error(Code::kStreamAbort, "over"));
  EXPECT_EQ(event->Synchronize(Soon(), kFn).code(), Code::kStreamAbort);
}

TEST(Event, AWaitThatEndsLeavesNothingBehind) {
  Pool pool(0, 1);
  auto a = TaskStream::Make(pool, {}), b = TaskStream::Make(pool, {});
  auto event = Make();
  std::atomic<bool> go{false};
  const size_t alarms = Alarm::Pending();
  // Reached in time: the limit of an hour is taken back.
  ASSERT_TRUE(a->Enqueue(Do([&] { while (!go) Pause(); })).ok());
  ASSERT_TRUE(event->Record(*a, kFn).ok());
  ASSERT_TRUE(event->WaitOn(*b, 3'600'000, kFn).ok());
  go = true;
  EXPECT_TRUE(b->Synchronize(Soon()).ok());
  EXPECT_EQ(Alarm::Pending(), alarms);
  // Given up: the mark no longer knows the waiter.
  ASSERT_TRUE(a->Enqueue(std::make_unique<FunctionTask>(
      [&](TaskContext& c) { return c.stopping ? Outcome::Done() : Outcome::Parked(); }, 0)).ok());
  ASSERT_TRUE(event->Record(*a, kFn).ok());
  const auto mark = event->latest();
  ASSERT_TRUE(event->WaitOn(*b, 10, kFn).ok());
  EXPECT_EQ(b->Synchronize(Soon()).code(), Code::kEventSyncTimeout);
  EXPECT_EQ(mark->waiting(), 0u);
  EXPECT_EQ(Alarm::Pending(), alarms);
  a->Abort(Error(Code::kStreamAbort, "over"));
}

TEST(Event, ARecordThatIsSlowedDownDoesNotHoldThoseWhoWaitForTheEvent) {
  Pool pool(0, 1);
  auto stream = TaskStream::Make(pool, {});
  auto event = Make();
  std::atomic<bool> go{false}, recorded{false};
  ASSERT_TRUE(stream->Enqueue(Do([&] { while (!go) std::this_thread::yield(); })).ok());
  std::thread producer([&] {
    // The last of these are slowed down inside their call until the stream moves.
    for (size_t i = 0; i < TaskStream::kDepth + 100; ++i) {
      if (!event->Record(*stream, kFn).ok()) std::abort();
    }
    recorded = true;
  });
  while (!event->latest()) std::this_thread::yield();
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(event->Synchronize(Deadline::In(milliseconds(5)), kFn).code(), Code::kEventSyncTimeout);
  }
  EXPECT_FALSE(recorded);
  go = true;
  producer.join();
  EXPECT_TRUE(event->Synchronize(Soon(), kFn).ok());
}

TEST(Event, WhoWaitsForAFailedStreamLearnsOfIt) {
  Pool pool(0, 1);
  auto a = TaskStream::Make(pool, {}), b = TaskStream::Make(pool, {});
  a->SetStopOnFailure(true);
  b->SetStopOnFailure(true);
  auto event = Make();
  std::atomic<bool> used{false};
  ASSERT_TRUE(a->Enqueue(std::make_unique<FunctionTask>(
      [](TaskContext&) { return Outcome::Done(Error(Code::kTaskException, "boom")); }, 0)).ok());
  ASSERT_TRUE(event->Record(*a, kFn).ok());
  ASSERT_TRUE(event->WaitOn(*b, 0, kFn).ok());
  ASSERT_TRUE(b->Enqueue(Do([&] { used = true; })).ok());
  EXPECT_EQ(b->Synchronize(Soon()).text(), "boom");
  EXPECT_FALSE(used);
  EXPECT_EQ(a->Synchronize(Soon()).text(), "boom");
}

TEST(Event, MayBeDestroyedWhileQueued) {
  Pool pool(0, 1);
  auto a = TaskStream::Make(pool, {}), b = TaskStream::Make(pool, {});
  std::atomic<bool> go{false};
  ASSERT_TRUE(a->Enqueue(Do([&] { while (!go) Pause(); })).ok());
  {
    auto event = Make();
    ASSERT_TRUE(event->Record(*a, kFn).ok());
    ASSERT_TRUE(event->WaitOn(*b, 0, kFn).ok());
  }
  go = true;
  EXPECT_TRUE(b->Synchronize(Soon()).ok());
}

TEST(Event, SixtyFourStreamsInARingOnOneWorker) {
  constexpr int kStreams = 64, kRounds = 20;
  Pool pool(0, 1);
  std::vector<Ref<TaskStream>> streams;
  std::vector<Ref<Event>> events;
  for (int i = 0; i < kStreams; ++i) {
    streams.push_back(TaskStream::Make(pool, {.id = static_cast<uint32_t>(i)}));
    events.push_back(Make());
  }
  std::vector<int> seen;
  for (int round = 0; round < kRounds; ++round) {
    for (int i = 0; i < kStreams; ++i) {
      if (round + i > 0) {
        ASSERT_TRUE(events[(i + kStreams - 1) % kStreams]->WaitOn(*streams[i], 0, kFn).ok());
      }
      ASSERT_TRUE(streams[i]->Enqueue(Do([&seen, n = round * kStreams + i] { seen.push_back(n); })).ok());
      ASSERT_TRUE(events[i]->Record(*streams[i], kFn).ok());
    }
  }
  EXPECT_TRUE(streams.back()->Synchronize(Soon()).ok());
  ASSERT_EQ(seen.size(), size_t{kStreams * kRounds});
  EXPECT_TRUE(std::is_sorted(seen.begin(), seen.end()));
}

// Random programs of tasks, records and waits, against the order they must keep: what follows a wait on its stream begins
// after what precedes the record on its own.
class RandomGraphs : public ::testing::Test {
 protected:
  struct Work {
    std::atomic<int64_t> begin{-1}, end{-1};
  };
  struct Order {
    const Work *before, *after;
  };

  void Run(uint64_t seed, Pool& pool) {
    std::mt19937_64 random(seed);
    const int streams = 2 + static_cast<int>(random() % 7), events = 1 + static_cast<int>(random() % 6);
    const int steps = 10 + static_cast<int>(random() % 60);
    std::vector<Ref<TaskStream>> lines;
    std::vector<Ref<Event>> marks;
    for (int i = 0; i < streams; ++i) lines.push_back(TaskStream::Make(pool, {.priority = static_cast<uint32_t>(random() % 3)}));
    for (int i = 0; i < events; ++i) marks.push_back(Make());

    std::vector<std::unique_ptr<Work>> works;
    std::vector<const Work*> last(streams, nullptr);         // latest task of a stream
    std::vector<std::vector<const Work*>> recorded(events);  // what the event's latest record follows
    std::vector<std::vector<const Work*>> pending(streams);  // what the stream's next task must follow
    std::vector<Order> orders;
    std::atomic<int64_t> clock{0};
    for (int step = 0; step < steps; ++step) {
      const size_t s = random() % streams, e = random() % events;
      switch (random() % 3) {
        case 0: {
          works.push_back(std::make_unique<Work>());
          Work* work = works.back().get();
          for (const Work* before : pending[s]) orders.push_back({before, work});
          pending[s].clear();
          if (last[s] != nullptr) orders.push_back({last[s], work});
          last[s] = work;
          const int spin = static_cast<int>(random() % 50);
          ASSERT_TRUE(lines[s]->Enqueue(Do([work, spin, &clock] {
            work->begin = clock.fetch_add(1);
            for (int i = 0; i < spin; ++i) Pause();
            work->end = clock.fetch_add(1);
          }, random() % 2 == 0 ? 0 : 500)).ok());
          break;
        }
        case 1:
          ASSERT_TRUE(marks[e]->Record(*lines[s], kFn).ok());
          recorded[e] = pending[s];
          if (last[s] != nullptr) recorded[e].push_back(last[s]);
          break;
        default:
          ASSERT_TRUE(marks[e]->WaitOn(*lines[s], 0, kFn).ok());
          pending[s].insert(pending[s].end(), recorded[e].begin(), recorded[e].end());
      }
      if (random() % 40 == 0) {
        ASSERT_TRUE(lines[s]->Synchronize(Soon()).ok());
        if (last[s] != nullptr) {
          ASSERT_GE(last[s]->end.load(), 0);
        }
      }
    }
    for (auto& line : lines) ASSERT_TRUE(line->Synchronize(Soon()).ok()) << "seed " << seed;
    for (const auto& work : works) ASSERT_GE(work->end.load(), 0) << "seed " << seed;
    for (const Order& order : orders) ASSERT_LT(order.before->end.load(), order.after->begin.load()) << "seed " << seed;
  }
};

TEST_F(RandomGraphs, KeepTheirOrder) {
  const uint64_t seed = std::random_device{}();
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  Pool one(0, 1), two(1, 2);
  for (uint64_t i = 0; i < 1000; ++i) {
    Run(seed + i, i % 2 == 0 ? one : two);
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace npu::rt
