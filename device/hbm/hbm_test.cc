#include "device/hbm/hbm.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <fstream>
#include <numeric>
#include <random>
#include <thread>

#include "device/doorbell/doorbell.h"
#include "device/hbm/host_memory.h"
#include "device/hbm/region.h"
#include "device/hbm/world.h"
#include "device/machine/machine.h"
#include "device/testing/isolated.h"

namespace npu::hbm {
namespace {

using npu::testing::Child;

constexpr size_t kMiB = size_t{1} << 20;

class HbmTest : public npu::testing::OwnMachine {};

void Fill(void* at, size_t bytes, uint64_t seed) {
  std::mt19937_64 random(seed);
  auto* words = static_cast<uint64_t*>(at);
  for (size_t i = 0; i < bytes / 8; ++i) words[i] = random();
}
bool Holds(const void* at, size_t bytes, uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto* words = static_cast<const uint64_t*>(at);
  for (size_t i = 0; i < bytes / 8; ++i) {
    if (words[i] != random()) return false;
  }
  return true;
}

TEST_F(HbmTest, AllocatesAlignedCountedMemory) {
  ISOLATED({
    auto before = UsageOf(1);
    ASSERT_TRUE(before.ok()) << before.status().Message();
    EXPECT_EQ(before->total, uint64_t{32} << 30);
    EXPECT_EQ(before->used, 2922 * kMiB);
    auto small = Allocate(1, 100);
    auto big = Allocate(1, 20 * kMiB);
    ASSERT_TRUE(small.ok() && big.ok());
    EXPECT_EQ(reinterpret_cast<uintptr_t>(*small) % 512, 0u);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(*big) % (2 * kMiB), 0u);
    EXPECT_EQ(UsageOf(1)->used - before->used, 20 * kMiB + 512);
    EXPECT_EQ(UsageOf(1)->mine, 20 * kMiB + 512);
    EXPECT_EQ(UsageOf(0)->used, before->used);
    Fill(Local(*big), 20 * kMiB, 7);
    EXPECT_TRUE(Holds(Local(static_cast<char*>(*big)), 20 * kMiB, 7));
    auto block = Find(static_cast<char*>(*big) + 12345);
    ASSERT_TRUE(block);
    EXPECT_EQ(block->client, *big);
    EXPECT_EQ(block->bytes, 20 * kMiB);
    EXPECT_EQ(block->card, 1);
    EXPECT_EQ(block->slot, (*device::Join())->slot());
    EXPECT_TRUE(Free(*big).ok() && Free(*small).ok());
    EXPECT_EQ(UsageOf(1)->used, before->used);
  });
}

TEST_F(HbmTest, FreedMemoryIsHandedOutAgainWithItsPages) {
  ISOLATED({
    auto first = Allocate(0, 20 * kMiB);
    ASSERT_TRUE(first.ok());
    std::memset(Local(*first), 0x5A, 20 * kMiB);
    ASSERT_TRUE(Free(*first).ok());
    auto again = Allocate(0, 20 * kMiB);
    ASSERT_TRUE(again.ok());
    EXPECT_EQ(*first, *again);
    EXPECT_EQ(static_cast<unsigned char*>(Local(*again))[5000], 0x5A)
        << "contents are undefined; here they show the reuse";
    ASSERT_TRUE(Free(*again).ok());
    EXPECT_EQ(Trim(), 20 * kMiB);
    auto fresh = Allocate(0, 20 * kMiB);
    ASSERT_TRUE(fresh.ok());
    EXPECT_EQ(static_cast<unsigned char*>(Local(*fresh))[5000], 0);
  });
}

TEST_F(HbmTest, WrongAddressesHaveDistinctTexts) {
  ISOLATED({
    auto p = Allocate(0, 4 * kMiB);
    auto q = Allocate(0, 4 * kMiB);
    ASSERT_TRUE(p.ok() && q.ok());
    char* const at = static_cast<char*>(*p);
    int host = 0;
    const auto text = [](const Status& s) { return std::string(s.text()); };
    EXPECT_TRUE(Check(at, 4 * kMiB, "f", "x").ok());
    EXPECT_TRUE(Check(at + 100, kMiB, "f", "x").ok());
    EXPECT_EQ(Check(nullptr, 1, "f", "x").code(), Code::kNullPointer);
    EXPECT_EQ(Check(&host, 4, "f", "x").code(), Code::kInvalidMemoryType);
    EXPECT_NE(text(Check(&host, 4, "f", "x")).find("host memory"), std::string::npos);
    EXPECT_NE(text(Check(at + kMiB, 4 * kMiB, "f", "x")).find("leave the allocation"), std::string::npos);
    EXPECT_NE(text(Check(at, SIZE_MAX, "f", "x")).find("leave the allocation"), std::string::npos);
    EXPECT_NE(text(Check(at + 64 * kMiB, 1, "f", "x")).find("never allocated"), std::string::npos);
    EXPECT_NE(text(Free(at + 4096)).find("4096 bytes inside an allocation"), std::string::npos);
    EXPECT_NE(text(Free(&host)).find("host memory"), std::string::npos);
    EXPECT_EQ(Free(nullptr).code(), Code::kInvalidParam);
    EXPECT_NE(text(Free(at + 64 * kMiB)).find("never allocated"), std::string::npos);
    EXPECT_TRUE(Free(at).ok());
    EXPECT_NE(text(Free(at)).find("freed already"), std::string::npos);
    EXPECT_NE(text(Check(at, 1, "f", "x")).find("was freed"), std::string::npos)
        << "also right after a good check by this thread";
    EXPECT_EQ(Local(&host), nullptr);
    EXPECT_EQ(Local(nullptr), nullptr);
    EXPECT_EQ(Local(reinterpret_cast<void*>(~uintptr_t{0})), nullptr);
    EXPECT_FALSE(Find(at));
    EXPECT_EQ(Allocate(2, 1).status().code(), Code::kInvalidDevice);
    EXPECT_EQ(Allocate(-1, 1).status().code(), Code::kInvalidDevice);
    EXPECT_EQ(Allocate(0, 0).status().code(), Code::kInvalidParam);
    EXPECT_EQ(Allocate(0, SIZE_MAX).status().code(), Code::kOutOfDeviceMemory);
    EXPECT_EQ(Allocate(0, SIZE_MAX - 4096).status().code(), Code::kOutOfDeviceMemory);
  });
}

TEST_F(HbmTest, FullCardIsRefusedAndTheProcessGoesOn) {
  setenv("ANYNPU_HBM", "128M", 1);
  ISOLATED({
    ASSERT_EQ(UsageOf(0)->total, 128 * kMiB);
    auto first = Allocate(0, 80 * kMiB);
    ASSERT_TRUE(first.ok()) << first.status().Message();
    auto refused = Allocate(0, 60 * kMiB);
    ASSERT_EQ(refused.status().code(), Code::kOutOfDeviceMemory);
    const std::string text = refused.status().Message();
    EXPECT_NE(text.find("60 MiB were asked for"), std::string::npos) << text;
    EXPECT_NE(text.find("this process 80 MiB"), std::string::npos) << text;
    EXPECT_EQ(text.find("Failed to allocate"), std::string::npos);
    EXPECT_TRUE(Allocate(0, 20 * kMiB).ok());
    EXPECT_TRUE(Allocate(1, 60 * kMiB).ok()) << "the other card has room";
    ASSERT_TRUE(Free(*first).ok());
    EXPECT_TRUE(Allocate(0, 60 * kMiB).ok());
  });
}

TEST_F(HbmTest, ExhaustedHostIsAnotherError) {
  setenv("ANYNPU_HOST_MEMORY", "64M", 1);
  ISOLATED({
    auto first = Allocate(0, 40 * kMiB);
    ASSERT_TRUE(first.ok());
    auto refused = Allocate(1, 40 * kMiB);
    ASSERT_EQ(refused.status().code(), Code::kOutOfHostMemory);
    const std::string text = refused.status().Message();
    EXPECT_NE(text.find("host"), std::string::npos);
    EXPECT_NE(text.find("64 MiB"), std::string::npos) << text;
    EXPECT_NE(text.find("--hbm"), std::string::npos) << text;
    EXPECT_EQ(UsageOf(1)->mine, 0u) << "a refused grant leaves no trace";
    ASSERT_TRUE(Free(*first).ok());
    EXPECT_TRUE(Allocate(1, 40 * kMiB).ok()) << "what card 0 kept for reuse goes back for it";
  });
}

TEST_F(HbmTest, MoreThanTheHostHasIsRefusedBeforeTheGrant) {
  const HostMemory host = ReadHostMemory();
  ASSERT_GT(host.available, 512 * kMiB);
  setenv("ANYNPU_SOC", "Ascend910B3", 1);
  setenv("ANYNPU_HBM", std::to_string(4 * host.total).c_str(), 1);
  ISOLATED({
    ASSERT_TRUE(UsageOf(0).ok()) << UsageOf(0).status().Message();
    auto refused = Allocate(0, host.available + 64 * kMiB);
    ASSERT_EQ(refused.status().code(), Code::kOutOfHostMemory) << refused.status().Message();
    EXPECT_NE(refused.status().Message().find("available"), std::string::npos);
    // A block that fits is granted without pages and counts as promised.
    auto half = Allocate(0, host.available / 2);
    ASSERT_TRUE(half.ok()) << half.status().Message();
    EXPECT_EQ(Allocate(1, host.available * 3 / 4).status().code(), Code::kOutOfHostMemory);
    EXPECT_GT((*device::Join())->HostUseOfAll().pending, host.available / 2 - kMiB);
    EXPECT_TRUE(Free(*half).ok());
    EXPECT_EQ((*device::Join())->HostUseOfAll().pending, 0u);
  });
}

TEST_F(HbmTest, SixteenCardsOf64GiBCostNothing) {
  setenv("ANYNPU_CARDS", "16", 1);
  setenv("ANYNPU_SOC", "Ascend910B4-1", 1);
  ISOLATED({
    for (int card = 0; card < 16; ++card) {
      ASSERT_EQ(UsageOf(card)->total, uint64_t{64} << 30);
      auto p = Allocate(card, 1);
      ASSERT_TRUE(p.ok()) << p.status().Message();
      *static_cast<char*>(Local(*p)) = 1;
    }
    EXPECT_LT((*device::Join())->HostUseOfAll().granted, kMiB);
  });
}

TEST_F(HbmTest, PeerMapsAnArenaAndBothSeeEachOther) {
  Child owner([&](Child::Side& side) {
    auto p = Allocate(1, 8 * kMiB);
    if (!p.ok()) return 1;
    Fill(Local(*p), 8 * kMiB, 11);
    side.Send((*device::Join())->slot());
    side.Send(Find(*p)->offset);
    side.Receive();
    return Holds(Local(*p), 8 * kMiB, 22) ? 0 : 2;
  });
  const uint32_t slot = static_cast<uint32_t>(owner.Receive());
  const uint64_t offset = owner.Receive();
  ISOLATED({
    auto base = MapPeer(slot, 1);
    ASSERT_TRUE(base.ok()) << base.status().Message();
    EXPECT_EQ(*MapPeer(slot, 1), *base);
    char* const at = static_cast<char*>(*base) + offset;
    Populate(at, 8 * kMiB);
    Populate(at, 8 * kMiB);
    EXPECT_TRUE(Holds(at, 8 * kMiB, 11));
    Fill(at, 8 * kMiB, 22);
    EXPECT_EQ(UsageOf(1)->mine, 0u) << "memory counts once, for its owner";
    EXPECT_EQ(UsageOf(1)->used, (2922 + 8) * kMiB);
    EXPECT_EQ(MapPeer(slot, 0).status().code(), Code::kRemoteError) << "it has nothing there";
    EXPECT_NE(Check(at, 1, "f", "x").text().find("not imported"), std::string::npos);
  });
  owner.Send(1);
  EXPECT_EQ(owner.Wait(), 0);
}

TEST_F(HbmTest, DescriptorComesOverASocketToo) {
  Child owner([&](Child::Side& side) {
    auto p = Allocate(0, 2 * kMiB);
    if (!p.ok()) return 1;
    Fill(Local(*p), 2 * kMiB, 5);
    // As if in another pid namespace: the number in the state file leads nowhere.
    (*device::Join())->Mine(0).arena_fd.store(100000);
    side.Send((*device::Join())->slot());
    side.Send(Find(*p)->offset);
    side.Receive();
    return 0;
  });
  const uint32_t slot = static_cast<uint32_t>(owner.Receive());
  const uint64_t offset = owner.Receive();
  ISOLATED({
    auto base = MapPeer(slot, 0);
    ASSERT_TRUE(base.ok()) << base.status().Message();
    EXPECT_TRUE(Holds(static_cast<char*>(*base) + offset, 2 * kMiB, 5));
  });
  owner.Send(1);
  EXPECT_EQ(owner.Wait(), 0);
}

// The owner's pid means nothing to the peer, so the descriptor comes over the owner's socket.
TEST_F(HbmTest, PeerInAnotherPidNamespaceMapsToo) {
  Child owner([&](Child::Side& side) {
    if (!npu::testing::NewPidNamespace()) {
      side.Send(0);
      return 0;
    }
    const pid_t inner = fork();
    if (inner == 0) {
      auto p = Allocate(0, 2 * kMiB);
      if (!p.ok()) _exit(1);
      Fill(Local(*p), 2 * kMiB, 6);
      side.Send((*device::Join())->slot());
      side.Send(Find(*p)->offset);
      side.Receive();
      _exit(Holds(Local(*p), 2 * kMiB, 7) ? 0 : 2);
    }
    int status = 0;
    waitpid(inner, &status, 0);
    return WEXITSTATUS(status);
  });
  const uint32_t slot = static_cast<uint32_t>(owner.Receive());
  if (slot == 0) GTEST_SKIP() << "no right to make pid namespaces here";
  const uint64_t offset = owner.Receive();
  ISOLATED({
    auto base = MapPeer(slot, 0);
    ASSERT_TRUE(base.ok()) << base.status().Message();
    EXPECT_TRUE(Holds(static_cast<char*>(*base) + offset, 2 * kMiB, 6));
    Fill(static_cast<char*>(*base) + offset, 2 * kMiB, 7);
  });
  owner.Send(1);
  EXPECT_EQ(owner.Wait(), 0);
}

TEST_F(HbmTest, KilledOwnerReturnsItsMemoryAndItsPeersGoOn) {
  Child owner([&](Child::Side& side) {
    auto p = Allocate(0, 64 * kMiB);
    side.Send((*device::Join())->slot());
    side.Send(Find(*p)->offset);
    pause();
    return 0;
  });
  const uint32_t slot = static_cast<uint32_t>(owner.Receive());
  const uint64_t offset = owner.Receive();
  ISOLATED({
    auto base = MapPeer(slot, 0);
    ASSERT_TRUE(base.ok());
    EXPECT_EQ(UsageOf(0)->used, (2922 + 64) * kMiB);
    kill(owner.pid(), SIGKILL);  // it is not this process's child: its end is awaited by asking
    while ((*device::Join())->IsAlive(slot)) usleep(1000);
    (*device::Join())->Repair(/*force=*/true);
    EXPECT_EQ(UsageOf(0)->used, 2922 * kMiB);
    static_cast<volatile char*>(*base)[offset] = 1;  // still mapped: no crash
    EXPECT_EQ(MapPeer(slot, 1).status().code(), Code::kRemoteError);
  });
}

TEST_F(HbmTest, ForkedChildHasNoneOfItsParentsMemory) {
  ISOLATED({
    auto p = Allocate(0, 4 * kMiB);
    ASSERT_TRUE(p.ok());
    Child child([&](Child::Side&) {
      if (Local(*p) != nullptr) return 1;
      if (Find(*p)) return 2;
      if (Check(*p, 1, "f", "x").text().find("parent process") == std::string::npos) return 3;
      if (Free(*p).text().find("parent process") == std::string::npos) return 4;
      auto own = Allocate(0, 4 * kMiB);  // and it may have some of its own
      if (!own.ok()) return 5;
      std::memset(Local(*own), 1, 4 * kMiB);
      if (UsageOf(0)->used != (2922 + 8) * kMiB || UsageOf(0)->mine != 4 * kMiB) return 6;
      if (!Free(*own).ok()) return 7;
      return 0;
    });
    EXPECT_EQ(child.Wait(), 0);
    EXPECT_EQ(UsageOf(0)->mine, 4 * kMiB);
    EXPECT_TRUE(Free(*p).ok());
  });
}

// A child that lives on must not keep its parent's memory: the arena's descriptor is closed in it.
TEST_F(HbmTest, ChildDoesNotHoldTheArenaOpen) {
  ISOLATED({
    auto p = Allocate(0, 2 * kMiB);
    ASSERT_TRUE(p.ok());
    const int fd = (*device::Join())->Mine(0).arena_fd.load();
    Child child([&](Child::Side&) { return fcntl(fd, F_GETFD) == -1 && errno == EBADF ? 0 : 1; });
    EXPECT_EQ(child.Wait(), 0);
  });
}

TEST_F(HbmTest, InaccessibleClientsFaultOnHostAccess) {
  ISOLATED({
    SetInaccessibleClients(true);
    auto p = Allocate(0, 2 * kMiB);
    ASSERT_TRUE(p.ok());
    EXPECT_NE(Local(*p), *p);
    Fill(Local(*p), 2 * kMiB, 3);
    EXPECT_TRUE(Holds(Local(*p), 2 * kMiB, 3));
    EXPECT_TRUE(Check(*p, 2 * kMiB, "f", "x").ok());
    Child toucher([&](Child::Side&) {
      auto own = Allocate(0, 4096);
      signal(SIGSEGV, [](int) { _exit(42); });
      *static_cast<volatile char*>(*own) = 1;
      return 0;
    });
    EXPECT_EQ(toucher.Wait(), 42);
    EXPECT_TRUE(Free(*p).ok());
  });
}

TEST_F(HbmTest, ThreadsAllocateAndFreeAtOnce) {
  setenv("ANYNPU_HBM", "256M", 1);
  ISOLATED({
    const uint32_t seed = std::random_device{}();
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    std::atomic<int> wrong{0};
    std::atomic<int> refused{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        std::mt19937_64 random(seed + static_cast<uint64_t>(t));
        std::vector<std::pair<void*, size_t>> mine;
        for (int i = 0; i < 400; ++i) {
          if (mine.size() < 8 && random() % 3 != 0) {
            const size_t bytes = random() % 4 == 0 ? random() % (24 * kMiB) + 1 : random() % 8000 + 1;
            auto p = Allocate(0, bytes);
            if (!p.ok()) {
              if (p.status().code() != Code::kOutOfDeviceMemory) ++wrong;
              ++refused;
              continue;
            }
            // First and last byte carry the owner; another thread's block over ours would show.
            static_cast<volatile unsigned char*>(Local(*p))[0] = static_cast<unsigned char>(t + 1);
            static_cast<volatile unsigned char*>(Local(*p))[bytes - 1] = static_cast<unsigned char>(t + 1);
            mine.emplace_back(*p, bytes);
          } else if (!mine.empty()) {
            const size_t at = random() % mine.size();
            auto [p, bytes] = mine[at];
            if (!Check(p, bytes, "f", "x").ok()) ++wrong;
            const auto* bytes_at = static_cast<volatile unsigned char*>(Local(p));
            if (bytes_at[0] != t + 1 || bytes_at[bytes - 1] != t + 1) ++wrong;
            if (!Free(p).ok()) ++wrong;
            mine.erase(mine.begin() + static_cast<std::ptrdiff_t>(at));
          }
          if (i % 100 == 50) Trim();
        }
        for (auto [p, bytes] : mine) {
          if (!Free(p).ok()) ++wrong;
        }
      });
    }
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0);
    EXPECT_EQ(UsageOf(0)->mine, 0u);
  });
}

// Two processes that fill one card together never get more than it has.
TEST_F(HbmTest, ProcessesNeverOvercommitACard) {
  setenv("ANYNPU_HBM", "64M", 1);
  std::vector<std::unique_ptr<Child>> children;
  for (int i = 0; i < 3; ++i) {
    children.push_back(std::make_unique<Child>([&](Child::Side& side) {
      auto machine = device::Join();
      if (!machine.ok()) return 1;
      side.Send(1);
      side.Receive();
      uint64_t got = 0;
      while (Allocate(0, 2 * kMiB).ok()) got += 2 * kMiB;
      side.Send(got);
      side.Receive();
      return 0;
    }));
  }
  for (auto& child : children) child->Receive();
  for (auto& child : children) child->Send(1);
  uint64_t sum = 0;
  for (auto& child : children) sum += child->Receive();
  ISOLATED({
    const uint64_t room = UsageOf(0)->total - (*device::Join())->system_bytes();
    EXPECT_LE(sum, room);
    EXPECT_GT(sum + 2 * kMiB * 2, room) << "and nearly all of it is given out";
    EXPECT_EQ(UsageOf(0)->used, sum + (*device::Join())->system_bytes());
    EXPECT_NE(Allocate(0, 4 * kMiB).status().text().find("process"), std::string::npos);
  });
  for (auto& child : children) child->Send(1);
  for (auto& child : children) EXPECT_EQ(child->Wait(), 0);
}

TEST(HostMemory, ReadsLimitsOfBothGenerationsOfControlGroups) {
  npu::testing::ScratchRuntimeDir root;
  const auto put = [&](const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(root.path() + path).parent_path());
    std::ofstream(root.path() + path) << text;
  };
  put("/proc/meminfo", "MemTotal:       16000000 kB\nMemFree: 1 kB\nMemAvailable:   8000000 kB\n");
  put("/proc/self/cgroup", "0::/\n");
  HostMemory host = ReadHostMemoryUnder(root.path());
  EXPECT_EQ(host.total, 16000000ull * 1024);
  EXPECT_EQ(host.available, 8000000ull * 1024);
  // v2, limit in an ancestor; page cache can be given up.
  put("/proc/self/cgroup", "0::/a/b\n");
  put("/sys/fs/cgroup/a/b/memory.max", "max\n");
  put("/sys/fs/cgroup/a/b/memory.current", "900000000\n");
  put("/sys/fs/cgroup/a/memory.max", "1000000000\n");
  put("/sys/fs/cgroup/a/memory.current", "900000000\n");
  put("/sys/fs/cgroup/a/memory.stat", "anon 5\ninactive_file 300000000\nactive_file 100000000\n");
  host = ReadHostMemoryUnder(root.path());
  EXPECT_EQ(host.total, 1000000000u);
  EXPECT_EQ(host.available, 500000000u);
  EXPECT_NE(host.limited_by.find("/a/memory.max"), std::string::npos);
  // v1
  put("/proc/self/cgroup", "12:cpu,cpuacct:/x\n4:memory:/jobs\n");
  put("/sys/fs/cgroup/memory/jobs/memory.limit_in_bytes", "2000000000\n");
  put("/sys/fs/cgroup/memory/jobs/memory.usage_in_bytes", "2500000000\n");
  put("/sys/fs/cgroup/memory/jobs/memory.stat", "total_inactive_file 0\n");
  host = ReadHostMemoryUnder(root.path());
  EXPECT_EQ(host.total, 2000000000u);
  EXPECT_EQ(host.available, 0u);
}

}  // namespace
}  // namespace npu::hbm
