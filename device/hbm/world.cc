#include "device/hbm/world.h"

#include "base/log/log.h"
#include "base/os/fork.h"
#include "device/machine/repair.h"

namespace npu::hbm {
namespace {

std::atomic<World*> the_world{nullptr};
std::atomic_flag making = ATOMIC_FLAG_INIT;

}  // namespace

World* WorldIfMade() {
  World* world = the_world.load(std::memory_order_acquire);
  return world != nullptr && device::Joined() == &world->machine() ? world : nullptr;
}

Result<World*> TheWorld() {
  NPU_ASSIGN(device::Machine * machine, device::Join());
  World* world = the_world.load(std::memory_order_acquire);
  // After a fork Join gives the child a machine of its own, and the parent's world is left alone.
  if (world != nullptr && world->machine_ == machine) return world;
  std::unique_ptr<World> fresh(new World);
  fresh->machine_ = machine;
  if (the_world.compare_exchange_strong(world, fresh.get(), std::memory_order_acq_rel)) return fresh.release();
  return world;
}

Result<Arena*> World::ArenaOf(int card) {
  if (card < 0 || card >= machine_->cards()) {
    return Error(Code::kInvalidDevice, "There is no card {}: machine {} has {}.", card, machine_->name(),
                 machine_->cards())
        .Remedy("Use 0 to {}, or start with more cards (-n).", machine_->cards() - 1);
  }
  if (Arena* arena = ArenaIfMade(card); arena != nullptr) return arena;
  std::lock_guard lock(mutex_);
  if (Arena* arena = ArenaIfMade(card); arena != nullptr) return arena;
  NPU_ASSIGN(std::unique_ptr<Arena> arena, Arena::Make(*machine_, card));
  arenas_[card].store(arena.get(), std::memory_order_release);
  if (!serving_.exchange(true)) StartServing(*this);
  return arena.release();
}

Result<Peer*> World::PeerOf(uint32_t slot, int card) {
  LetGoOfDeadPeers();
  std::lock_guard lock(mutex_);
  const auto key = std::make_pair(slot, card);
  if (auto at = peers_.find(key); at != peers_.end()) {
    if (!at->second->let_go.load(std::memory_order_relaxed)) return at->second.get();
    return Error(Code::kRemoteError, "The process that owns the memory of card {} has ended.", card)
        .Remedy("Start all processes anew.");
  }
  uint64_t bytes = 0;
  NPU_ASSIGN(os::Fd fd, FetchArena(*machine_, slot, card, &bytes));
  os::CloseInChildren(fd.get());
  auto peer = std::make_unique<Peer>();
  peer->slot = slot;
  peer->card = card;
  NPU_ASSIGN(peer->region, MakeRegion(RegionKind::kPeer, card, bytes, fd.get()));
  peer->fd = std::move(fd);
  peer->populated = std::make_unique<Populated>(bytes);
  Publish(peer->region, peer.get());
  return peers_.emplace(key, std::move(peer)).first->second.get();
}

void World::LetGoOfDeadPeers(uint64_t grace_ms) {
  // A collective that has not noticed yet may still be reading; what is ten seconds old is nobody's.
  std::lock_guard lock(mutex_);
  const uint64_t now = device::NowMs();
  for (auto& [key, peer] : peers_) {
    if (peer->let_go.load(std::memory_order_relaxed) || machine_->IsAlive(peer->slot)) continue;
    if (peer->gone_ms == 0) peer->gone_ms = now;
    if (now - peer->gone_ms < grace_ms) continue;
    // Both sides set their mark before they look at the other's: an import that comes now sees ours, or we see it.
    peer->let_go.store(true, std::memory_order_seq_cst);
    if (peer->holds.load(std::memory_order_seq_cst) != 0) {
      peer->let_go.store(false, std::memory_order_relaxed);
      continue;
    }
    MapZeros(peer->region);
    os::ForgetInChildren(peer->fd.get());
    peer->fd.Reset();
  }
}

uint64_t World::TrimAll() {
  uint64_t bytes = 0;
  for (int card = 0; card < machine_->cards(); ++card) {
    if (Arena* arena = ArenaIfMade(card); arena != nullptr) bytes += arena->Trim();
  }
  return bytes;
}

}  // namespace npu::hbm
