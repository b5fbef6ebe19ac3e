#include <gtest/gtest.h>

#include <random>

#include "device/faults/faults.h"
#include "device/figures/control.h"
#include "device/figures/meter.h"
#include "device/figures/model.h"
#include "device/figures/read.h"
#include "device/machine/state_file.h"
#include "device/testing/isolated.h"

namespace npu::device {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;
constexpr size_t kCube = static_cast<size_t>(Unit::kCube), kVector = static_cast<size_t>(Unit::kVector);

MachineConfig Config() {
  MachineConfig config;
  config.name = "test";
  return config;
}

// The machine's clock stands; a test moves it and so decides how long everything took.
class FiguresTest : public npu::testing::OwnMachine {
 protected:
  void SetUp() override {
    OwnMachine::SetUp();
    auto machine = Enter(Config());
    ASSERT_TRUE(machine.ok()) << machine.status().Message();
    machine_ = machine.take();
    layout().figures.clock.ns.store(1000 * kSecond);
    layout().figures.clock.held.store(1);
    Move(0);
  }
  void TearDown() override {
    machine_.reset();
    OwnMachine::TearDown();
  }
  StateLayout& layout() { return machine_->shared(); }
  void Move(double seconds) {
    layout().figures.clock.ns.fetch_add(static_cast<uint64_t>(seconds * 1e9));
    for (uint32_t card = 0; card < 2; ++card) MoveModel(layout(), card, NowNs(layout()));
  }
  // `share` of the next `seconds` on a unit of a card.
  void Load(int card, size_t unit, double share, double seconds) {
    constexpr double kStep = 0.1;
    for (double at = 0; at < seconds - kStep / 2; at += kStep) {
      machine_->Work(card).done.busy_ns[unit].fetch_add(static_cast<uint64_t>(share * kStep * 1e9));
      machine_->Work(card).done.any_ns.fetch_add(static_cast<uint64_t>(share * kStep * 1e9));
      Move(kStep);
    }
  }
  CardFigures Card(int card) {
    auto figures = ReadFigures(Config());
    EXPECT_TRUE(figures.ok()) << figures.status().Message();
    return figures->cards[static_cast<size_t>(card)];
  }
  std::unique_ptr<Machine> machine_;
};

TEST_F(FiguresTest, UseFollowsWorkAndReturns) {
  EXPECT_EQ(Card(0).use_any, 0);
  Load(0, kCube, 0.5, 1);
  EXPECT_NEAR(Card(0).use_cube, 0.5, 0.002);
  EXPECT_NEAR(Card(0).use_core, 0.5, 0.002);
  EXPECT_EQ(Card(0).use_vector, 0);
  EXPECT_EQ(Card(1).use_any, 0) << "the other card did nothing";
  Move(1);
  EXPECT_EQ(Card(0).use_any, 0);
  EXPECT_NEAR(Card(0).busy_s[kCube], 0.5, 1e-6) << "sums stay";
}

TEST_F(FiguresTest, TwoLoadsOfKnownSizeGiveTheirRatio) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  const uint64_t unit_ns = 1000 + random() % 100'000, ratio = 2 + random() % 7;
  const auto load = [&](int card, uint64_t tasks) {
    Meter& meter = Meter::Of(card);
    const TaskWork work{.op = "aclnnMatmul",
                        .unit = static_cast<uint8_t>(Unit::kVector),
                        .flow = static_cast<uint8_t>(Flow::kKernel),
                        .bytes = 4096};
    for (uint64_t i = 0; i < tasks; ++i)
      meter.End(work, meter.Begin(work), {.planned_ns = static_cast<uint32_t>(unit_ns)});
  };
  // Meters count into the process's own machine, which must be this one.
  ISOLATED({
    auto joined = Join();
    ASSERT_TRUE(joined.ok()) << joined.status().Message();
    load(0, 100);
    load(1, 100 * ratio);
    auto figures = ReadFigures(Config());
    ASSERT_TRUE(figures.ok());
    const CardFigures &one = figures->cards[0], &other = figures->cards[1];
    EXPECT_EQ(one.tasks[kCube], 100u);
    EXPECT_EQ(other.tasks[kCube], 100u * ratio);
    EXPECT_DOUBLE_EQ(other.busy_s[kCube], one.busy_s[kCube] * static_cast<double>(ratio));
    EXPECT_DOUBLE_EQ(one.busy_s[kCube], static_cast<double>(100 * unit_ns) / 1e9);
    EXPECT_EQ(other.bytes[0], one.bytes[0] * ratio);
    EXPECT_EQ(one.tasks[kVector], 0u);
  });
}

TEST_F(FiguresTest, PowerAndTemperatureHaveInertia) {
  const Profile& profile = machine_->profile();
  const CardFigures idle = Card(0);
  EXPECT_NEAR(idle.power_w, profile.idle_power_dw / 10.0, 0.05);
  EXPECT_NEAR(idle.chip_c, profile.idle_temp_c, 0.05);
  Load(0, kCube, 1, 0.2);
  const CardFigures started = Card(0);
  EXPECT_GT(started.power_w, idle.power_w + 1);
  EXPECT_LT(started.power_w, profile.busy_power_dw / 10.0 - 1) << "not at once";
  Load(0, kCube, 1, 5);
  const CardFigures busy = Card(0);
  EXPECT_NEAR(busy.power_w, profile.busy_power_dw / 10.0, 0.1);
  EXPECT_GT(busy.chip_c, started.chip_c + 1);
  EXPECT_LT(busy.chip_c, profile.busy_temp_c - 1) << "heat is slower than power";
  Load(0, kCube, 1, 120);
  EXPECT_NEAR(Card(0).chip_c, profile.busy_temp_c, 0.2);
  Move(300);
  EXPECT_NEAR(Card(0).power_w, idle.power_w, 0.05);
  EXPECT_NEAR(Card(0).chip_c, idle.chip_c, 0.05);
}

TEST_F(FiguresTest, ClocksRiseWithWork) {
  const int idle = Card(0).core_mhz;
  Load(0, kVector, 0.3, 1);
  EXPECT_EQ(Card(0).core_mhz, machine_->profile().cube_mhz);
  EXPECT_LT(idle, machine_->profile().cube_mhz);
  EXPECT_GT(Card(0).voltage_v, Card(1).voltage_v);
}

TEST_F(FiguresTest, KilledProcessesLeaveTheirSums) {
  npu::testing::Child child([](npu::testing::Child::Side& side) {
    auto other = Enter(Config());
    if (!other.ok()) return 1;
    (*other)->Work(1).done.busy_ns[kVector].store(7 * kSecond);
    (*other)->Work(1).done.tasks[kVector].store(3);
    (*other)->Work(1).now.running.store(1);
    (*other)->Work(1).now.running_since_ns.store(1);
    side.Send(1);
    pause();
    return 0;
  });
  ASSERT_EQ(child.Receive(), 1u);
  child.Kill();
  const CardFigures card = Card(1);
  EXPECT_EQ(card.tasks[kVector], 3u);
  EXPECT_DOUBLE_EQ(card.busy_s[kVector], 7) << "what it was running is not counted for ever";
  Move(10);
  EXPECT_DOUBLE_EQ(Card(1).busy_s[kVector], 7);
}

TEST_F(FiguresTest, RunningWorkShowsBeforeItEnds) {
  Move(1);
  WorkNow& now = machine_->Work(0).now;
  now.running_unit.store(static_cast<uint32_t>(Unit::kCube));
  now.running_since_ns.store(NowNs(layout()));
  now.running.store(1);
  Move(2);
  EXPECT_NEAR(Card(0).use_cube, 1, 0.001);
  now.running.store(0);
}

TEST_F(FiguresTest, ResetsAndClearsTouchOnlyTheRunningLife) {
  CardBoard& board = layout().figures.boards[1];
  board.ecc_single.store(4);
  board.ecc_single_life.store(9);
  ASSERT_TRUE(ClearEcc("test", 1).ok());
  EXPECT_EQ(Card(1).ecc_single, 0u);
  EXPECT_EQ(Card(1).ecc_single_life, 9u);
  ASSERT_TRUE(ResetCard("test", 1).ok());
  EXPECT_EQ(Card(1).resets, 1u);
  EXPECT_FALSE(ResetCard("test", 2).ok());
}

TEST_F(FiguresTest, OperatorsGoToTheirUnits) {
  for (const char* cube :
       {"aclnnMm", "aclnnMatmul", "aclnnAddmm", "aclnnInplaceAddmm", "aclnnBatchMatMul", "aclnnConvolution",
        "aclnnConvolutionBackward", "aclnnFlashAttentionScoreGrad", "aclnnBaddbmm", "aclnnMv", "aclnnLSTM"}) {
    EXPECT_EQ(UnitOfFunction(cube), Unit::kCube) << cube;
  }
  for (const char* vector : {"aclnnAdd", "aclnnInplaceMul", "aclnnSoftmax", "aclnnLayerNorm", "aclnnMvlgamma",
                             "aclnnForeachAddList", "aclnnReduceSum"}) {
    EXPECT_EQ(UnitOfFunction(vector), Unit::kVector) << vector;
  }
}

}  // namespace
}  // namespace npu::device
