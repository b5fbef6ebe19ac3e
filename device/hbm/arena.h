// The memory that this process owns on one card.
//
// One sparse memfd, mapped whole once; a block is an offset in it. Freed blocks keep their pages and are handed out
// again; the pages go back to the host when it runs short or the pool grows beyond an eighth of the host. What is
// granted is counted in the machine's state file, in fields that only this process writes, so a killed process leaves
// nothing to mend.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "base/os/fd.h"
#include "base/status/status.h"
#include "device/hbm/populated.h"
#include "device/hbm/range_allocator.h"
#include "device/hbm/region.h"
#include "device/machine/machine.h"
#include "device/strict/strict.h"

namespace npu::hbm {

inline constexpr uint64_t kBigBlock = uint64_t{2} << 20;  // from here on aligned to as much, and the unit of mapping
inline constexpr uint64_t kEagerBytes = uint64_t{256} << 20;  // up to here pages are made at once
inline constexpr uint64_t kSmallAlign = 512;
inline constexpr uint64_t kGuardBytes = 4096;  // strict memory: the page behind each block

struct BlockInfo {
  uint64_t bytes = 0;  // granted: rounded up
  uint64_t asked = 0;
  uint64_t lead = 0, tail = 0;  // strict memory: what of its range lies before and behind it
  bool physical = false;      // a handle of the virtual-memory API: has no client address of its own
  uint32_t export_index = 0;  // index + 1 of its entry in the state file, when it is exported
  Range RangeAt(uint64_t offset) const { return {offset - lead, lead + bytes + tail}; }
};

class Arena {
 public:
  static Result<std::unique_ptr<Arena>> Make(device::Machine& machine, int card);
  ~Arena();

  // Granted, backed and, up to kEagerBytes, populated.
  Result<uint64_t> Take(uint64_t bytes, bool physical);
  // In strict memory: the bytes of red zone around the block, the rest up to the next page on either side.
  bool guarded() const { return guarded_; }
  // Takes the block that starts at `offset` out of use. `after` runs under the lock with its info and says whether the
  // range may be reused now; if not, Reclaim asks again later.
  enum class Fate { kReuse, kLinger };
  // `in_use`: kernels may still be at work in it.
  void Drop(uint64_t offset, Fate fate, bool in_use = false);
  bool Lingers() const { return lingering_count_.load(std::memory_order_relaxed) != 0; }
  // Blocks that were waiting for an importer to let go.
  void Reclaim();

  // The live block that holds `offset`, with its start.
  std::optional<std::pair<uint64_t, BlockInfo>> Holding(uint64_t offset) const;
  bool WasFreed(uint64_t offset) const;  // a block that started or lay there was freed lately
  void SetExport(uint64_t offset, uint32_t index);

  uint64_t Trim();
  // Gives [offset, offset + bytes) its pages, remembering what has them.
  void PopulateRange(uint64_t offset, uint64_t bytes) { populated_->Populate(*region_, offset, bytes); }

  Region& region() const { return *region_; }
  int fd() const { return fd_.get(); }
  int card() const { return card_; }
  uint64_t bytes() const { return bytes_; }
  device::Machine& machine() const { return machine_; }
  // Changes with every block that goes: what was checked before may no longer hold.
  uint64_t epoch() const { return epoch_.load(std::memory_order_acquire); }
  void BumpEpoch() { epoch_.fetch_add(1, std::memory_order_release); }

 private:
  Arena(device::Machine& machine, int card) : machine_(machine), card_(card) {}
  // Strict memory (docs/decisions/strict-memory.md): only blocks may be touched, and what was freed rests for a while.
  bool Protect(const Range& pages, bool open) const;
  void Rest(const Range& range);  // lock held
  Status GrantOnCard(uint64_t bytes);
  Status GrantOnHost(uint64_t bytes);
  void Ungrant(uint64_t bytes);
  void PublishPending();                             // lock held
  void PublishFree();                                // lock held
  uint64_t Punch(const std::vector<Range>& ranges);  // lock held
  uint64_t TrimLocked();
  std::string WhoUses() const;

  device::Machine& machine_;
  const int card_;
  uint64_t bytes_ = 0;
  const bool guarded_ = strict::On();
  os::Fd fd_;
  Region* region_ = nullptr;
  std::atomic<uint64_t> epoch_{1};
  std::atomic<uint32_t> lingering_count_{0};
  std::unique_ptr<Populated> populated_;

  mutable std::mutex mutex_;  // guards what follows
  std::unique_ptr<RangeAllocator> ranges_;
  std::map<uint64_t, BlockInfo> blocks_;
  std::map<uint64_t, BlockInfo> lingering_;
  std::array<Range, 1024> freed_{};  // a ring of what went last, for error texts
  size_t freed_next_ = 0;
  size_t changes_ = 0;
  std::deque<Range> resting_;  // strict memory: freed, not to be handed out yet
  uint64_t resting_bytes_ = 0;
};

}  // namespace npu::hbm
