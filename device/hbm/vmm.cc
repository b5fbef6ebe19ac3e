#include "device/hbm/vmm.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <vector>

#include "device/hbm/arena.h"
#include "device/hbm/host_memory.h"
#include "device/hbm/range_allocator.h"
#include "device/hbm/region.h"
#include "device/hbm/share.h"
#include "device/hbm/world.h"
#include "device/strict/strict.h"

namespace npu::hbm {
namespace {

struct Mapping {
  uint64_t bytes = 0;
  Ref<Physical> memory;
};

struct Leaving;

struct Reservation {
  Region* region = nullptr;
  std::mutex mutex;  // guards what follows
  std::map<uint64_t, Mapping> mappings;
  std::vector<const Leaving*> leaving;  // unmapped by the client, not by us yet
  bool released = false;
  std::atomic<uint64_t> epoch{1};  // changes with every unmapping

  // The mapping that holds `at`; end() when none. Lock held.
  std::map<uint64_t, Mapping>::iterator Holding(uint64_t at) {
    auto next = mappings.upper_bound(at);
    if (next == mappings.begin()) return mappings.end();
    --next;
    return at - next->first < next->second.bytes ? next : mappings.end();
  }
};

// A mapping that the client took away while queued work may still use it; goes with its last holder.
struct Leaving {
  Reservation* reservation;
  uint64_t at, bytes;
  Ref<Physical> memory;

  ~Leaving() {
    const std::lock_guard lock(reservation->mutex);
    std::erase(reservation->leaving, this);
    // What was mapped there anew, or is leaving for other work, stays.
    std::vector<Range> taken;
    for (const auto& [start, mapping] : reservation->mappings) taken.push_back({start, mapping.bytes});
    for (const Leaving* other : reservation->leaving) taken.push_back({other->at, other->bytes});
    std::sort(taken.begin(), taken.end(), [](const Range& a, const Range& b) { return a.offset < b.offset; });
    uint64_t next = at;
    const uint64_t end = at + bytes;
    for (const Range& range : taken) {
      if (range.end() <= next) continue;
      if (range.offset >= end) break;
      if (range.offset > next) MapNothing(reservation->region, next, range.offset - next);
      next = range.end();
    }
    if (next < end) MapNothing(reservation->region, next, end - next);
    if (reservation->released && reservation->leaving.empty()) RemoveRegion(reservation->region);
  }
};

uint64_t RoundUp(uint64_t bytes) { return (bytes + kMapGranularity - 1) & ~(kMapGranularity - 1); }

Result<Reservation*> ReservationAt(void* client, std::string_view function) {
  Region* region = client == nullptr ? nullptr : FindRegion(client);
  if (region == nullptr || region->kind != RegionKind::kReserved) {
    return Error(Code::kOutOfRange, "{}: virPtr ({}) lies in no reserved address range.", function, client)
        .Remedy("Pass an address from aclrtReserveMemAddress.");
  }
  if (region->inherited.load(std::memory_order_relaxed)) {
    return Error(Code::kOutOfRange, "{}: virPtr ({}) was reserved by the parent process.", function, client)
        .Remedy("Reserve addresses in the child.");
  }
  return static_cast<Reservation*>(region->owner);
}

// Reservations that were released: a late lookup by another thread may still look at one.
std::vector<Reservation*>& Released() {
  static auto* released = new std::vector<Reservation*>;
  return *released;
}
std::mutex released_mutex;

}  // namespace

int Physical::fd() const { return arena_ != nullptr ? arena_->fd() : peer_->fd.get(); }

Physical::~Physical() {
  if (peer_ != nullptr) {
    if (!peer_->region->inherited.load(std::memory_order_relaxed)) DropImport(*peer_, import_index_);
    return;
  }
  if (arena_->region().inherited.load(std::memory_order_relaxed))
    return;  // the parent's; its lock may be held for ever
  const auto block = arena_->Holding(offset_);
  if (block && block->second.export_index != 0) ForgetExported(this);
  if (block && block->first == offset_) arena_->Drop(offset_, RevokeExport(*arena_, block->second));
}

Result<Ref<Physical>> MallocPhysical(int card, size_t bytes) {
  if (bytes == 0)
    return Error(Code::kInvalidParam, "aclrtMallocPhysical: size is 0.").Remedy("Pass a multiple of 2 MiB.");
  NPU_ASSIGN(World * world, TheWorld());
  NPU_ASSIGN(Arena * arena, world->ArenaOf(card));
  if (bytes > arena->bytes()) {
    return Error(Code::kOutOfDeviceMemory,
                 "aclrtMallocPhysical: {} MiB were asked for on card {}, which has {} MiB in all.", bytes >> 20, card,
                 world->machine().hbm_bytes() >> 20)
        .Remedy("Use smaller batches, or give the cards more memory with --hbm.");
  }
  const uint64_t size = RoundUp(bytes);
  NPU_ASSIGN(const uint64_t offset, arena->Take(size, /*physical=*/true));
  return Ref<Physical>::Adopt(new Physical(card, world->machine().slot(), offset, size, arena, nullptr, 0));
}

Result<void*> ReserveAddress(size_t bytes) {
  if (bytes == 0)
    return Error(Code::kInvalidParam, "aclrtReserveMemAddress: size is 0.").Remedy("Pass a multiple of 2 MiB.");
  if (bytes > size_t{1} << 46) {
    return Error(Code::kOutOfRange, "aclrtReserveMemAddress: size is {} bytes.", bytes)
        .Remedy("Reserve at most 64 TiB.");
  }
  NPU_TRY(device::Join().status());
  NPU_ASSIGN(Region * region, MakeRegion(RegionKind::kReserved, -1, RoundUp(bytes), -1));
  Reservation* reservation = new Reservation;
  reservation->region = region;
  Publish(region, reservation);
  return reinterpret_cast<void*>(region->client);
}

Status ReleaseAddress(void* client) {
  if (client == nullptr) return Error(Code::kInvalidParam, "aclrtReleaseMemAddress: virPtr is null.");
  NPU_ASSIGN(Reservation * reservation, ReservationAt(client, "aclrtReleaseMemAddress"));
  std::lock_guard lock(reservation->mutex);
  if (reinterpret_cast<uintptr_t>(client) != reservation->region->client || reservation->released) {
    return Error(Code::kOutOfRange, "aclrtReleaseMemAddress: virPtr ({}) is not the start of a reserved range.", client)
        .Remedy("Pass {}.", reinterpret_cast<void*>(reservation->region->client));
  }
  if (!reservation->mappings.empty()) {
    return Error(Code::kOutOfRange, "aclrtReleaseMemAddress: {} handles are still mapped in the range at {}.",
                 reservation->mappings.size(), client)
        .Remedy("Call aclrtUnmapMem for each first.");
  }
  reservation->released = true;
  if (reservation->leaving.empty()) {
    RemoveRegion(reservation->region);
  } else {
    HideRegion(reservation->region);  // the last that leaves takes the addresses along
  }
  std::lock_guard keep(released_mutex);
  Released().push_back(reservation);
  return {};
}

Status MapPhysical(void* client, size_t bytes, Ref<Physical> memory) {
  if (client == nullptr || bytes == 0) {
    return Error(Code::kInvalidParam, "aclrtMapMem: virPtr is {} and size {}.", client, bytes)
        .Remedy("Neither may be zero.");
  }
  NPU_ASSIGN(Reservation * reservation, ReservationAt(client, "aclrtMapMem"));
  Region* region = reservation->region;
  const uint64_t at = reinterpret_cast<uintptr_t>(client) - region->client;
  if (at % kMapGranularity != 0 || bytes % kMapGranularity != 0) {
    return Error(Code::kUnaligned, "aclrtMapMem: virPtr ({}) or size ({}) is no multiple of 2 MiB.", client, bytes)
        .Remedy("Ask aclrtMemGetAllocationGranularity.");
  }
  if (bytes > memory->bytes()) {
    return Error(Code::kOutOfRange, "aclrtMapMem: size is {} bytes but the handle has {}.", bytes, memory->bytes())
        .Remedy("Map the handle's full size.");
  }
  if (bytes > region->bytes - at) {
    return Error(Code::kOutOfRange, "aclrtMapMem: {} bytes from {} leave the reserved range by {}.", bytes, client,
                 at + bytes - region->bytes)
        .Remedy("Reserve a larger range.");
  }
  {
    std::lock_guard lock(reservation->mutex);
    auto next = reservation->mappings.upper_bound(at);
    const bool before =
        next != reservation->mappings.begin() && std::prev(next)->first + std::prev(next)->second.bytes > at;
    if (before || (next != reservation->mappings.end() && next->first < at + bytes)) {
      return Error(Code::kOutOfRange, "aclrtMapMem: something is mapped already between {} and {}.", client,
                   static_cast<void*>(static_cast<std::byte*>(client) + bytes))
          .Remedy("Call aclrtUnmapMem first.");
    }
    NPU_TRY(MapInto(region, at, bytes, memory->fd(), memory->offset()));
    reservation->mappings.emplace(at, Mapping{bytes, memory});
  }
  // The arena has the pages (unless it is a large block that gets them by use); this mapping gets them too.
  if (bytes <= kEagerBytes) PopulatePages(reinterpret_cast<void*>(region->local + at), bytes);
  return {};
}

Result<Unmapped> Unmap(void* client) {
  if (client == nullptr) return Error(Code::kInvalidParam, "aclrtUnmapMem: virPtr is null.");
  NPU_ASSIGN(Reservation * reservation, ReservationAt(client, "aclrtUnmapMem"));
  const uint64_t at = reinterpret_cast<uintptr_t>(client) - reservation->region->client;
  std::lock_guard lock(reservation->mutex);
  auto found = reservation->mappings.find(at);
  if (found == reservation->mappings.end()) {
    return Error(Code::kOutOfRange, "aclrtUnmapMem: nothing is mapped at {}.", client)
        .Remedy("Pass the address given to aclrtMapMem.");
  }
  auto gone = std::shared_ptr<Leaving>(new Leaving{reservation, at, found->second.bytes, std::move(found->second.memory)});
  reservation->leaving.push_back(gone.get());
  reservation->mappings.erase(found);
  reservation->epoch.fetch_add(1, std::memory_order_release);
  if (strict::On()) strict::Forgotten(reinterpret_cast<void*>(reservation->region->local + at), gone->bytes);
  return Unmapped{gone->bytes, std::move(gone)};
}

Ref<Physical> PhysicalAt(const void* client) {
  auto found = ReservationAt(const_cast<void*>(client), "aclrtMemRetainAllocationHandle");
  if (!found.ok()) return {};
  Reservation* reservation = *found;
  std::lock_guard lock(reservation->mutex);
  auto at = reservation->Holding(reinterpret_cast<uintptr_t>(client) - reservation->region->client);
  return at == reservation->mappings.end() ? Ref<Physical>() : at->second.memory;
}

Status CheckMapped(const Region& region, const void* client, size_t bytes, std::string_view function,
                   std::string_view param) {
  // As in hbm::Check: what this thread found mapped last.
  struct Last {
    const Reservation* owner = nullptr;
    uint64_t epoch = 0, begin = 0, end = 0;
  };
  thread_local Last last;
  Reservation* reservation = static_cast<Reservation*>(region.owner);
  const uint64_t begin = reinterpret_cast<uintptr_t>(client) - region.client, end = begin + bytes;
  const uint64_t epoch = reservation->epoch.load(std::memory_order_acquire);
  if (last.owner == reservation && last.epoch == epoch && begin >= last.begin && end <= last.end && end >= begin)
    return {};
  std::lock_guard lock(reservation->mutex);
  auto at = reservation->Holding(begin);
  if (at == reservation->mappings.end()) {
    return Error(Code::kOutOfRange, "{}: {} ({}) lies in a reserved range where nothing is mapped.", function, param,
                 client)
        .Remedy("Map a handle there with aclrtMapMem; after aclrtUnmapMem the address is void.");
  }
  // Neighbouring handles make one piece for the client.
  const uint64_t first = at->first;
  uint64_t mapped = first;
  while (at != reservation->mappings.end() && at->first == mapped) {
    mapped += at->second.bytes;
    ++at;
    if (mapped >= end && end >= begin) break;
  }
  if (end < begin || end > mapped) {
    return Error(Code::kOutOfRange, "{}: {} ({}) and {} bytes from there pass the end of what is mapped by {} bytes.",
                 function, param, client, bytes, end - mapped)
        .Remedy("Map more, or pass a smaller size.");
  }
  last = {reservation, epoch, first, mapped};
  return {};
}

std::optional<Block> FindMapped(const Region& region, const void* client) {
  Reservation* reservation = static_cast<Reservation*>(region.owner);
  std::lock_guard lock(reservation->mutex);
  auto at = reservation->Holding(reinterpret_cast<uintptr_t>(client) - region.client);
  if (at == reservation->mappings.end()) return std::nullopt;
  const Physical& memory = *at->second.memory;
  return Block{memory.card(), memory.slot(), memory.offset(), at->second.bytes,
               reinterpret_cast<void*>(region.client + at->first)};
}

}  // namespace npu::hbm
