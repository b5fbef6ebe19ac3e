// The price of handing work to a stream, of events, and of copies. Prints medians and best of several rounds.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "runtime/event/event.h"
#include "runtime/memory/copy.h"
#include "runtime/memory/host.h"
#include "runtime/stream/task_stream.h"
#include "runtime/workers/cores.h"

namespace npu::rt {
namespace {

using Clock = std::chrono::steady_clock;

double Seconds(const std::function<void()>& body) {
  const auto start = Clock::now();
  body();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Runs `body` several times and prints its time divided by `items`, in `unit` (1e9 for ns).
void Measure(const std::string& what, double items, const char* unit, double scale, const std::function<void()>& body) {
  constexpr int kRounds = 15;
  std::vector<double> times;
  for (int i = 0; i < kRounds; ++i) times.push_back(Seconds(body) / items * scale);
  std::sort(times.begin(), times.end());
  fmt::print("{:<58} best {:>8.2f}  median {:>8.2f} {}\n", what, times.front(), times[kRounds / 2], unit);
}

void Work(uint32_t ns) {
  if (ns == 0) return;
  const auto until = Clock::now() + std::chrono::nanoseconds(ns);
  while (Clock::now() < until) {
  }
}

struct WorkTask final : Task {
  explicit WorkTask(uint32_t work_ns, uint32_t cost) : ns(work_ns), cost_ns(cost) {}
  Outcome Run(TaskContext&) override {
    Work(ns);
    return Outcome::Done();
  }
  const char* Name() const override { return "work"; }
  uint32_t CostNs() const override { return cost_ns; }
  uint32_t ns, cost_ns;
};

void Check(const Status& status) {
  if (!status.ok()) {
    fmt::print("failed: {}\n", status.Message());
    std::exit(1);
  }
}

void Streams() {
  constexpr int kTasks = 10000;
  Pool pool(0, std::max(1, UsableCores()));
  auto stream = TaskStream::Make(pool, {});
  int ran = 0;
  const auto run = [](void* self, TaskContext&) {
    ++*static_cast<int*>(self);
    return Outcome::Done();
  };
  const auto make = [](void*) -> TaskPtr { return std::make_unique<WorkTask>(0, 100); };
  Measure("launch inline, empty, 10,000 and one synchronise", kTasks, "ns", 1e9, [&] {
    for (int i = 0; i < kTasks; ++i) Check(stream->Launch(&ran, run, make, 100));
    Check(stream->Synchronize(Deadline::Never()));
  });
  Measure("enqueue a task object, runs inline, empty", kTasks, "ns", 1e9, [&] {
    for (int i = 0; i < kTasks; ++i) Check(stream->Enqueue(std::make_unique<WorkTask>(0, 100)));
    Check(stream->Synchronize(Deadline::Never()));
  });
  for (const uint32_t ns : {0u, 2000u, 20000u}) {
    const int tasks = ns == 20000 ? kTasks / 10 : kTasks;
    Measure(fmt::format("queue tasks of {} us, enqueue only", ns / 1000), tasks, "ns", 1e9, [&] {
      for (int i = 0; i < tasks; ++i) Check(stream->Enqueue(std::make_unique<WorkTask>(ns, 0)));
    });
    Check(stream->Synchronize(Deadline::Never()));
    Measure(fmt::format("queue tasks of {} us and synchronise, each", ns / 1000), tasks, "us", 1e6, [&] {
      for (int i = 0; i < tasks; ++i) Check(stream->Enqueue(std::make_unique<WorkTask>(ns, 0)));
      Check(stream->Synchronize(Deadline::Never()));
    });
  }
  Measure("queue one empty task and synchronise, back to back", 1000, "us", 1e6, [&] {
    for (int i = 0; i < 1000; ++i) {
      Check(stream->Enqueue(std::make_unique<WorkTask>(0, 0)));
      Check(stream->Synchronize(Deadline::Never()));
    }
  });
  std::vector<double> cold;
  for (int i = 0; i < 50; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
    cold.push_back(1e6 * Seconds([&] {
                     Check(stream->Enqueue(std::make_unique<WorkTask>(0, 0)));
                     Check(stream->Synchronize(Deadline::Never()));
                   }));
  }
  std::sort(cold.begin(), cold.end());
  fmt::print("{:<58} best {:>8.2f}  median {:>8.2f} us\n", "the same after 3 ms of idling", cold.front(),
             cold[cold.size() / 2]);
}

void Events() {
  constexpr int kPairs = 10000;
  Pool pool(1, std::max(1, UsableCores()));
  auto a = TaskStream::Make(pool, {}), b = TaskStream::Make(pool, {});
  auto event = Ref<Event>::Adopt(new Event({kEventSync, Event::Kind::kEx}, 0, 0));
  Measure("record on an idle stream", kPairs, "ns", 1e9, [&] {
    for (int i = 0; i < kPairs; ++i) Check(event->Record(*a, "bench"));
  });
  Measure("record and wait on another stream, both idle", kPairs, "ns", 1e9, [&] {
    for (int i = 0; i < kPairs; ++i) {
      Check(event->Record(*a, "bench"));
      Check(event->WaitOn(*b, 0, "bench"));
    }
  });
  Measure("two streams taking turns through queued tasks, a turn", 2000, "us", 1e6, [&] {
    auto other = Ref<Event>::Adopt(new Event({kEventSync, Event::Kind::kEx}, 0, 0));
    for (int i = 0; i < 1000; ++i) {
      Check(a->Enqueue(std::make_unique<WorkTask>(0, 0)));
      Check(event->Record(*a, "bench"));
      Check(event->WaitOn(*b, 0, "bench"));
      Check(b->Enqueue(std::make_unique<WorkTask>(0, 0)));
      Check(other->Record(*b, "bench"));
      Check(other->WaitOn(*a, 0, "bench"));
    }
    Check(a->Synchronize(Deadline::Never()));
    Check(b->Synchronize(Deadline::Never()));
  });
}

void Copies() {
  CardParallel one(1), all(std::max(1, UsableCores()));
  for (const size_t mib : {1, 4, 16, 64}) {
    const size_t bytes = mib << 20;
    auto dst = AllocateHost(bytes, "bench"), src = AllocateHost(bytes, "bench");
    Check(dst.status());
    Check(src.status());
    CopyPlan plan;
    plan.dst = {static_cast<char*>(*dst), Place::kPinned};
    plan.src = {static_cast<char*>(*src), Place::kPinned};
    plan.width = bytes;
    FillNow(plan.src.local, 1, 1, bytes, all);
    FillNow(plan.dst.local, 1, 1, bytes, all);
    for (CardParallel* parallel : {&one, &all}) {
      constexpr int kTimes = 4;
      std::vector<double> rates;
      for (int i = 0; i < 15; ++i) {
        rates.push_back(static_cast<double>(bytes) * kTimes / 1e9 / Seconds([&] {
                          for (int k = 0; k < kTimes; ++k) Check(CopyNow(plan, *parallel));
                        }));
      }
      std::sort(rates.begin(), rates.end());
      fmt::print("{:<58} best {:>8.2f}  median {:>8.2f} GB/s\n",
                 fmt::format("copy {} MiB, {} threads", mib, parallel->Workers()), rates.back(), rates[7]);
    }
    Check(FreeHost(*dst, "bench"));
    Check(FreeHost(*src, "bench"));
  }
}

}  // namespace
}  // namespace npu::rt

int main() {
  npu::rt::Streams();
  npu::rt::Events();
  npu::rt::Copies();
}
