// The state file of a machine, as it lies in memory shared by all its processes.
//
// The file is small, sparse and fixed in size. Whoever maps it must take its content for hostile: every number that is
// read is checked before it is used as an index or a size, no text is trusted to end, and the configuration is copied
// once, when the machine is joined. Slots change hands only under the file's lock (state_file.h); counters are atomic,
// and each is written by the slot's owner alone, so that a killed owner leaves no half-made sum: totals are added up
// when asked for.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "device/figures/layout.h"
#include "device/meters/layout.h"
#include "device/profile/profile.h"

namespace npu::device {

inline constexpr uint64_t kStateMagic = 0x31454E494843414Dull;  // "MACHINE1"
inline constexpr uint32_t kStateVersion = 6;
inline constexpr uint32_t kMaxSlots = 256;
inline constexpr uint32_t kMaxCells = 4096;
inline constexpr uint32_t kMaxExports = 4096;

struct alignas(64) StateHeader {
  uint64_t magic;
  uint32_t version;
  uint32_t bytes;  // of the whole file
  uint64_t boot_id;
  uint64_t nonce;  // differs for every making of the machine
  uint32_t uid;
  uint32_t cards;
  uint64_t hbm_bytes;     // of one card, all of it
  uint64_t system_bytes;  // of one card, taken by the system itself
  uint64_t host_limit;    // bytes all cards may take of the host; 0: what the host can give
  char soc[32];
  char cann[32];
  char driver[32];
  std::atomic<uint32_t> kept;  // `anynpu up`: stays when its last process leaves
  std::atomic<uint32_t> next_generation;
  // Entries from here on were never used: what walks the tables stops there, and their pages stay holes.
  std::atomic<uint32_t> slot_high, cell_high, export_high;
};

// One card as one process uses it. A line of its own: two cards of a process are served by different threads.
struct alignas(64) CardUse {
  std::atomic<uint64_t> used;     // granted bytes, counted against the card
  std::atomic<uint64_t> pooled;   // freed but resident bytes, counted against the host only
  std::atomic<uint64_t> pending;  // granted bytes that have no pages yet
  std::atomic<uint64_t> arena_inode;
  std::atomic<int32_t> arena_fd;  // in the owner's table; with the inode it names the arena to a peer
  std::atomic<uint32_t> open;     // the process has opened the card
};

enum SlotState : uint32_t { kSlotFree = 0, kSlotLive = 1 };

struct alignas(64) Slot {
  std::atomic<uint32_t> state;
  std::atomic<uint32_t> generation;  // 24 bits
  std::atomic<int32_t> pid;
  std::atomic<uint64_t> pid_namespace;
  std::atomic<uint64_t> start_ticks;
  std::atomic<uint64_t> joined_ms;
  char command[16];
  // The doorbell, alone on its line: others write it.
  alignas(64) std::atomic<uint32_t> bell;
  std::atomic<uint32_t> bell_waiters;
  CardUse cards[kMaxCards];
};

// A few shared words for what one process signals and others await (events, notifies). See cells.h.
struct alignas(64) Cell {
  std::atomic<uint32_t> owner;  // slot word, 0 when free
  std::atomic<uint32_t> generation;
  std::atomic<uint64_t> words[6];
};

// Memory that its owner lets other processes map. See hbm/share.h.
struct alignas(64) Export {
  std::atomic<uint32_t> owner;  // slot word, 0 when free
  std::atomic<uint32_t> generation;
  std::atomic<uint64_t> offset;
  std::atomic<uint64_t> bytes;
  std::atomic<uint32_t> card;
  std::atomic<uint32_t> flags;
  std::atomic<int32_t> pids[8];                     // who may import when the check is on
  std::atomic<uint64_t> importers[kMaxSlots / 64];  // bit per slot index
};

struct StateLayout {
  StateHeader header;
  alignas(4096) Slot slots[kMaxSlots];
  alignas(4096) Cell cells[kMaxCells];
  alignas(4096) Export exports[kMaxExports];
  alignas(4096) Meters meters[kMaxSlots];
  alignas(4096) ProcessWork work[kMaxSlots][kMaxCards];
  Figures figures;
};

// How far to walk. The numbers are hostile like the rest.
inline uint32_t Bounded(const std::atomic<uint32_t>& high, uint32_t most) {
  const uint32_t n = high.load(std::memory_order_acquire);
  return n < most ? n : most;
}
inline uint32_t SlotHigh(const StateLayout& layout) { return Bounded(layout.header.slot_high, kMaxSlots); }
inline uint32_t CellHigh(const StateLayout& layout) { return Bounded(layout.header.cell_high, kMaxCells); }
inline uint32_t ExportHigh(const StateLayout& layout) { return Bounded(layout.header.export_high, kMaxExports); }
// Whether the machine stays when its last process leaves.
inline bool Stays(const StateLayout& layout) {
  return layout.header.kept.load(std::memory_order_relaxed) != 0 ||
         layout.figures.faults.armed.load(std::memory_order_relaxed) != 0;
}
inline void RaiseHigh(std::atomic<uint32_t>& high, uint32_t index) {
  uint32_t seen = high.load(std::memory_order_relaxed);
  while (seen <= index &&
         !high.compare_exchange_weak(seen, index + 1, std::memory_order_release, std::memory_order_relaxed)) {
  }
}

static_assert(std::atomic<uint64_t>::is_always_lock_free && std::atomic<uint32_t>::is_always_lock_free);
static_assert(std::is_standard_layout_v<StateLayout> && sizeof(CardUse) == 64 && sizeof(Cell) == 64);

// A process of the machine in one word: slot index (8 bits) and generation (24 bits, never 0), so that the word of a
// process that has left names nobody.
constexpr uint32_t SlotWord(uint32_t index, uint32_t generation) { return generation << 8 | index; }
constexpr uint32_t SlotIndex(uint32_t word) { return word & 0xFF; }
constexpr uint32_t SlotGeneration(uint32_t word) { return word >> 8; }
static_assert(kMaxSlots == 256);

}  // namespace npu::device
