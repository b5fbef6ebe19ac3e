#include "device/hbm/arena.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "base/log/log.h"
#include "base/os/fork.h"
#include "base/os/process.h"
#include "device/faults/act.h"
#include "device/hbm/host_memory.h"
#include "device/hbm/world.h"

namespace npu::hbm {
namespace {

using namespace std::chrono_literals;

constexpr uint64_t kMiB = uint64_t{1} << 20;
std::string MiB(uint64_t bytes) {
  return bytes >= kMiB ? fmt::format("{} MiB", bytes / kMiB) : fmt::format("{} bytes", bytes);
}

// Strict memory: what was freed rests until so much came after it.
constexpr uint64_t kRestingBytes = 64 * kMiB;
constexpr size_t kRestingBlocks = 1024;

Status NoFence() {
  return Error(Code::kOutOfHostMemory, "Strict memory needs two mappings for each block, and this process may have no more of them.")
      .Remedy("Raise their number (sysctl vm.max_map_count), hold fewer blocks at a time, or run without --strict.");
}

// Left to the host for everything else.
uint64_t HostMargin(const HostMemory& host) { return std::max<uint64_t>(64 * kMiB, host.total / 50); }

}  // namespace

Result<std::unique_ptr<Arena>> Arena::Make(device::Machine& machine, int card) {
  std::unique_ptr<Arena> arena(new Arena(machine, card));
  // A quarter more than the card: holes between blocks cost addresses and nothing else.
  arena->bytes_ = (machine.hbm_bytes() + machine.hbm_bytes() / 4 + kBigBlock - 1) / kBigBlock * kBigBlock;
  NPU_ASSIGN(arena->fd_, os::MakeMemfd(fmt::format("npu-hbm-{}", card).c_str(), arena->bytes_));
  os::CloseInChildren(arena->fd_.get());
  NPU_ASSIGN(arena->region_, MakeRegion(RegionKind::kArena, card, arena->bytes_, arena->fd_.get()));
  arena->ranges_ = std::make_unique<RangeAllocator>(arena->bytes_);
  arena->populated_ = std::make_unique<Populated>(arena->bytes_);
  struct stat s {};
  fstat(arena->fd_.get(), &s);
  device::CardUse& mine = machine.Mine(card);
  mine.arena_fd.store(arena->fd_.get(), std::memory_order_relaxed);
  mine.arena_inode.store(s.st_ino, std::memory_order_release);
  if (arena->guarded_) arena->Protect({0, arena->bytes_}, /*open=*/false);
  Publish(arena->region_, arena.get());
  return arena;
}

Arena::~Arena() {
  if (region_ != nullptr) RemoveRegion(region_);
  if (fd_) os::ForgetInChildren(fd_.get());
}

std::string Arena::WhoUses() const {
  std::string text;
  for (uint32_t i = 0; i < device::SlotHigh(machine_.shared()); ++i) {
    const device::Slot& slot = machine_.shared().slots[i];
    if (slot.state.load(std::memory_order_relaxed) != device::kSlotLive) continue;
    const uint64_t used = slot.cards[card_].used.load(std::memory_order_relaxed);
    if (used == 0 || i == device::SlotIndex(machine_.slot())) continue;
    text += fmt::format(", process {} {}", slot.pid.load(std::memory_order_relaxed), MiB(used));
  }
  return text;
}

Status Arena::GrantOnCard(uint64_t bytes) {
  if (machine_.left()) {
    return Error(Code::kUninitialized, "Card {}: memory was asked for while the process is ending.", card_)
        .Remedy("Allocate before exit handlers run.");
  }
  device::StateLayout& shared = machine_.shared();
  NPU_TRY(device::CheckDriver(shared, card_, "aclrtMalloc"));
  const uint64_t leaked = device::LeakedBytes(shared, card_);
  const uint64_t limit = machine_.hbm_bytes() - machine_.system_bytes() - leaked;
  if (shared.figures.faults.armed.load(std::memory_order_relaxed) != 0) {
    const uint64_t free = limit - std::min(limit, machine_.UsedOn(card_));
    if (const uint64_t largest = device::LargestBlock(shared, card_, free); bytes <= free && bytes > largest) {
      return Error(Code::kOutOfDeviceMemory, "Card {} has {} free, but no piece larger than {}; {} were asked for.", card_,
                   MiB(free), MiB(largest), MiB(bytes))
          .Remedy("The fault hbm-fragmentation was injected: anynpu faults lists it, anynpu clear ends it.");
    }
  }
  device::CardUse& mine = machine_.Mine(card_);
  // Each process first adds to its own figure and then sums all. Of two that take at once at least one sees the other,
  // so together they never pass the limit; both may see too much and step back, hence the second and third try.
  for (int attempt = 0; bytes <= limit && attempt < 3; ++attempt) {
    mine.used.fetch_add(bytes, std::memory_order_seq_cst);
    if (machine_.UsedOn(card_) <= limit) return {};
    mine.used.fetch_sub(bytes, std::memory_order_seq_cst);
    machine_.Repair(/*force=*/true);  // a killed process may still be counted
    if (attempt > 0)
      std::this_thread::sleep_for(std::chrono::microseconds(50 * (1 + device::SlotIndex(machine_.slot()))));
  }
  const uint64_t own = mine.used.load(std::memory_order_relaxed);
  return Error(Code::kOutOfDeviceMemory,
               "Card {} ({}) is full: {} were asked for and {} of {} are free. The system has {}, this process {}{}.",
               card_, machine_.profile().soc, MiB(bytes), MiB(limit - std::min(limit, machine_.UsedOn(card_))),
               MiB(machine_.hbm_bytes()), MiB(machine_.system_bytes()), MiB(own), WhoUses())
      .Remedy("Free memory, use smaller batches, or give the cards more with --hbm.");
}

Status Arena::GrantOnHost(uint64_t bytes) {
  // GrantOnCard has counted the bytes already; they have no pages yet, so they are pending.
  const auto fits = [&](HostMemory* host, device::Machine::HostUse* use) {
    {
      std::lock_guard lock(mutex_);
      PublishPending();
    }
    *host = ReadHostMemory();
    *use = machine_.HostUseOfAll();
    if (machine_.host_limit() != 0 && use->granted + use->pooled > machine_.host_limit()) return false;
    return use->pending + HostMargin(*host) <= host->available;
  };
  HostMemory host;
  device::Machine::HostUse use;
  if (fits(&host, &use)) return {};
  // Freed pages that we, dead peers or others keep.
  if (World* world = WorldIfMade(); world != nullptr) {
    world->TrimAll();
    world->LetGoOfDeadPeers();
  } else {
    Trim();
  }
  machine_.Repair(/*force=*/true);
  if (fits(&host, &use)) return {};
  AskOthersToTrim(machine_);
  if (fits(&host, &use)) return {};
  const uint64_t promised = use.pending - std::min(use.pending, bytes);
  if (machine_.host_limit() != 0 && use.granted + use.pooled > machine_.host_limit()) {
    return Error(Code::kOutOfHostMemory,
                 "The host cannot back {} for card {}: all cards of machine {} may take {} of host memory "
                 "(ANYNPU_HOST_MEMORY) and hold {}.",
                 MiB(bytes), card_, machine_.name(), MiB(machine_.host_limit()), MiB(use.granted + use.pooled - bytes))
        .Remedy(
            "Free memory, raise ANYNPU_HOST_MEMORY, or make the cards smaller with --hbm so that programs plan for "
            "it.");
  }
  return Error(Code::kOutOfHostMemory,
               "The host cannot back {} for card {}: {} of its {} are available ({}), of which {} are promised and {} "
               "kept free. "
               "The card itself has room.",
               MiB(bytes), card_, MiB(host.available), MiB(host.total), host.limited_by, MiB(promised),
               MiB(HostMargin(host)))
      .Remedy(
          "Free host memory, use fewer processes, or make the cards smaller with --hbm so that programs plan for it.");
}

void Arena::Ungrant(uint64_t bytes) { machine_.Mine(card_).used.fetch_sub(bytes, std::memory_order_seq_cst); }

// For the figure of fragmentation. Many blocks make it dear, so it is then taken now and then.
void Arena::PublishFree() {
  constexpr size_t kManyParts = 512, kEvery = 16;
  if (blocks_.size() > kManyParts && ++changes_ % kEvery != 0) return;
  const uint64_t limit = machine_.hbm_bytes() - machine_.system_bytes();
  const uint64_t used = machine_.Mine(card_).used.load(std::memory_order_relaxed);
  device::WorkNow& now = machine_.Work(card_).now;
  const uint64_t free = limit - std::min(limit, used);
  now.free_bytes.store(free, std::memory_order_relaxed);
  now.largest_free_bytes.store(std::min(free, ranges_->LargestBelow(limit)), std::memory_order_relaxed);
}

void Arena::PublishPending() {
  struct stat s {};
  if (fstat(fd_.get(), &s) != 0) return;
  const uint64_t resident = static_cast<uint64_t>(s.st_blocks) * 512;
  device::CardUse& mine = machine_.Mine(card_);
  const uint64_t pooled = ranges_->resident_bytes();
  const uint64_t committed = mine.used.load(std::memory_order_relaxed) + pooled;
  mine.pooled.store(pooled, std::memory_order_relaxed);
  mine.pending.store(committed - std::min(committed, resident), std::memory_order_seq_cst);
}

bool Arena::Protect(const Range& pages, bool open) const {
  return mprotect(reinterpret_cast<void*>(region_->local + pages.offset), pages.bytes, open ? PROT_READ | PROT_WRITE : PROT_NONE) == 0;
}

void Arena::Rest(const Range& range) {
  resting_.push_back(range);
  resting_bytes_ += range.bytes;
  while (resting_bytes_ > kRestingBytes || resting_.size() > kRestingBlocks) {
    const Range oldest = resting_.front();
    resting_.pop_front();
    resting_bytes_ -= oldest.bytes;
    ranges_->Give(oldest, /*resident=*/true);
  }
}

Result<uint64_t> Arena::Take(uint64_t bytes, bool physical) {
  const uint64_t size = (bytes + kSmallAlign - 1) / kSmallAlign * kSmallAlign;
  uint64_t align = size >= kBigBlock ? kBigBlock : kSmallAlign;
  // Strict memory: whole pages and one behind them that nobody may touch. Small blocks end where their pages end, as far as
  // their alignment allows.
  const bool fenced = guarded_ && !physical;
  const uint64_t pages = (size + kGuardBytes - 1) / kGuardBytes * kGuardBytes;
  const uint64_t lead = fenced && align != kBigBlock ? pages - size : 0;
  const uint64_t span = fenced ? pages + kGuardBytes : size;
  if (fenced) align = std::max(align, kGuardBytes);
  const auto granted = [&](const Range& range) {
    blocks_.emplace(range.offset + lead, BlockInfo{size, bytes, lead, span - lead - size, physical, 0});
    return range.offset + lead;
  };
  const auto open = [&](const Range& range) {
    return !guarded_ || Protect({range.offset, fenced ? pages : size}, /*open=*/true);
  };
  if (Lingers()) Reclaim();
  NPU_TRY(GrantOnCard(size));
  std::optional<Range> range;
  {
    std::lock_guard lock(mutex_);
    if ((range = ranges_->TakeResident(span, align))) {
      if (!open(*range)) {
        ranges_->Give(*range, /*resident=*/true);
        Ungrant(size);
        return NoFence();
      }
      machine_.Mine(card_).pooled.store(ranges_->resident_bytes(), std::memory_order_relaxed);
      PublishFree();
      return granted(*range);
    }
  }
  if (Status backed = GrantOnHost(size); !backed.ok()) {
    Ungrant(size);
    std::lock_guard lock(mutex_);
    PublishPending();
    return backed;
  }
  {
    std::lock_guard lock(mutex_);
    range = ranges_->TakeFresh(span, align);
    if (!range) {  // pieces: what is kept resident may join them
      TrimLocked();
      range = ranges_->TakeFresh(span, align);
    }
    if (range && !open(*range)) {
      ranges_->Give(*range, /*resident=*/false);
      Ungrant(size);
      return NoFence();
    }
    if (range) granted(*range);
    PublishFree();
  }
  if (!range) {
    Ungrant(size);
    return Error(Code::kOutOfDeviceMemory, "Card {} has {} free, but not in one piece of {}.", card_,
                 MiB(ranges_->free_bytes()), MiB(size))
        .Remedy("Free neighbouring blocks, or use expandable_segments.");
  }
  if (size <= kEagerBytes) {
    const bool populated = guarded_ ? PopulatePages(reinterpret_cast<void*>(region_->local + range->offset), fenced ? pages : size)
                                    : populated_->Populate(*region_, range->offset, size);
    std::lock_guard lock(mutex_);
    PublishPending();
    if (!populated) {
      blocks_.erase(range->offset + lead);
      if (guarded_) Protect(*range, /*open=*/false);
      Punch({*range});
      ranges_->Give(*range, /*resident=*/false);
      Ungrant(size);
      PublishPending();
      return Error(Code::kOutOfHostMemory, "The host gave no pages for {} of card {}, though it seemed to have them.",
                   MiB(size), card_)
          .Remedy("Free host memory, or make the cards smaller with --hbm.");
    }
  }
  return range->offset + lead;
}

void Arena::Drop(uint64_t offset, Fate fate, bool in_use) {
  std::lock_guard lock(mutex_);
  auto at = blocks_.find(offset);
  if (at == blocks_.end()) return;
  const Range range = at->second.RangeAt(offset);
  const uint64_t size = at->second.bytes;
  epoch_.fetch_add(1, std::memory_order_release);
  freed_[freed_next_++ % freed_.size()] = range;
  if (fate == Fate::kLinger) {
    lingering_.insert(blocks_.extract(at));
    lingering_count_.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  blocks_.erase(at);
  static const uint64_t keep_at_most = std::max<uint64_t>(1024 * kMiB, ReadHostMemory().total / 8);
  const bool keep = range.bytes <= kEagerBytes && ranges_->resident_bytes() + range.bytes <= keep_at_most;
  if (guarded_ && !in_use) Protect(range, /*open=*/false);
  if (!keep) Punch({range});
  if (keep && guarded_) {
    Rest(range);
  } else {
    ranges_->Give(range, keep);
  }
  Ungrant(size);
  machine_.Mine(card_).pooled.store(ranges_->resident_bytes(), std::memory_order_relaxed);
  PublishFree();
  if (!keep) PublishPending();
}

void Arena::Reclaim() {
  std::lock_guard lock(mutex_);
  for (auto at = lingering_.begin(); at != lingering_.end();) {
    const uint32_t index = at->second.export_index;
    if (index != 0) {
      device::Export& entry = machine_.shared().exports[index - 1];
      bool held = false;
      for (auto& word : entry.importers) held = held || word.load(std::memory_order_seq_cst) != 0;
      if (held && entry.owner.load(std::memory_order_relaxed) == machine_.slot()) {
        ++at;
        continue;
      }
      entry.owner.store(0, std::memory_order_release);
    }
    const Range range = at->second.RangeAt(at->first);
    if (guarded_) Protect(range, /*open=*/false);
    Punch({range});
    ranges_->Give(range, /*resident=*/false);
    Ungrant(at->second.bytes);
    at = lingering_.erase(at);
    lingering_count_.fetch_sub(1, std::memory_order_relaxed);
  }
  PublishPending();
}

std::optional<std::pair<uint64_t, BlockInfo>> Arena::Holding(uint64_t offset) const {
  std::lock_guard lock(mutex_);
  auto at = blocks_.upper_bound(offset);
  if (at == blocks_.begin()) return std::nullopt;
  --at;
  if (offset - at->first >= at->second.bytes) return std::nullopt;
  return *at;
}

bool Arena::WasFreed(uint64_t offset) const {
  std::lock_guard lock(mutex_);
  return std::any_of(freed_.begin(), freed_.end(), [&](const Range& r) { return offset - r.offset < r.bytes; });
}

void Arena::SetExport(uint64_t offset, uint32_t index) {
  std::lock_guard lock(mutex_);
  if (auto at = blocks_.find(offset); at != blocks_.end()) at->second.export_index = index;
}

uint64_t Arena::Punch(const std::vector<Range>& ranges) {
  static const uint64_t page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  uint64_t bytes = 0;
  for (const Range& range : ranges) {
    const uint64_t begin = (range.offset + page - 1) & ~(page - 1),
                   end = range.end() & ~(page - 1);  // whole pages only
    if (begin >= end) continue;
    if (fallocate(fd_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(begin),
                  static_cast<off_t>(end - begin)) == 0) {
      bytes += end - begin;
      populated_->Forget(begin, end - begin);
    }
  }
  return bytes;
}

uint64_t Arena::TrimLocked() {
  for (const Range& range : resting_) ranges_->Give(range, /*resident=*/true);
  resting_.clear();
  resting_bytes_ = 0;
  const std::vector<Range> ranges = ranges_->TakeAllResident();
  const uint64_t bytes = Punch(ranges);
  for (const Range& range : ranges) ranges_->Give(range, /*resident=*/false);
  PublishPending();
  return bytes;
}

uint64_t Arena::Trim() {
  std::lock_guard lock(mutex_);
  return TrimLocked();
}

}  // namespace npu::hbm
