// Device memory of this process: its arenas and the peers it has mapped. A forked child starts with an empty one.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "base/os/fd.h"
#include "base/status/status.h"
#include "device/hbm/arena.h"
#include "device/hbm/vmm.h"
#include "device/machine/machine.h"

namespace npu::hbm {

// A peer's arena, mapped here.
struct Peer {
  uint32_t slot = 0;
  int card = -1;
  os::Fd fd;
  Region* region = nullptr;
  uint64_t gone_ms = 0;              // when it was first seen dead
  std::atomic<uint32_t> holds{0};    // imports of this process that need its memory
  std::atomic<bool> let_go{false};   // it has ended and we no longer keep its memory
  std::unique_ptr<Populated> populated;
};

struct Import {  // a block of a peer that a client holds
  uint64_t bytes = 0;
  uint32_t count = 0;
  uint32_t export_index = 0;  // index + 1
  uint32_t export_generation = 0;
};

class World {
 public:
  device::Machine& machine() const { return *machine_; }
  // The arena of a card, made at first use.
  Result<Arena*> ArenaOf(int card);
  Arena* ArenaIfMade(int card) const { return arenas_[card].load(std::memory_order_acquire); }
  // The mapped arena of another process.
  Result<Peer*> PeerOf(uint32_t slot, int card);
  // Memory of peers that ended a while ago lives as long as somebody maps it: lets go of what no import of ours holds.
  // What another process holds is that process's alone.
  static constexpr uint64_t kGraceMs = 10'000;
  void LetGoOfDeadPeers(uint64_t grace_ms = kGraceMs);
  uint64_t TrimAll();

  std::mutex share_mutex;  // guards what follows
  std::map<std::pair<const Region*, uint64_t>, Import> imports;
  // By index and owner of an export: how often we import it. An entry serves another owner once its own has ended.
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> held;
  std::map<uint32_t, Physical*> exported;  // by index of an export: our own handle, not counted

 private:
  friend Result<World*> TheWorld();
  World() = default;
  device::Machine* machine_ = nullptr;
  std::mutex mutex_;  // guards the making of arenas and peers
  std::atomic<Arena*> arenas_[device::kMaxCards] = {};
  std::map<std::pair<uint32_t, int>, std::unique_ptr<Peer>> peers_;
  std::atomic<bool> serving_{false};
};

// Joins the machine at first use.
Result<World*> TheWorld();
// Null before first use and in a forked child that has not used memory yet.
World* WorldIfMade();

// Serves descriptors of our arenas and wishes for memory to other processes of the user, on a thread of its own
// (peer.cc).
void StartServing(World& world);
Result<os::Fd> FetchArena(const device::Machine& machine, uint32_t slot, int card, uint64_t* bytes);
// Asks every other process of the machine to give back freed pages and the memory of processes that have ended.
void AskOthersToTrim(const device::Machine& machine);

}  // namespace npu::hbm
