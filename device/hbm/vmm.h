// Reserving addresses and mapping physical memory into them by hand: what expandable_segments is built on.
//
//   NPU_ASSIGN(Ref<Physical> memory, MallocPhysical(card, 20 << 20));
//   NPU_ASSIGN(void* range, ReserveAddress(size_t{1} << 30));
//   NPU_TRY(MapPhysical(range, 20 << 20, memory));          // the mapping keeps the memory alive
//   NPU_ASSIGN(Unmapped gone, Unmap(range));                // pages go with gone.pages
//   NPU_TRY(ReleaseAddress(range));
//
// A handle is a range of its owner's arena. Sizes and addresses are multiples of 2 MiB. Memory goes with its last
// reference: the creator's, each mapping, and importers in other processes.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "base/handle/ref.h"
#include "base/status/status.h"
#include "device/hbm/hbm.h"

namespace npu::hbm {

class Arena;
struct Peer;
struct Region;

inline constexpr uint64_t kMapGranularity = uint64_t{2} << 20;

class Physical {
 public:
  int card() const { return card_; }
  uint64_t bytes() const { return bytes_; }
  uint64_t offset() const { return offset_; }  // in the owner's arena
  uint32_t slot() const { return slot_; }      // the owner
  bool imported() const { return peer_ != nullptr; }

  void AddRef() { refs_.fetch_add(1, std::memory_order_relaxed); }
  void Release() {
    if (refs_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }

  // False when the last reference is gone already.
  bool TryAddRef() {
    uint32_t refs = refs_.load(std::memory_order_relaxed);
    while (refs != 0 && !refs_.compare_exchange_weak(refs, refs + 1, std::memory_order_relaxed)) {
    }
    return refs != 0;
  }

  // For vmm.cc and share.cc.
  Physical(int card, uint32_t slot, uint64_t offset, uint64_t bytes, Arena* arena, Peer* peer, uint32_t import_index)
      : card_(card),
        slot_(slot),
        offset_(offset),
        bytes_(bytes),
        arena_(arena),
        peer_(peer),
        import_index_(import_index) {}
  int fd() const;
  Arena* arena() const { return arena_; }

 private:
  ~Physical();
  std::atomic<uint32_t> refs_{1};
  const int card_;
  const uint32_t slot_;
  const uint64_t offset_, bytes_;
  Arena* const arena_;           // of this process, or
  Peer* const peer_;             // of another
  const uint32_t import_index_;  // index + 1 of the export it came by
};

// kOutOfDeviceMemory and kOutOfHostMemory as Allocate; sizes are rounded up to 2 MiB.
Result<Ref<Physical>> MallocPhysical(int card, size_t bytes);
// Addresses without memory; start and size are multiples of 2 MiB.
Result<void*> ReserveAddress(size_t bytes);
// Fails while something is mapped in it.
Status ReleaseAddress(void* client);
// The whole of `memory` at `client`, inside one reservation and where nothing is mapped yet.
Status MapPhysical(void* client, size_t bytes, Ref<Physical> memory);
// By the start of the mapping. For clients the addresses are void at once; what is mapped there stays as long as `pages`
// is held, for work that was queued before and still uses it.
struct Unmapped {
  size_t bytes = 0;
  std::shared_ptr<void> pages;
};
Result<Unmapped> Unmap(void* client);
// The memory mapped at an address, and a null Ref when there is none.
Ref<Physical> PhysicalAt(const void* client);

// For hbm.cc: Check and Find where an address lies in a reservation.
Status CheckMapped(const Region& region, const void* client, size_t bytes, std::string_view function,
                   std::string_view param);
std::optional<Block> FindMapped(const Region& region, const void* client);

}  // namespace npu::hbm
