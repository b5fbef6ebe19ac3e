#include "runtime/workers/metered.h"

#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <thread>

#include "device/faults/faults.h"
#include "device/figures/read.h"
#include "device/testing/isolated.h"
#include "gen/fault_errors.h"
#include "runtime/stream/task_stream.h"

namespace npu::rt {
namespace {

using device::Flow;
using device::Unit;

device::MachineConfig Config() {
  device::MachineConfig config;
  config.name = "test";
  return config;
}

// Work that says what it does.
class CountedTask final : public Task {
 public:
  CountedTask(const TaskWork& work, uint32_t cost, std::atomic<int>* ran, std::atomic<int>* dropped)
      : work_(work), cost_(cost), ran_(ran), dropped_(dropped) {}
  Outcome Run(TaskContext&) override {
    ran_->fetch_add(1);
    return Outcome::Done();
  }
  void Drop(const Status&) override { dropped_->fetch_add(1); }
  const char* Name() const override { return "counted"; }
  uint32_t CostNs() const override { return cost_; }
  TaskWork Work() const override { return work_; }

 private:
  const TaskWork work_;
  const uint32_t cost_;
  std::atomic<int>*const ran_, *const dropped_;
};

class MeteredTest : public npu::testing::OwnMachine {
 protected:
  void TearDown() override {
    device::ClearFaults(Config(), {}).status().ok();
    OwnMachine::TearDown();
  }
  static TaskWork Copy(uint64_t bytes) {
    return {.unit = static_cast<uint8_t>(Unit::kMemory), .flow = static_cast<uint8_t>(Flow::kToDevice), .bytes = bytes};
  }
  static device::CardFigures Card(int card) { return device::ReadFigures(Config())->cards[static_cast<size_t>(card)]; }
};

TEST_F(MeteredTest, StreamsCountTasksBytesAndPlannedTime) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(seed);
  const int tasks = 10 + static_cast<int>(seed % 50);
  const uint64_t bytes = 1000 + seed % 1000;
  ISOLATED({
    auto machine = device::Join();
    ASSERT_TRUE(machine.ok());
    (*machine)->shared().figures.clock.held.store(1);
    Pool pool(1, 2);
    auto stream = TaskStream::Make(pool, {});
    std::atomic<int> ran{0};
    std::atomic<int> dropped{0};
    for (int i = 0; i < tasks; ++i) {
      ASSERT_TRUE(
          stream->Enqueue(std::make_unique<CountedTask>(Copy(bytes), i % 2 == 0 ? 1000 : 5000, &ran, &dropped)).ok());
    }
    ASSERT_TRUE(stream->Synchronize(Deadline::Never()).ok());
    EXPECT_EQ(ran, tasks);
    const device::CardFigures card = Card(1);
    EXPECT_EQ(card.tasks[static_cast<size_t>(Unit::kMemory)], static_cast<uint64_t>(tasks));
    EXPECT_EQ(card.bytes[static_cast<size_t>(Flow::kToDevice)], static_cast<uint64_t>(tasks) * bytes);
    const double planned = ((tasks + 1) / 2 * 1000 + tasks / 2 * 5000) / 1e9;
    EXPECT_DOUBLE_EQ(card.busy_s[static_cast<size_t>(Unit::kMemory)], planned);
    EXPECT_EQ(Card(0).tasks[static_cast<size_t>(Unit::kMemory)], 0u);
  });
}

TEST_F(MeteredTest, WaitsAndCallbacksAreNoWork) {
  ISOLATED({
    ASSERT_TRUE(device::Join().ok());
    Pool pool(0, 1);
    auto stream = TaskStream::Make(pool, {});
    std::atomic<int> ran{0};
    std::atomic<int> dropped{0};
    ASSERT_TRUE(stream->Enqueue(std::make_unique<CountedTask>(TaskWork{}, 0, &ran, &dropped)).ok());
    ASSERT_TRUE(stream->Synchronize(Deadline::Never()).ok());
    for (const uint64_t tasks : Card(0).tasks) EXPECT_EQ(tasks, 0u);
  });
}

TEST_F(MeteredTest, TasksOfALostCardAreDroppedAndReported) {
  device::FaultSpec spec;
  spec.kind = device::FaultKind::kCardLost;
  spec.card = 0;
  ASSERT_TRUE(device::AddFault(Config(), spec).ok());
  ISOLATED({
    ASSERT_TRUE(device::Join().ok());
    Pool pool(0, 1);
    auto stream = TaskStream::Make(pool, {});
    std::atomic<int> ran{0};
    std::atomic<int> dropped{0};
    ASSERT_TRUE(stream->Enqueue(std::make_unique<CountedTask>(Copy(8), 100, &ran, &dropped)).ok());
    EXPECT_EQ(stream->Synchronize(Deadline::Never()).code(), fault::kLostHeartbeat);
    EXPECT_EQ(ran, 0);
    EXPECT_EQ(dropped, 1);
    EXPECT_EQ(Card(0).failed_tasks, 1u);
  });
}

TEST_F(MeteredTest, AnAbortEndsAHang) {
  device::FaultSpec spec;
  spec.kind = device::FaultKind::kHang;
  ASSERT_TRUE(device::AddFault(Config(), spec).ok());
  ISOLATED({
    ASSERT_TRUE(device::Join().ok());
    Pool pool(0, 1);
    auto stream = TaskStream::Make(pool, {});
    std::atomic<int> ran{0};
    std::atomic<int> dropped{0};
    ASSERT_TRUE(stream->Enqueue(std::make_unique<CountedTask>(Copy(8), 0, &ran, &dropped)).ok());
    EXPECT_EQ(stream->Synchronize(Deadline::FromMs(30)).code(), Code::kSyncTimeout);
    stream->Abort(Error(Code::kTaskAbort, "enough"));
    EXPECT_EQ(stream->WaitIdle(Deadline::FromMs(10'000)).code(), Code::kOk);
    EXPECT_EQ(ran, 0);
  });
}

}  // namespace
}  // namespace npu::rt
