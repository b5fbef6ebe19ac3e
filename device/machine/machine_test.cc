#include "device/figures/read.h"
#include "device/machine/machine.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <random>
#include <thread>

#include "device/doorbell/doorbell.h"
#include "device/machine/cells.h"
#include "device/machine/repair.h"
#include "device/machine/state_file.h"
#include "device/testing/child.h"

namespace npu::device {
namespace {

using namespace std::chrono_literals;
using npu::testing::Child;

class MachineTest : public ::testing::Test {
 protected:
  npu::testing::ScratchRuntimeDir scratch_;
  MachineConfig Config(const char* name = "m") {
    MachineConfig config;
    config.name = name;
    return config;
  }
  std::string FileOf(const std::string& name) { return scratch_.path() + "/anynpu/" + name + ".v" + std::to_string(kStateVersion); }
  bool Exists(const std::string& name) { return access(FileOf(name).c_str(), F_OK) == 0; }
};

TEST_F(MachineTest, IsMadeAtFirstUseAndGoneWithItsLastProcess) {
  {
    auto machine = Enter(Config());
    ASSERT_TRUE(machine.ok()) << machine.status().Message();
    EXPECT_EQ((*machine)->cards(), kDefaultCards);
    EXPECT_EQ((*machine)->profile().soc, "Ascend910B4");
    EXPECT_EQ((*machine)->hbm_bytes(), uint64_t{32} << 30);
    EXPECT_EQ((*machine)->cann(), "9.1.0");
    EXPECT_EQ((*machine)->driver(), "25.5.2");
    EXPECT_TRUE(Exists("m"));
    struct stat s {};
    ASSERT_EQ(stat(FileOf("m").c_str(), &s), 0);
    EXPECT_EQ(s.st_mode & 07777, 0600u);
    ASSERT_EQ(stat((scratch_.path() + "/anynpu").c_str(), &s), 0);
    EXPECT_EQ(s.st_mode & 07777, 0700u);
    EXPECT_TRUE((*machine)->IsAlive((*machine)->slot()));
  }
  EXPECT_FALSE(Exists("m"));
}

TEST_F(MachineTest, RefusesAnotherShapeWhileInUseAndTakesItWhenIdle) {
  MachineConfig four = Config();
  four.cards = 4;
  four.soc = "910B3";
  four.hbm_bytes = uint64_t{1} << 30;
  {
    auto first = Enter(four);
    ASSERT_TRUE(first.ok());
    EXPECT_EQ((*first)->system_bytes(), (uint64_t{1} << 30) / 65536 * 3424 >> 20 << 20);
    auto adopt = Enter(Config());  // asks for nothing: takes what is there
    ASSERT_TRUE(adopt.ok());
    EXPECT_EQ((*adopt)->cards(), 4);
    MachineConfig other = Config();
    other.cards = 2;
    auto refused = Enter(other);
    ASSERT_FALSE(refused.ok());
    EXPECT_NE(refused.status().Message().find("has cards: 4; this program asks for 2"), std::string::npos)
        << refused.status().Message();
    other.cards = 4;
    other.soc = "Ascend910B1";
    EXPECT_FALSE(Enter(other).ok());
  }
  MachineConfig two = Config();
  two.cards = 2;
  EXPECT_TRUE(Enter(two).ok());
}

TEST_F(MachineTest, BadConfigurationIsNamed) {
  MachineConfig config = Config();
  config.soc = "Ascend999";
  EXPECT_NE(Enter(config).status().Message().find("Ascend910B4-1"), std::string::npos);
  config = Config();
  config.cann = "1.2.3";
  EXPECT_NE(Enter(config).status().Message().find("8.5.0"), std::string::npos);
  for (const char* name : {"", "../x", ".hidden", "a/b", "with space"}) EXPECT_FALSE(Enter(Config(name)).ok()) << name;
  for (const char* value : {"0", "65", "-1", "two", "2x"}) {
    setenv("ANYNPU_CARDS", value, 1);
    EXPECT_FALSE(ConfigFromEnvironment().ok()) << value;
  }
  unsetenv("ANYNPU_CARDS");
  setenv("ANYNPU_HBM", "lots", 1);
  EXPECT_NE(ConfigFromEnvironment().status().Message().find("ANYNPU_HBM"), std::string::npos);
  unsetenv("ANYNPU_HBM");
}

TEST_F(MachineTest, KeptMachineStaysAndDropTakesItAway) {
  MachineConfig config = Config();
  config.cards = 3;
  ASSERT_TRUE(Keep(config).ok());
  EXPECT_TRUE(Exists("m"));
  { ASSERT_EQ((*Enter(Config()))->cards(), 3); }
  EXPECT_TRUE(Exists("m"));
  auto snapshot = ReadFigures(Config());
  ASSERT_TRUE(snapshot.ok());
  EXPECT_TRUE(snapshot->kept);
  EXPECT_EQ(snapshot->cards.size(), 3u);
  ASSERT_TRUE(Drop("m").ok());
  EXPECT_FALSE(Exists("m"));
  EXPECT_TRUE(Drop("m").ok());
}

TEST_F(MachineTest, FiguresOfAnAbsentMachineShowsTheIdleOne) {
  auto snapshot = ReadFigures(Config("nobody"));
  ASSERT_TRUE(snapshot.ok());
  EXPECT_FALSE(snapshot->exists);
  ASSERT_EQ(snapshot->cards.size(), 2u);
  EXPECT_EQ(snapshot->cards[0].total_bytes >> 20, 32768u);
  EXPECT_EQ(snapshot->cards[0].used_bytes >> 20, 2922u);
  EXPECT_EQ(snapshot->cards[0].power_w, 89.9);
  EXPECT_EQ(snapshot->cards[0].chip_c, 39);
  EXPECT_FALSE(Exists("nobody"));
}

TEST_F(MachineTest, ProcessesShowInTheFigures) {
  auto machine = Enter(Config());
  ASSERT_TRUE(machine.ok());
  (*machine)->SetOpen(1, true);
  (*machine)->Mine(1).used.store(300u << 20);
  auto figures = ReadFigures(Config());
  ASSERT_TRUE(figures.ok());
  EXPECT_TRUE(figures->cards[0].processes.empty());
  ASSERT_EQ(figures->cards[1].processes.size(), 1u);
  EXPECT_EQ(figures->cards[1].processes[0].pid, getpid());
  EXPECT_EQ(figures->cards[1].processes[0].used_bytes, 300u << 20);
  EXPECT_EQ(figures->cards[1].used_bytes, (2922u + 300u) << 20);
}

TEST_F(MachineTest, LinkedOrForeignDirectoryIsRefused) {
  const std::string dir = scratch_.path() + "/anynpu";
  ASSERT_EQ(symlink("/tmp", dir.c_str()), 0);
  EXPECT_NE(Enter(Config()).status().Message().find("link"), std::string::npos);
  ASSERT_EQ(unlink(dir.c_str()), 0);
  ASSERT_EQ(mkdir(dir.c_str(), 0700), 0);
  ASSERT_EQ(chmod(dir.c_str(), 0755), 0);
  EXPECT_NE(Enter(Config()).status().Message().find("755"), std::string::npos);
  ASSERT_EQ(chmod(dir.c_str(), 0700), 0);
  ASSERT_EQ(symlink("/etc/passwd", FileOf("m").c_str()), 0);
  EXPECT_NE(Enter(Config()).status().Message().find("link"), std::string::npos);
}

// kill -9 of the only process: its slot and memory are returned to whoever looks next, and nothing stays.
TEST_F(MachineTest, KilledProcessLeavesNothing) {
  auto machine = Enter(Config());
  ASSERT_TRUE(machine.ok());
  Child child([&](Child::Side& side) {
    auto mine = Enter(Config());
    if (!mine.ok()) return 1;
    (*mine)->Mine(0).used.store(uint64_t{5} << 30);
    auto cell = MakeCell(**mine);
    side.Send((*mine)->slot());
    side.Send(cell->id);
    pause();
    return 0;
  });
  const uint32_t slot = static_cast<uint32_t>(child.Receive());
  const uint64_t cell = child.Receive();
  EXPECT_TRUE((*machine)->IsAlive(slot));
  EXPECT_EQ((*machine)->PidOf(slot), child.pid());
  EXPECT_EQ((*machine)->UsedOn(0), uint64_t{5} << 30);
  EXPECT_NE(FindCell(**machine, cell), nullptr);
  const uint32_t rings = BellCount(**machine);
  child.Kill();  // not yet waited for: a zombie is dead
  EXPECT_FALSE((*machine)->IsAlive(slot));
  (*machine)->Repair(true);
  EXPECT_EQ((*machine)->UsedOn(0), 0u);
  EXPECT_EQ((*machine)->PidOf(slot), 0);
  EXPECT_EQ(FindCell(**machine, cell), nullptr);
  EXPECT_NE(BellCount(**machine), rings) << "the living are told";
}

TEST_F(MachineTest, FileOfKilledProcessesIsCleanedByTheNextLook) {
  Child child([&](Child::Side& side) {
    auto mine = Enter(Config());
    side.Send(mine.ok() ? 1 : 0);
    pause();
    return 0;
  });
  ASSERT_EQ(child.Receive(), 1u);
  child.Kill();
  EXPECT_TRUE(Exists("m"));
  EXPECT_FALSE(ReadFigures(Config())->exists);
  EXPECT_FALSE(Exists("m"));
}

TEST_F(MachineTest, LockOfAKilledProcessIsFree) {
  Child child([&](Child::Side& side) {
    auto file = StateFile::Open("m", StateFile::Missing::kCreate);  // returns locked
    side.Send(file.ok() ? 1 : 0);
    pause();
    return 0;
  });
  ASSERT_EQ(child.Receive(), 1u);
  child.Kill();
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_TRUE(Enter(Config()).ok());
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 60s);  // a hang
}

TEST_F(MachineTest, ForkedChildIsAProcessOfItsOwn) {
  setenv("ANYNPU_MACHINE", "forked", 1);
  auto machine = Join();
  ASSERT_TRUE(machine.ok()) << machine.status().Message();
  EXPECT_EQ(*Join(), *machine);
  Child child([&](Child::Side& side) {
    side.Send(Joined() == nullptr ? 1 : 0);
    auto mine = Join();
    side.Send(mine.ok() ? (*mine)->slot() : 0);
    return 0;
  });
  EXPECT_EQ(child.Receive(), 1u);
  const uint64_t slot = child.Receive();
  EXPECT_NE(slot, 0u);
  EXPECT_NE(slot, (*machine)->slot());
  EXPECT_EQ(child.Wait(), 0);
  EXPECT_TRUE((*machine)->IsAlive((*machine)->slot())) << "the child's exit left the parent's slot alone";
  unsetenv("ANYNPU_MACHINE");
}

// What a program does that a launcher has become by exec; run by the test below and not by itself.
TEST(ExecHelper, DISABLED_JoinsAndCounts) {
  auto machine = Join();
  ASSERT_TRUE(machine.ok()) << machine.status().Message();
  EXPECT_EQ((*machine)->cards(), 5);
  int live = 0;
  for (const Slot& slot : (*machine)->shared().slots) live += slot.state.load() == kSlotLive;
  EXPECT_EQ(live, 1) << "the launcher's slot is gone";
}

TEST_F(MachineTest, LauncherHandsItsMachineOnThroughExec) {
  setenv("ANYNPU_MACHINE", "execed", 1);
  Child child([&](Child::Side& side) {
    MachineConfig config = Config("execed");
    config.cards = 5;
    auto machine = Enter(config);
    if (!machine.ok()) return 1;
    machine->release();  // as `anynpu run` does before it becomes the command
    side.Send(1);
    const char* const argv[] = {"device_test", "--gtest_filter=ExecHelper.*", "--gtest_also_run_disabled_tests",
                                "--gtest_brief=1", nullptr};
    execv("/proc/self/exe", const_cast<char* const*>(argv));
    return 2;
  });
  ASSERT_EQ(child.Receive(), 1u);
  EXPECT_EQ(child.Wait(), 0);
  EXPECT_FALSE(Exists("execed")) << "it ended with the program";
  unsetenv("ANYNPU_MACHINE");
}

// A process of another pid namespace: its pid says nothing here, so the lock on its byte decides whether it lives.
TEST_F(MachineTest, OtherPidNamespaceIsSeenAlive) {
  auto machine = Enter(Config());
  ASSERT_TRUE(machine.ok());
  Child outer([&](Child::Side& side) {
    if (!npu::testing::NewPidNamespace()) {
      side.Send(0);
      return 77;
    }
    const pid_t inner = fork();  // the first process of the new namespace
    if (inner == 0) {
      auto mine = Enter(Config());
      side.Send(mine.ok() ? (*mine)->slot() : 1);
      side.Send((*mine)->IsAlive((*mine)->slot()) && (*mine)->IsAlive((*machine)->slot()) ? 1 : 0);
      side.Receive();
      kill(getpid(), SIGKILL);  // the first process of a namespace is deaf to its own SIGKILL
      _exit(0);
    }
    int status = 0;
    waitpid(inner, &status, 0);
    return 0;
  });
  const uint32_t slot = static_cast<uint32_t>(outer.Receive());
  if (slot == 0) GTEST_SKIP() << "no right to make pid namespaces here";
  ASSERT_NE(slot, 1u);
  EXPECT_EQ(outer.Receive(), 1u);
  EXPECT_TRUE((*machine)->IsAlive(slot));
  EXPECT_EQ((*machine)->PidOf(slot), 1);
  (*machine)->Repair(true);
  EXPECT_TRUE((*machine)->IsAlive(slot));
  outer.Send(1);
  EXPECT_EQ(outer.Wait(), 0);
  EXPECT_FALSE((*machine)->IsAlive(slot));
  (*machine)->Repair(true);
  EXPECT_EQ((*machine)->PidOf(slot), 0);
}

TEST_F(MachineTest, ManyProcessesJoinAndLeaveAtOnce) {
  std::vector<std::unique_ptr<Child>> children;
  for (int i = 0; i < 12; ++i) {
    children.push_back(std::make_unique<Child>([&](Child::Side&) {
      for (int round = 0; round < 20; ++round) {
        auto mine = Enter(Config());
        if (!mine.ok()) std::fprintf(stderr, "round %d: %s\n", round, mine.status().Message().c_str());
        if (!mine.ok() || !(*mine)->IsAlive((*mine)->slot())) return 1;
      }
      return 0;
    }));
  }
  for (auto& child : children) EXPECT_EQ(child->Wait(), 0);
  EXPECT_FALSE(Exists("m"));
}

TEST_F(MachineTest, BellWakesAnotherProcess) {
  auto machine = Enter(Config());
  ASSERT_TRUE(machine.ok());
  const uint32_t slot = (*machine)->slot();
  Child child([&](Child::Side& side) {
    auto mine = Enter(Config());
    if (!mine.ok()) return 1;
    side.Send((*mine)->slot());
    for (int i = 0; i < 200; ++i) {
      const uint32_t seen = BellCount(**mine);
      Ring(**mine, slot);
      if (!AwaitBell(**mine, seen, Deadline::In(60s))) return 2;
    }
    return 0;
  });
  const uint32_t peer = static_cast<uint32_t>(child.Receive());
  uint32_t seen = 0;
  for (int i = 0; i < 200; ++i) {
    ASSERT_TRUE(AwaitBell(**machine, seen, Deadline::In(60s)));
    seen = BellCount(**machine);
    Ring(**machine, peer);
  }
  // A ring may fall between two looks of the peer, so a few more until it has had its 200.
  int code = -1;
  while ((code = child.Poll()) == -1) {
    Ring(**machine, peer);
    std::this_thread::sleep_for(1ms);
  }
  EXPECT_EQ(code, 0);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_FALSE(AwaitBell(**machine, BellCount(**machine), Deadline::In(20ms)));
  EXPECT_GE(std::chrono::steady_clock::now() - begin, 19ms);
}

// The state file is hostile: random bytes in it may give an error or a machine made anew, never a crash or a hang.
TEST_F(MachineTest, SurvivesHostileContent) {
  const uint32_t seed = std::random_device{}();
  SCOPED_TRACE(::testing::Message() << "seed " << seed);
  std::mt19937_64 random(seed);
  for (int round = 0; round < 300; ++round) {
    ASSERT_TRUE(Keep(Config()).ok());
    const int fd = open(FileOf("m").c_str(), O_RDWR);
    ASSERT_GE(fd, 0);
    const int kind = static_cast<int>(random() % 4);
    if (kind == 3) {  // another size
      ASSERT_EQ(ftruncate(fd, static_cast<off_t>(random() % (2 * sizeof(StateLayout)))), 0);
    } else {
      // Header, slots or anywhere; few or many bytes.
      const size_t limit = kind == 0   ? sizeof(StateHeader)
                           : kind == 1 ? sizeof(StateHeader) + 4096 * 8
                                       : sizeof(StateLayout);
      for (uint64_t n = 1 + random() % 600; n > 0; --n) {
        const uint64_t value = random();
        const size_t bytes = 1 + random() % 8;
        ASSERT_EQ(pwrite(fd, &value, bytes, static_cast<off_t>(random() % (limit - 8))), static_cast<ssize_t>(bytes));
      }
    }
    close(fd);
    auto snapshot = ReadFigures(Config());
    if (snapshot.ok()) {
      EXPECT_LE(snapshot->cards.size(), static_cast<size_t>(kMaxCards));
    }
    if (auto machine = Enter(Config()); machine.ok()) {
      (*machine)->Repair(true);
      for (int card = 0; card < (*machine)->cards(); ++card) EXPECT_LE((*machine)->UsedOn(card), uint64_t{1} << 62);
      for (int i = 0; i < 20; ++i) {
        (*machine)->IsAlive(static_cast<uint32_t>(random()));
        FindCell(**machine, random() % 2 == 0 ? random() : random() % 5000);
      }
      RingAll(**machine);
      // Garbage while joined.
      for (int i = 0; i < 200; ++i) {
        reinterpret_cast<volatile uint8_t*>(&(*machine)->shared())[random() % sizeof(StateLayout)] =
            static_cast<uint8_t>(random());
      }
      (*machine)->UsedOn(0);
      (*machine)->HostUseOfAll();
      (*machine)->Repair(true);
      auto cell = MakeCell(**machine);
      if (cell.ok()) FreeCell(**machine, cell->id);
    }
    unlink(FileOf("m").c_str());
  }
}

}  // namespace
}  // namespace npu::device
