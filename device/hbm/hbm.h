// Device memory: who owns it, where it is, whether it may be granted.
//
//   NPU_ASSIGN(void* p, hbm::Allocate(card, bytes));
//   NPU_TRY(hbm::Check(p, bytes, "aclrtMemcpy", "dst"));   // at the boundary: says what is wrong with an address
//   hbm::Local(p)                                          // the address kernels use; clients hold p
//   NPU_TRY(hbm::Free(p));
//
// One process owns one arena (an anonymous memfd, mapped once) per card; a client's address is a place in that card's
// reserved range. Client address and kernel address are two numbers: Local() turns the one into the other, once, when a
// call takes a snapshot of its arguments, so that the client's mapping can be an inaccessible alias. Card numbers are
// physical here. All functions may be called from any thread. A granted block is backed by the host (reserved before
// the grant); blocks up to 256 MiB have their pages when Allocate returns, larger ones get them as they are used. A
// forked child inherits nothing: its parent's addresses are refused with a text that says so, and it may allocate for
// itself. See share.h for memory between processes and vmm.h for reserving and mapping by hand.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/status/status.h"

namespace npu::hbm {

struct Block {
  int card = -1;
  uint32_t slot = 0;       // the owner process in the machine (machine.h)
  uint64_t offset = 0;     // in the owner's arena
  size_t bytes = 0;        // of the whole allocation
  void* client = nullptr;  // first client address of the allocation
};

// Memory of `bytes` on `card`, aligned to 512 bytes (2 MiB from 2 MiB on), contents undefined. Fails with
// kOutOfDeviceMemory (the card is full) or kOutOfHostMemory (the host cannot back it); the two texts differ.
Result<void*> Allocate(int card, size_t bytes);
Status Free(void* client);
// The same for the calls of programs, which strict memory follows: `asked` is what the program wants to use of `bytes`,
// `call` what it called (static text).
Result<void*> AllocateFor(int card, size_t bytes, size_t asked, std::string_view call);

// The address through which kernels reach what the client calls `client` (any address inside an allocation, a mapped
// range, a peer's imported memory, or registered host memory); null for anything else. Lock-free, a few ns. It does not know whether
// the place is allocated: that is Check.
void* Local(const void* client);
// Whether [client, client + bytes) lies in one piece of device memory that is allocated or mapped. Host memory, freed
// memory, a range that leaves its allocation, memory of the parent of a forked child: distinct texts that begin with
// "function: param". Some ns when the same block was checked before by this thread.
Status Check(const void* client, size_t bytes, std::string_view function, std::string_view param);
// The allocation (or mapped piece, or imported block) that holds `client`.
std::optional<Block> Find(const void* client);
// The pieces of arenas that [client, client + bytes) consists of, in order: one, but for ranges mapped from several
// physical handles. Empty when a part of it is no device memory.
struct Piece {
  uint32_t slot = 0;
  int card = -1;
  uint64_t offset = 0;
  uint64_t bytes = 0;
};
std::vector<Piece> PiecesOf(const void* client, size_t bytes);

struct Usage {
  uint64_t total = 0;  // the profile's size, or --hbm
  uint64_t used = 0;   // by all processes and the system's own share
  uint64_t free = 0;
  uint64_t mine = 0;  // by this process
};
Result<Usage> UsageOf(int card);

// A peer process's arena of one card, mapped here whole; the mapping lives as long as this process. `slot` names the
// process in the machine's state file (machine.h); one's own slot gives one's own arena. Pages are populated for ranges
// that are named by Populate. kRemoteError when the peer has gone.
Result<void*> MapPeer(uint32_t slot, int card);
// Gives a range of a local address its pages before kernels touch it. Cheap when it was done before.
void Populate(void* local, size_t bytes);

// Gives freed memory that is kept for reuse back to the host. Returns the bytes given back.
uint64_t Trim();

}  // namespace npu::hbm
