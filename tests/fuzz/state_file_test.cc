// The state file of a machine is shared with every process of the user: whatever another writes into it, we may answer
// with an error, never with a crash, a hang or memory of somebody else. Each round runs in a process of its own.
#include <sys/wait.h>

#include <cstring>
#include <string>
#include <vector>

#include "device/doorbell/doorbell.h"
#include "device/hbm/hbm.h"
#include "device/hbm/share.h"
#include "device/hbm/vmm.h"
#include "device/hbm/world.h"
#include "device/machine/cells.h"
#include "device/machine/machine.h"
#include "device/testing/isolated.h"
#include "tests/fuzz/fuzz.h"

namespace npu::fuzz {
namespace {

constexpr size_t kMiB = size_t{1} << 20;
constexpr unsigned kHungSeconds = 60;

class StateFile : public npu::testing::OwnMachine {};

// One of the words that others read, or any byte.
void SpoilSomething(device::StateLayout& layout, Source& source) {
  device::Slot& slot = layout.slots[source.Below(source.Chance(70) ? 4 : device::kMaxSlots)];
  device::CardUse& use = slot.cards[source.Below(source.Chance(70) ? 2 : device::kMaxCards)];
  device::Export& entry = layout.exports[source.Below(source.Chance(80) ? 4 : device::kMaxExports)];
  device::Cell& cell = layout.cells[source.Below(source.Chance(80) ? 4 : device::kMaxCells)];
  const uint64_t word = source.Word();
  const auto small = static_cast<uint32_t>(word);
  switch (source.Below(16)) {
    case 0:
      use.used.store(word);
      break;
    case 1:
      use.pooled.store(word);
      break;
    case 2:
      use.pending.store(word);
      break;
    case 3:
      use.arena_inode.store(word);
      break;
    case 4:
      use.arena_fd.store(static_cast<int32_t>(small));
      break;
    case 5:
      slot.pid.store(static_cast<int32_t>(small));
      break;
    case 6:
      slot.state.store(small);
      break;
    case 7:
      slot.generation.store(small);
      break;
    case 8:
      entry.offset.store(word);
      break;
    case 9:
      entry.bytes.store(word);
      break;
    case 10:
      entry.card.store(small);
      break;
    case 11:
      entry.owner.store(small);
      break;
    case 12:
      entry.importers[source.Below(std::size(entry.importers))].store(word);
      break;
    case 13:
      cell.words[source.Below(6)].store(word);
      break;
    case 14:
      layout.header.export_high.store(small);
      break;
    default:
      source.Spoil(&layout, sizeof layout);
      break;
  }
}

// Uses memory as a client would while somebody spoils the file; answers may be errors.
void Use(device::StateLayout& layout, Source& source) {
  std::vector<void*> blocks;
  std::vector<std::string> keys;
  std::vector<uint64_t> tokens;
  std::vector<Ref<hbm::Physical>> handles;
  for (int step = 0; step < 60; ++step) {
    if (source.Chance(50)) SpoilSomething(layout, source);
    switch (source.Below(12)) {
      case 0:
      case 1:
        if (auto p = hbm::Allocate(static_cast<int>(source.Below(2)), 1 + source.Below(4 * kMiB)); p.ok()) {
          // What is granted is ours, whole and mapped.
          std::memset(hbm::Local(*p), 0x3C, 512);
          blocks.push_back(*p);
        }
        break;
      case 2:
        if (!blocks.empty()) {
          (void)hbm::Free(blocks.back()).ok();
          blocks.pop_back();
        }
        break;
      case 3:
        if (!blocks.empty()) {
          if (auto key = hbm::ExportKey(blocks.back(), 1, source.Chance(80)); key.ok()) keys.push_back(*key);
        }
        break;
      case 4:
        if (!keys.empty()) {
          std::string key = keys[source.Below(keys.size())];
          if (source.Chance(30)) key[source.Below(key.size())] = "0123456789abcdef"[source.Below(16)];
          auto q = hbm::ImportKey(key);
          if (q.ok()) {
            const auto block = hbm::Find(*q);
            if (block && block->bytes > 0) static_cast<volatile char*>(hbm::Local(*q))[0] = 1;
          }
        }
        break;
      case 5:
        if (!keys.empty()) (void)hbm::CloseKey(keys[source.Below(keys.size())]).ok();
        break;
      case 6:
        (void)hbm::UsageOf(static_cast<int>(source.Below(2))).ok();
        break;
      case 7:
        (void)hbm::MapPeer(static_cast<uint32_t>(source.Word()), static_cast<int>(source.Below(2))).ok();
        break;
      case 8:
        if (auto made = hbm::MallocPhysical(0, 2 * kMiB); made.ok()) {
          if (auto token = hbm::ExportShareable(**made, true); token.ok()) tokens.push_back(*token);
          handles.push_back(std::move(*made));
        }
        break;
      case 9:
        if (!tokens.empty())
          (void)hbm::ImportShareable(tokens[source.Below(tokens.size())] ^ (source.Chance(30) ? source.Word() : 0))
              .ok();
        break;
      case 10:
        if (auto machine = device::Join(); machine.ok()) {
          (*machine)->Repair(true);
          device::RingAll(**machine);
          if (auto cell = device::MakeCell(**machine); cell.ok()) device::FreeCell(**machine, cell->id);
          device::FindCell(**machine, source.Word());
        }
        break;
      default:
        hbm::Trim();
        break;
    }
  }
}

TEST_F(StateFile, MemoryIsUsedWhileSomebodySpoilsTheFile) {
  const uint64_t seed = Source::Seed();
  for (int round = 0; round < Rounds(); ++round) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed << " round " << round);
    npu::testing::Child child([&](npu::testing::Child::Side&) {
      alarm(kHungSeconds);
      Source source(seed + static_cast<uint64_t>(round));
      auto machine = device::Join();
      if (!machine.ok()) return 0;  // what an earlier round left may be refused
      Use((*machine)->shared(), source);
      return 0;
    });
    ASSERT_EQ(child.Wait(), 0) << "1000 + signal; 1014 is a hang";
  }
}

TEST_F(StateFile, ASpoiltFileIsJoinedOrRefused) {
  const uint64_t seed = Source::Seed();
  for (int round = 0; round < Rounds(); ++round) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed << " round " << round);
    Source source(seed + static_cast<uint64_t>(round));
    npu::testing::Child keeper([](npu::testing::Child::Side& side) {
      side.Send(device::Join().ok() && hbm::Allocate(0, kMiB).ok() ? 1 : 0);
      side.Receive();
      return 0;
    });
    ASSERT_EQ(keeper.Receive(), 1u);
    std::string file;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(scratch_.path())) {
      if (entry.is_regular_file()) file = entry.path();
    }
    ASSERT_FALSE(file.empty());
    const int fd = open(file.c_str(), O_RDWR | O_CLOEXEC);
    ASSERT_GE(fd, 0);
    for (uint64_t n = 1 + source.Below(40); n > 0; --n) {
      const uint64_t word = source.Word();
      const uint64_t limit =
          source.Chance(60) ? sizeof(device::StateHeader) + 4 * sizeof(device::Slot) : sizeof(device::StateLayout);
      ASSERT_GT(pwrite(fd, &word, 1 + source.Below(8), static_cast<off_t>(source.Below(limit - 8))), 0);
    }
    if (source.Chance(10)) {
      ASSERT_EQ(ftruncate(fd, static_cast<off_t>(source.Below(2 * sizeof(device::StateLayout)))), 0);
    }
    close(fd);
    npu::testing::Child visitor([&](npu::testing::Child::Side&) {
      alarm(kHungSeconds);
      auto machine = device::Join();
      if (!machine.ok()) return machine.status().text().empty() ? 1 : 0;
      Use((*machine)->shared(), source);
      return 0;
    });
    ASSERT_EQ(visitor.Wait(), 0) << "1000 + signal; 1014 is a hang";
    keeper.Kill();
    keeper.Wait();
    unlink(file.c_str());
  }
}

}  // namespace
}  // namespace npu::fuzz
