// Ranges of client addresses and the memory behind them.
//
// A region starts and ends at a multiple of 1 GiB, so one table lookup by address / 1 GiB finds it: Local() takes a few
// ns and no lock. `client` is what programs hold, `local` is where kernels read and write. They are the same number,
// unless clients are to be inaccessible (SetInaccessibleClients): then the client's range has no access rights, and a
// program that touches device memory from the host faults there as it would on the real card.
//
// A forked child has none of this memory: in it every region of the parent is `inherited`, its addresses stay taken and
// cannot come back as something else.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/status/status.h"

namespace npu::hbm {

enum class RegionKind : uint8_t { kArena, kReserved, kPeer };

struct Region {
  uintptr_t client = 0, local = 0;
  uint64_t bytes = 0;  // what was asked for
  uint64_t span = 0;   // what is taken of the address space
  RegionKind kind = RegionKind::kArena;
  int card = -1;
  void* owner = nullptr;  // Arena, Reservation or Peer
  std::atomic<bool> inherited{false};

  void* ToLocal(uintptr_t address) const { return reinterpret_cast<void*>(local + (address - client)); }
};

// Takes addresses. fd: shared memory to map there (whole, sparse), or -1 for addresses alone. Null owner until it is
// set by Publish, which makes the region findable.
Result<Region*> MakeRegion(RegionKind kind, int card, uint64_t bytes, int fd);
void Publish(Region* region, void* owner);
// Lookups no longer find it; its addresses stay taken and what is mapped there stays.
void HideRegion(Region* region);
// Nothing may use it any more. The Region itself stays readable for lookups that came late.
void RemoveRegion(Region* region);

// Null when the address belongs to no region; inherited ones are found too.
Region* FindRegion(const void* address);
// By the address that kernels use; for reports.
Region* FindLocalRegion(const void* local);

// Maps a part of shared memory into a reservation, or takes it out again.
Status MapInto(Region* region, uint64_t at, uint64_t bytes, int fd, uint64_t offset);
void MapNothing(Region* region, uint64_t at, uint64_t bytes);
// Lets go of the memory behind a whole region. Whoever comes late finds zeros that belong to nobody, and no fault.
void MapZeros(Region* region);

// For regions made from here on.
void SetInaccessibleClients(bool on);

}  // namespace npu::hbm
