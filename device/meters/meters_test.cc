#include "device/meters/meters.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <memory>
#include <thread>

#include "device/figures/meter.h"
#include "device/machine/machine.h"
#include "device/meters/read.h"
#include "device/testing/isolated.h"

namespace npu::device {
namespace {

using std::chrono::milliseconds;

class MetersTest : public npu::testing::OwnMachine {};

// Inside ISOLATED: this process's own figures.
Meters& Mine() {
  Result<Machine*> machine = Join();
  if (!machine.ok()) std::abort();
  return (*machine)->shared().meters[SlotIndex((*machine)->slot())];
}
const OpMeter* Find(std::string_view name) {
  for (uint32_t i = 0; i < Mine().op_high.load(); ++i) {
    if (name == Mine().ops[i].name) return &Mine().ops[i];
  }
  return nullptr;
}
uint64_t Count(const OpMeter& op) {
  uint64_t count = 0;
  for (const auto& bucket : op.buckets) count += bucket.load();
  return count;
}

TaskWork WorkOf(const char* op) { return {.op = op, .unit = static_cast<uint8_t>(Unit::kVector)}; }

void Kernel(const char* key, milliseconds length) {
  const TaskWork work = WorkOf(key);
  const uint64_t began = Meter::Of(0).Begin(work);
  std::this_thread::sleep_for(length);
  Meter::Of(0).End(work, began, {});
}

TEST_F(MetersTest, OperatorsAreCountedByName) {
  ISOLATED({
    Mine();
    static const char kAdd[] = "aclnnAdd", kMul[] = "aclnnMul";
    for (int i = 0; i < 5; ++i) Kernel(kAdd, milliseconds(2));
    Kernel(kMul, milliseconds(1));
    ASSERT_NE(Find("aclnnAdd"), nullptr);
    EXPECT_EQ(Count(*Find("aclnnAdd")), 5u);
    EXPECT_EQ(Count(*Find("aclnnMul")), 1u);
    EXPECT_GE(Find("aclnnAdd")->sum_ns.load(), 5u * 2'000'000u * 9 / 10);
    EXPECT_EQ(Find("aclnnAdd")->buckets[0].load(), 0u);  // none took less than 1 µs
  });
}

TEST_F(MetersTest, ManyNamesEndInOneForAllOthers) {
  ISOLATED({
    Mine();
    std::vector<std::string> names;
    for (uint32_t i = 0; i < 2 * kMaxOpMeters; ++i) names.push_back("op" + std::to_string(i));
    for (const std::string& name : names) meters::CountKernel(name.data(), name, 1);
    EXPECT_EQ(Mine().op_high.load(), kMaxOpMeters);
    EXPECT_STREQ(Mine().ops[kMaxOpMeters - 1].name, "other");
    uint64_t all = 0;
    for (const OpMeter& op : Mine().ops) all += Count(op);
    EXPECT_EQ(all, names.size());
  });
}

TEST_F(MetersTest, ThreadsLoseNoCount) {
  ISOLATED({
    Mine();
    static const char kKey[] = "aclnnThreads";
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([] {
        for (int i = 0; i < 10'000; ++i) meters::CountKernel(kKey, kKey, 1);
      });
    }
    for (std::thread& thread : threads) thread.join();
    ASSERT_NE(Find(kKey), nullptr);
    EXPECT_EQ(Count(*Find(kKey)), 40'000u);
  });
}

TEST_F(MetersTest, StepsEndWithTheBufferThatComesAgain) {
  ISOLATED({
    Mine();
    const RankMeter& rank = Mine().ranks[0];
    constexpr uint64_t kBuckets = 3;
    for (int step = 0; step < 6; ++step) {
      for (uint64_t bucket = 1; bucket <= kBuckets; ++bucket) {
        meters::Collective call(0, /*rank=*/2, /*ranks=*/4, bucket);
        call.Begins();
      }
      Kernel("aclnnStep", milliseconds(4));
    }
    EXPECT_EQ(rank.rank.load(), 2u);
    EXPECT_EQ(rank.ranks.load(), 4u);
    EXPECT_EQ(rank.steps.load(), 5u);
    EXPECT_EQ(rank.issued.load(), 18u);
    EXPECT_EQ(rank.completed.load(), 18u);
    EXPECT_GE(rank.wall_ns.load(), 5u * 3'900'000u);
  });
}

TEST_F(MetersTest, WaitingForPeersIsNotOwnWork) {
  ISOLATED({
    Mine();
    const RankMeter& rank = Mine().ranks[0];
    for (int step = 0; step < 4; ++step) {
      Kernel("aclnnStep", milliseconds(2));
      meters::Collective call(0, 0, 2, 77);
      call.Begins();
      const meters::HostWait wait(0);
      const meters::HostWait again(0);                // another thread's, say
      std::this_thread::sleep_for(milliseconds(20));  // the peer is late
    }
    ASSERT_EQ(rank.steps.load(), 3u);
    EXPECT_GE(rank.wall_ns.load(), 3u * 22'000'000u);
    EXPECT_LT(rank.own_ns.load(), rank.wall_ns.load() - 3u * 19'000'000u);
    EXPECT_GE(rank.own_ns.load(), 3u * 1'900'000u);
  });
}

// A rank that runs ahead: its collectives were called long before the card comes to them, and its host was never
// blocked.
TEST_F(MetersTest, WaitingForPeersDoesNotHideTheHostsWork) {
  ISOLATED({
    Mine();
    const RankMeter& rank = Mine().ranks[0];
    constexpr int kSteps = 4;
    std::vector<std::unique_ptr<meters::Collective>> calls;
    for (int step = 0; step < kSteps; ++step) {
      std::this_thread::sleep_for(milliseconds(5));  // the host's work
      calls.push_back(std::make_unique<meters::Collective>(0, 0, 2, 77));
    }
    for (auto& call : calls) {
      Kernel("aclnnStep", milliseconds(1));
      call->Begins();
      std::this_thread::sleep_for(milliseconds(20));
      call.reset();
    }
    ASSERT_EQ(rank.steps.load(), kSteps - 1u);
    EXPECT_GE(rank.own_ns.load(), (kSteps - 1) * 5'000'000u);
    EXPECT_LT(rank.own_ns.load(), rank.wall_ns.load());
  });
}

TEST_F(MetersTest, ACollectiveUnderAKernelIsNoWaiting) {
  ISOLATED({
    Mine();
    const RankMeter& rank = Mine().ranks[0];
    for (int step = 0; step < 3; ++step) {
      const uint64_t began = Meter::Of(0).Begin(WorkOf("aclnnLong"));
      {
        meters::Collective call(0, 0, 2, 5);
        call.Begins();
        std::this_thread::sleep_for(milliseconds(10));
      }
      Meter::Of(0).End(WorkOf("aclnnLong"), began, {});
    }
    ASSERT_EQ(rank.steps.load(), 2u);
    EXPECT_EQ(rank.own_ns.load(), rank.wall_ns.load());
  });
}

void Ops(std::initializer_list<const char*> names) {
  for (const char* name : names) Kernel(name, milliseconds(1));
}

TEST_F(MetersTest, OnOneCardUpdatesOfAnOptimiserEndSteps) {
  ISOLATED({
    Mine();
    const RankMeter& rank = Mine().ranks[0];
    for (int step = 0; step < 6; ++step) {
      Ops({"aclnnMatmul", "aclnnForeachZeroInplace", "aclnnAdd", "aclnnMatmul", "aclnnConvolutionBackward"});
      Ops({"aclnnForeachNorm", "aclnnForeachMulScalar", "aclnnForeachAddListV2", "aclnnApplyAdamWV2"});
    }
    EXPECT_EQ(rank.steps.load(), 4u);  // from the 2nd to the 6th
    EXPECT_EQ(rank.own_ns.load(), rank.wall_ns.load());
    EXPECT_GE(rank.own_ns.load(), 4u * 9 * 1'000'000);
    EXPECT_EQ(rank.ranks.load(), 0u);
    // In a communicator the collectives mark them, and nothing else does.
    for (int step = 0; step < 5; ++step) {
      Ops({"aclnnMatmul"});
      meters::Collective call(0, 0, 2, 77);
      call.Begins();
      Ops({"aclnnForeachAddListV2"});
    }
    EXPECT_EQ(rank.steps.load(),
              4u + 1u + 2u);  // the sixth update's; the third collective is believed, two come after it
  });
}

TEST_F(MetersTest, NewBuffersBecomeTheMark) {
  ISOLATED({
    Mine();
    const RankMeter& rank = Mine().ranks[0];
    const auto call = [](uint64_t key) {
      meters::Collective c(0, 0, 2, key);
      c.Begins();
    };
    for (int i = 0; i < 3; ++i) call(1);
    EXPECT_EQ(rank.steps.load(), 2u);
    for (int i = 0; i < 6; ++i) call(2);  // DDP makes its buckets anew after the first step
    EXPECT_EQ(rank.steps.load(), 2u + 3u);
  });
}

TEST_F(MetersTest, QueueIsWhatWasCalledAndIsNotOver) {
  ISOLATED({
    Mine();
    const RankMeter& rank = Mine().ranks[1];
    std::vector<std::unique_ptr<meters::Collective>> calls;
    for (int i = 0; i < 12; ++i) calls.push_back(std::make_unique<meters::Collective>(1, 1, 2, 9));
    calls[0]->Received();
    calls[0]->Received();
    EXPECT_EQ(rank.issued.load() - rank.completed.load(), 12u);
    EXPECT_EQ(rank.issued.load() - rank.received.load(), 11u);
    calls.clear();
    EXPECT_EQ(rank.issued.load(), rank.completed.load());
    EXPECT_EQ(rank.issued.load(), rank.received.load());
  });
}

TEST_F(MetersTest, AnotherProcessReadsThemAndTheyGoWithTheirOwner) {
  npu::testing::Child child([](npu::testing::Child::Side& side) {
    static const char kAdd[] = "aclnnAdd";
    Mine();
    Kernel(kAdd, milliseconds(3));
    meters::Collective open(1, 3, 4, 9);
    side.Send(1);
    side.Receive();
    return 0;
  });
  child.Receive();
  Result<std::vector<ProcessReading>> read = ReadMeters({.name = "test"});
  ASSERT_TRUE(read.ok());
  ASSERT_EQ(read->size(), 1u);
  ASSERT_EQ((*read)[0].ops.size(), 1u);
  EXPECT_EQ((*read)[0].ops[0].name, "aclnnAdd");
  EXPECT_GE((*read)[0].ops[0].sum_ns, 2'900'000u);
  ASSERT_EQ((*read)[0].ranks.size(), 1u);
  EXPECT_EQ((*read)[0].ranks[0].rank, 3u);
  EXPECT_EQ((*read)[0].ranks[0].issued - (*read)[0].ranks[0].completed, 1u);
  child.Send(1);
  EXPECT_EQ(child.Wait(), 0);
  read = ReadMeters({.name = "test"});
  ASSERT_TRUE(read.ok());
  EXPECT_TRUE(read->empty());
}

}  // namespace
}  // namespace npu::device
