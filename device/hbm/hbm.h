// Device memory: who owns it, where it is, whether it may be granted.
//
//   NPU_ASSIGN(void* p, hbm::Allocate(card, bytes, Kind::kHbm));
//   hbm::Local(p)            // the address kernels use; clients hold p
//   NPU_TRY(hbm::Free(p));
//
// One process owns one arena (an anonymous memfd, mapped once) per card; a client's address is a place in that card's
// reserved range. Client address and kernel address are two numbers: Local() turns the one into the other, once, when a
// call takes a snapshot of its arguments, so that the client's mapping can later be an inaccessible alias. Card numbers are
// physical here. All functions may be called from any thread. A granted block is backed by the host (reserved before the
// grant) and populated before a kernel touches it. A forked child inherits nothing: see base/os/process.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/status/status.h"

namespace npu::hbm {

struct Block {
  int card = -1;
  uint64_t offset = 0;     // in the owner's arena
  size_t bytes = 0;        // of the whole allocation
  void* client = nullptr;  // first client address of the allocation
};

// Memory of `bytes` on `card`, aligned to at least 512 bytes, contents undefined. Fails with kOutOfDeviceMemory (the card
// is full) or kOutOfHostMemory (the host cannot back it); the two texts differ.
Result<void*> Allocate(int card, size_t bytes);
Status Free(void* client);

// The address through which kernels reach what the client calls `client` (any address inside an allocation, a mapped
// range, or a peer's imported memory); null when it is not device memory. Lock-free.
void* Local(const void* client);
// The allocation that holds `client`.
std::optional<Block> Find(const void* client);

struct Usage {
  uint64_t total = 0;  // the profile's size, or --hbm
  uint64_t used = 0;   // by all processes and the system's own share
  uint64_t free = 0;
};
Result<Usage> UsageOf(int card);

// A peer process's arena of one card, mapped here whole; the mapping lives as long as this process. `slot` names the
// process in the machine's state file (machine.h). Pages are populated for ranges that are named by Populate.
Result<void*> MapPeer(uint32_t slot, int card);
void Populate(void* local, size_t bytes);

}  // namespace npu::hbm
