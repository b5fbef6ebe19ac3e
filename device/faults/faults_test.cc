#include "device/faults/faults.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "base/status/boundary.h"
#include "device/faults/act.h"
#include "device/figures/model.h"
#include "device/figures/read.h"
#include "device/hbm/hbm.h"
#include "device/machine/state_file.h"
#include "device/testing/isolated.h"
#include "gen/fault_errors.h"

namespace npu::device {
namespace {

MachineConfig Config() {
  MachineConfig config;
  config.name = "test";
  return config;
}

FaultSpec Spec(FaultKind kind, int card = -1) {
  FaultSpec spec;
  spec.kind = kind;
  spec.card = card;
  return spec;
}

class FaultsTest : public npu::testing::OwnMachine {
 protected:
  void TearDown() override {
    ClearFaults(Config(), {}).status().ok();
    OwnMachine::TearDown();
  }
  static uint32_t Add(const FaultSpec& spec) {
    auto id = AddFault(Config(), spec);
    EXPECT_TRUE(id.ok()) << id.status().Message();
    return id.ok() ? *id : 0;
  }
  static CardFigures Card(int card) { return ReadFigures(Config())->cards[static_cast<size_t>(card)]; }
};

Status Never() { return {}; }
constexpr TaskWork kKernel{.op = "aclnnAdd", .unit = static_cast<uint8_t>(Unit::kVector)};
constexpr TaskWork kLink{.op = "HcclAllReduce", .unit = static_cast<uint8_t>(Unit::kLink)};

TEST_F(FaultsTest, EveryKindHasANameAndFacts) {
  std::set<std::string_view> names;
  for (uint32_t kind = 1; kind < kFaultKinds; ++kind) {
    const FaultFacts* facts = FactsOf(static_cast<FaultKind>(kind));
    ASSERT_NE(facts, nullptr) << kind;
    EXPECT_EQ(FaultByName(facts->name), facts);
    EXPECT_TRUE(names.insert(facts->name).second);
    EXPECT_FALSE(facts->help.empty());
  }
  EXPECT_EQ(FaultByName("card-lots"), nullptr);
  EXPECT_EQ(FaultByName(""), nullptr);
}

TEST_F(FaultsTest, OutliveEveryProcessUntilCleared) {
  const uint32_t id = Add(Spec(FaultKind::kCardLost, 1));
  for (int round = 0; round < 2; ++round) {
    ISOLATED({
      ASSERT_TRUE(Join().ok());
      EXPECT_FALSE(Card(1).present);
      EXPECT_TRUE(Card(0).present);
    });
  }
  EXPECT_EQ(Card(1).health, 3u);
  EXPECT_EQ(Card(1).fault_codes, std::vector<uint32_t>{0x40F84E00});
  EXPECT_EQ(Card(0).health, 0u);
  EXPECT_EQ(*ClearFaults(Config(), {.id = id}), 1);
  EXPECT_TRUE(Card(1).present);
  EXPECT_TRUE(Card(1).fault_codes.empty());
  EXPECT_FALSE(ReadFigures(Config())->exists) << "the machine went with its last fault";
}

TEST_F(FaultsTest, SurviveThatTheMachineIsMadeAnew) {
  Add(Spec(FaultKind::kEccDouble, 0));
  MachineConfig four = Config();
  four.cards = 4;
  auto machine = Enter(four);
  ASSERT_TRUE(machine.ok()) << machine.status().Message();
  EXPECT_EQ((*machine)->cards(), 4);
  EXPECT_EQ(Card(0).fault_codes, std::vector<uint32_t>{0x80E01801});
}

TEST_F(FaultsTest, WrongWishesAreRefused) {
  EXPECT_FALSE(AddFault(Config(), Spec(FaultKind::kCardLost, 2)).ok());
  FaultSpec spec = Spec(FaultKind::kSlow);
  spec.factor = 1;
  EXPECT_FALSE(AddFault(Config(), spec).ok());
  spec = Spec(FaultKind::kPacketLoss);
  spec.chance = 1.5;
  EXPECT_FALSE(AddFault(Config(), spec).ok());
  EXPECT_FALSE(AddFault(Config(), Spec(FaultKind::kCallFails)).ok());
  EXPECT_FALSE(AddFault(Config(), Spec(FaultKind::kErrorCode)).ok());
  spec = Spec(FaultKind::kOverTemperature);
  spec.amount = 5;
  EXPECT_FALSE(AddFault(Config(), spec).ok());
  EXPECT_FALSE(AddFault(Config(), Spec(FaultKind::kNone)).ok());
}

TEST_F(FaultsTest, WorkOnALostCardFailsByName) {
  Add(Spec(FaultKind::kCardLost, 0));
  ISOLATED({
    ASSERT_TRUE(Join().ok());
    const Status lost = BeforeWork(Meter::Of(0), kKernel, Never);
    EXPECT_EQ(AclCode(lost.code()), 507010);
    EXPECT_NE(lost.Message().find("card-lost"), std::string::npos) << lost.Message();
    EXPECT_TRUE(BeforeWork(Meter::Of(1), kKernel, Never).ok());
    EXPECT_EQ(AclCode(hbm::Allocate(0, 1 << 20).status().code()), 507010);
    EXPECT_TRUE(hbm::Allocate(1, 1 << 20).ok());
  });
}

TEST_F(FaultsTest, HangEndsWithTheFaultOrWhoGivesUp) {
  const uint32_t id = Add(Spec(FaultKind::kHang));
  ISOLATED({
    ASSERT_TRUE(Join().ok());
    int asked = 0;
    const Status gave_up =
        BeforeWork(Meter::Of(0), kKernel, [&] { return ++asked < 5 ? Status() : Error(Code::kTaskAbort, "enough"); });
    EXPECT_EQ(gave_up.code(), Code::kTaskAbort);
    asked = 0;
    EXPECT_TRUE(BeforeWork(Meter::Of(0), kKernel, [&] {
                  if (++asked == 3) {
                    EXPECT_EQ(*ClearFaults(Config(), {.id = id}), 1);
                  }
                  return Status();
                }).ok());
    EXPECT_GE(asked, 3);
  });
}

TEST_F(FaultsTest, AnExecuteLimitEndsAHang) {
  Add(Spec(FaultKind::kHang, 1));
  ISOLATED({
    ASSERT_TRUE(Join().ok());
    execute_limit_us.store(+[]() -> uint64_t { return 20'000; });
    EXPECT_EQ(AclCode(BeforeWork(Meter::Of(1), kKernel, Never).code()), 507014);
  });
}

TEST_F(FaultsTest, ADoubleBitErrorIsCountedAndPaidForOnce) {
  Add(Spec(FaultKind::kEccDouble, 1));
  FaultSpec singles = Spec(FaultKind::kEccSingle, 0);
  singles.times = 17;
  Add(singles);
  EXPECT_EQ(Card(1).ecc_double, 1u);
  EXPECT_EQ(Card(1).isolated_double, 1u);
  EXPECT_EQ(Card(0).ecc_single, 17u);
  EXPECT_EQ(Card(0).health, 1u);
  ISOLATED({
    ASSERT_TRUE(Join().ok());
    EXPECT_TRUE(BeforeWork(Meter::Of(0), kKernel, Never).ok()) << "single-bit errors are corrected";
    EXPECT_EQ(AclCode(BeforeWork(Meter::Of(1), kKernel, Never).code()), 507054);
    EXPECT_TRUE(BeforeWork(Meter::Of(1), kKernel, Never).ok());
  });
}

TEST_F(FaultsTest, BeginsAfterSoManyPiecesOfWork) {
  FaultSpec spec = Spec(FaultKind::kCardLost, 0);
  spec.after = 3;
  Add(spec);
  EXPECT_TRUE(Card(0).present);
  ISOLATED({
    ASSERT_TRUE(Join().ok());
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(BeforeWork(Meter::Of(0), kKernel, Never).ok()) << i;
    EXPECT_FALSE(BeforeWork(Meter::Of(0), kKernel, Never).ok());
    EXPECT_FALSE(BeforeWork(Meter::Of(0), kKernel, Never).ok());
  });
  EXPECT_FALSE(Card(0).present);
}

TEST_F(FaultsTest, ProbabilityFollowsItsSeed) {
  const uint64_t seed = std::random_device{}();
  SCOPED_TRACE(seed);
  const auto hits = [&](uint64_t s, double chance) {
    FaultSpec spec = Spec(FaultKind::kCallFails);
    spec.call = "aclrtMalloc";
    spec.code = 207001;
    spec.chance = chance;
    spec.seed = s;
    const uint32_t id = Add(spec);
    auto machine = Enter(Config());
    std::vector<bool> pattern;
    for (FaultRecord& fault : (*machine)->shared().figures.faults.faults) {
      if (fault.state.load() != kFaultArmed) continue;
      for (int i = 0; i < 2000; ++i) pattern.push_back(Matches(fault));
    }
    EXPECT_EQ(*ClearFaults(Config(), {.id = id}), 1);
    return pattern;
  };
  const std::vector<bool> first = hits(seed, 0.3);
  EXPECT_EQ(first, hits(seed, 0.3));
  EXPECT_NE(first, hits(seed + 1, 0.3));
  // 2,000 trials of 0.3: six standard deviations are 123.
  EXPECT_NEAR(static_cast<double>(std::count(first.begin(), first.end(), true)), 600, 123);
}

TEST_F(FaultsTest, TheNthCallFailsWithItsCode) {
  FaultSpec spec = Spec(FaultKind::kCallFails);
  spec.call = "aclrtOfTest";
  spec.code = 123456;
  spec.after = 2;
  spec.times = 1;
  Add(spec);
  ISOLATED({
    // Before any machine is joined, and after.
    const auto call = [] { return boundary::Run("aclrtOfTest", AclCode, [] { return Status(); }); };
    const auto other = [] { return boundary::Run("aclrtOfAnother", AclCode, [] { return Status(); }); };
    EXPECT_EQ(call(), 0);
    ASSERT_TRUE(Join().ok());
    EXPECT_EQ(call(), 0);
    EXPECT_EQ(other(), 0);
    EXPECT_EQ(call(), 123456);
    EXPECT_EQ(call(), 0);
  });
}

TEST_F(FaultsTest, RanksAreKeptApart) {
  FaultSpec spec = Spec(FaultKind::kSlow);
  for (const int rank : {1, 2}) {
    spec.rank = rank;
    spec.factor = 10 + rank;
    Add(spec);
  }
  auto machine = Enter(Config());
  const StateLayout& layout = (*machine)->shared();
  for (const char* rank : {"2", "1"}) {
    setenv("RANK", rank, 1);
    const FaultRecord* fault = FaultHere(layout, FaultKind::kSlow, 0);
    ASSERT_NE(fault, nullptr) << rank;
    EXPECT_TRUE(IsForThisProcess(*fault));
    EXPECT_EQ(fault->factor_permille.load(), 10'000u + 1000 * static_cast<uint32_t>(std::atoi(rank)));
  }
  setenv("RANK", "0", 1);
  EXPECT_EQ(FaultHere(layout, FaultKind::kSlow, 0), nullptr);
  unsetenv("RANK");
}

// Which card a rank has is known once its process works on one. Until then none shows the fault, then that one alone.
TEST_F(FaultsTest, AFaultOfARankShowsOnTheRanksCardAlone) {
  auto machine = Enter(Config());
  for (const FaultKind kind :
       {FaultKind::kCardLost, FaultKind::kLinkDown, FaultKind::kEccDouble, FaultKind::kEccSingle}) {
    FaultSpec spec = Spec(kind);
    spec.rank = 1;
    Add(spec);
  }
  const auto healthy = [](const CardFigures& card) {
    return card.present && card.link_up && card.link_downs == 0 && card.ecc_double == 0 && card.ecc_single == 0 &&
           card.health == 0 && card.fault_codes.empty();
  };
  EXPECT_TRUE(healthy(Card(0)) && healthy(Card(1)));
  ISOLATED({
    setenv("RANK", "0", 1);
    ASSERT_TRUE(Join().ok());
    EXPECT_TRUE(BeforeWork(Meter::Of(0), kKernel, Never).ok());
  });
  EXPECT_TRUE(healthy(Card(0)) && healthy(Card(1)));
  ISOLATED({
    setenv("RANK", "1", 1);
    ASSERT_TRUE(Join().ok());
    for (int i = 0; i < 3; ++i) EXPECT_FALSE(BeforeWork(Meter::Of(1), kKernel, Never).ok());
  });
  EXPECT_TRUE(healthy(Card(0)));
  EXPECT_FALSE(Card(1).present);
  EXPECT_FALSE(Card(1).link_up);
  EXPECT_EQ(Card(1).link_downs, 1u);
  EXPECT_EQ(Card(1).ecc_double, 1u);
  EXPECT_EQ(Card(1).ecc_single, 1u);
  EXPECT_EQ(Card(1).health, 3u);
  EXPECT_EQ(*ClearFaults(Config(), {}), 4);
  EXPECT_TRUE(Card(1).present && Card(1).link_up);
  EXPECT_EQ(Card(1).link_ups, 1u);
  EXPECT_EQ(Card(0).link_ups, 0u);
}

TEST_F(FaultsTest, AnErrorInTheMemoryOfEveryCardFailsWorkOnEach) {
  Add(Spec(FaultKind::kEccDouble));
  ISOLATED({
    ASSERT_TRUE(Join().ok());
    for (const int card : {0, 1}) {
      EXPECT_EQ(Card(card).ecc_double, 1u);
      EXPECT_FALSE(BeforeWork(Meter::Of(card), kKernel, Never).ok()) << card;
      EXPECT_TRUE(BeforeWork(Meter::Of(card), kKernel, Never).ok()) << card;
    }
  });
  EXPECT_EQ(Card(0).ecc_double, 1u);
}

// An error that work finds is in the memory of the card that it works on.
TEST_F(FaultsTest, AnErrorThatWorkFindsIsOnItsCard) {
  FaultSpec spec = Spec(FaultKind::kEccDouble);
  spec.after = 2;
  Add(spec);
  ISOLATED({
    ASSERT_TRUE(Join().ok());
    for (int i = 0; i < 2; ++i) EXPECT_TRUE(BeforeWork(Meter::Of(0), kKernel, Never).ok());
    EXPECT_FALSE(BeforeWork(Meter::Of(1), kKernel, Never).ok());
    EXPECT_TRUE(BeforeWork(Meter::Of(1), kKernel, Never).ok());
  });
  EXPECT_EQ(Card(0).ecc_double, 0u);
  EXPECT_EQ(Card(1).ecc_double, 1u);
}

// Whatever the order they were asked for in, the worst of a kind acts, and the next worst when it has ended.
TEST_F(FaultsTest, OfSeveralOfAKindTheWorstActs) {
  auto machine = Enter(Config());
  const StateLayout& layout = (*machine)->shared();
  const auto slow = [&](double factor, int card) {
    FaultSpec spec = Spec(FaultKind::kSlow, card);
    spec.factor = factor;
    return Add(spec);
  };
  slow(2, 0);
  const uint32_t worst = slow(8, -1);
  slow(4, 0);
  EXPECT_EQ(ActiveFault(layout, FaultKind::kSlow, 0)->factor_permille.load(), 8000u);
  EXPECT_EQ(*ClearFaults(Config(), {.id = worst}), 1);
  EXPECT_EQ(ActiveFault(layout, FaultKind::kSlow, 0)->factor_permille.load(), 4000u);
  EXPECT_EQ(ActiveFault(layout, FaultKind::kSlow, 1), nullptr);
  for (const uint64_t lanes : {8, 2, 4}) {
    FaultSpec spec = Spec(FaultKind::kPcieDegraded, 1);
    spec.amount = lanes;
    Add(spec);
  }
  EXPECT_EQ(Card(1).pcie_lanes, 2);
}

TEST_F(FaultsTest, LinksFailFlapAndLosePackets) {
  const uint32_t down = Add(Spec(FaultKind::kLinkDown, 0));
  EXPECT_FALSE(Card(0).link_up);
  EXPECT_EQ(Card(0).link_downs, 1u);
  EXPECT_EQ(Card(0).fault_codes, std::vector<uint32_t>{0x81078603});
  FaultSpec loss = Spec(FaultKind::kPacketLoss, 1);
  loss.amount = 1;
  Add(loss);
  ISOLATED({
    ASSERT_TRUE(Join().ok());
    EXPECT_EQ(BeforeWork(Meter::Of(0), kLink, Never).code(), Code::kLinkError);
    EXPECT_TRUE(BeforeWork(Meter::Of(0), kKernel, Never).ok()) << "kernels need no link";
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(BeforeWork(Meter::Of(1), kLink, Never).ok());
  });
  EXPECT_EQ(Card(1).packets_lost, 3u);
  EXPECT_EQ(*ClearFaults(Config(), {.id = down}), 1);
  EXPECT_TRUE(Card(0).link_up);
  EXPECT_EQ(Card(0).link_ups, 1u);
}

TEST_F(FaultsTest, FlappingFollowsItsPeriod) {
  auto machine = Enter(Config());
  StateLayout& layout = (*machine)->shared();
  layout.figures.clock.ns.store(1'000'000'000'000);
  layout.figures.clock.held.store(1);
  FaultSpec spec = Spec(FaultKind::kLinkFlapping, 0);
  spec.period_ms = 1000;
  Add(spec);
  EXPECT_FALSE(Card(0).link_up);
  layout.figures.clock.ns.fetch_add(600'000'000);
  EXPECT_TRUE(Card(0).link_up);
  EXPECT_EQ(Card(0).health, 0u);
  layout.figures.clock.ns.fetch_add(500'000'000);
  EXPECT_FALSE(Card(0).link_up);
  EXPECT_EQ(Card(0).link_downs, 2u);
}

TEST_F(FaultsTest, HeatThrottlesAndCools) {
  auto machine = Enter(Config());
  StateLayout& layout = (*machine)->shared();
  layout.figures.clock.ns.store(1'000'000'000'000);
  layout.figures.clock.held.store(1);
  const auto later = [&](double seconds) {
    layout.figures.clock.ns.fetch_add(static_cast<uint64_t>(seconds * 1e9));
    MoveModel(layout, 0, NowNs(layout));
  };
  later(0);
  Add(Spec(FaultKind::kOverTemperature, 0));
  later(10);
  (*machine)->Work(0).done.busy_ns[0].fetch_add(100'000'000);
  (*machine)->Work(0).done.any_ns.fetch_add(100'000'000);
  later(0.2);
  EXPECT_NEAR(Card(0).chip_c, 110, 0.5);
  EXPECT_GT(ThrottleFactor(layout.figures.boards[0]), 1.2);
  EXPECT_LT(Card(0).core_mhz, (*machine)->profile().cube_mhz);
  EXPECT_EQ(Card(0).health, 2u);
  EXPECT_EQ(*ClearFaults(Config(), {}), 1);
  later(120);
  EXPECT_LT(Card(0).chip_c, kThrottleFromC);
  EXPECT_EQ(ThrottleFactor(layout.figures.boards[0]), 1);
}

TEST_F(FaultsTest, LeaksAndFragmentsTakeMemory) {
  setenv("ANYNPU_HBM", "1G", 1);
  auto machine = Enter(*ConfigFromEnvironment());
  StateLayout& layout = (*machine)->shared();
  layout.figures.clock.ns.store(1'000'000'000'000);
  layout.figures.clock.held.store(1);
  const uint64_t before = Card(0).used_bytes;
  FaultSpec leak = Spec(FaultKind::kHbmLeak, 0);
  leak.amount = 100 << 20;
  Add(leak);
  layout.figures.clock.ns.fetch_add(2'000'000'000);
  EXPECT_EQ(Card(0).used_bytes - before, 200u << 20);
  layout.figures.clock.ns.fetch_add(100'000'000'000);
  EXPECT_EQ(Card(0).free_bytes, 0u);
  ISOLATED({ EXPECT_EQ(hbm::Allocate(0, 64 << 20).status().code(), Code::kOutOfDeviceMemory); });
  FaultSpec pieces = Spec(FaultKind::kHbmFragmentation, 1);
  pieces.amount = 60;
  Add(pieces);
  EXPECT_NEAR(Card(1).fragmentation_ratio, 0.6, 0.01);
  ISOLATED({
    const uint64_t free = Card(1).free_bytes;
    auto refused = hbm::Allocate(1, free / 2);
    EXPECT_EQ(refused.status().code(), Code::kOutOfDeviceMemory);
    EXPECT_NE(refused.status().Message().find("no piece larger"), std::string::npos) << refused.status().Message();
    EXPECT_TRUE(hbm::Allocate(1, free / 4).ok());
  });
}

TEST_F(FaultsTest, FragmentationOfRealBlocksIsMeasured) {
  setenv("ANYNPU_HBM", "512M", 1);
  ISOLATED({
    std::vector<void*> blocks;
    while (true) {
      auto block = hbm::Allocate(0, 8 << 20);
      if (!block.ok()) break;
      blocks.push_back(*block);
    }
    ASSERT_GT(blocks.size(), 20u);
    for (size_t i = 0; i < blocks.size(); i += 2) ASSERT_TRUE(hbm::Free(blocks[i]).ok());
    const CardFigures card = Card(0);
    // Free blocks of 8 MiB, none beside another: the largest is one, or one with the rest at the end of the card.
    EXPECT_GT(card.fragmentation_ratio, 0.85);
    for (size_t i = 1; i < blocks.size(); i += 2) ASSERT_TRUE(hbm::Free(blocks[i]).ok());
    EXPECT_LT(Card(0).fragmentation_ratio, 0.01);
  });
}

TEST_F(FaultsTest, ClearChoosesByKindAndCard) {
  Add(Spec(FaultKind::kSlow, 0));
  Add(Spec(FaultKind::kSlow, 1));
  Add(Spec(FaultKind::kHang, 1));
  EXPECT_EQ(ReadFigures(Config())->faults.size(), 3u);
  EXPECT_EQ(*ClearFaults(Config(), {.kind = FaultKind::kSlow, .card = 1}), 1);
  EXPECT_EQ(*ClearFaults(Config(), {.id = 999}), 0);
  EXPECT_EQ(*ClearFaults(Config(), {}), 2);
}

}  // namespace
}  // namespace npu::device
