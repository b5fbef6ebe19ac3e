#include "device/hbm/hbm.h"

#include <algorithm>

#include "device/hbm/foreign.h"
#include "device/hbm/host_memory.h"
#include "device/hbm/share.h"
#include "device/hbm/vmm.h"
#include "device/hbm/world.h"
#include "device/strict/strict.h"

namespace npu::hbm {
namespace {

uintptr_t Number(const void* p) { return reinterpret_cast<uintptr_t>(p); }
void* Pointer(uintptr_t number) { return reinterpret_cast<void*>(number); }

Status NotDeviceMemory(const void* client, std::string_view function, std::string_view param) {
  return Error(Code::kInvalidMemoryType, "{}: {} ({}) is host memory, but device memory belongs here.", function, param,
               client)
      .Remedy("Pass an address from aclrtMalloc, or copy the data to the device first.");
}

Status CheckForeign(const void* client, size_t bytes, std::string_view function, std::string_view param) {
  const auto foreign = FindForeign(client);
  if (!foreign) return NotDeviceMemory(client, function, param);
  const size_t left = foreign->bytes - (Number(client) - Number(foreign->begin));
  if (bytes <= left) return {};
  return Error(Code::kOutOfRange, "{}: {} ({}) and {} bytes from there leave the registered host memory, which has {} bytes from {} on.",
               function, param, client, bytes, foreign->bytes, foreign->begin)
      .Remedy("Register more, or pass a size of at most {} bytes.", left);
}

Status OfTheParent(const void* client, std::string_view function, std::string_view param) {
  return Error(Code::kOutOfRange,
               "{}: {} ({}) is device memory of the parent process, which a forked child does not have.", function,
               param, client)
      .Remedy("Start worker processes with spawn or forkserver, or allocate in the child.");
}

// What this thread found allocated last, valid as long as the arena has freed nothing since.
struct LastChecked {
  const void* owner = nullptr;
  uint64_t epoch = 0;
  uintptr_t begin = 0, end = 0;
};
thread_local LastChecked last_checked;

// Where the client's address lies in its arena's numbering.
uint64_t OffsetIn(const Region& region, const void* client) { return Number(client) - region.client; }

Status Look(const void* client, size_t bytes, std::string_view function, std::string_view param);
Status Release(void* client);

}  // namespace

Result<void*> Allocate(int card, size_t bytes) {
  if (bytes == 0)
    return Error(Code::kInvalidParam, "Memory of size 0 was asked for on card {}.", card)
        .Remedy("Ask for at least one byte.");
  NPU_ASSIGN(World * world, TheWorld());
  NPU_ASSIGN(Arena * arena, world->ArenaOf(card));
  if (bytes > arena->bytes()) {
    return Error(Code::kOutOfDeviceMemory, "{} MiB were asked for on card {}, which has {} MiB in all.", bytes >> 20,
                 card, world->machine().hbm_bytes() >> 20)
        .Remedy("Use smaller batches, or give the cards more memory with --hbm.");
  }
  NPU_ASSIGN(const uint64_t offset, arena->Take(bytes, /*physical=*/false));
  return Pointer(arena->region().client + offset);
}

Result<void*> AllocateFor(int card, size_t bytes, size_t asked, std::string_view call) {
  NPU_ASSIGN(void* const client, Allocate(card, bytes));
  if (!strict::On()) return client;
  const Region* region = FindRegion(client);
  Arena* arena = static_cast<Arena*>(region->owner);
  const uint64_t offset = OffsetIn(*region, client);
  const auto block = arena->Holding(offset);
  if (!block || !arena->guarded()) return client;
  const Range range = block->second.RangeAt(offset);
  // The last page of the range is the guard.
  const uint64_t behind = range.bytes - kGuardBytes - block->second.lead - asked;
  strict::Allocated(card, client, static_cast<std::byte*>(region->ToLocal(Number(client))), asked, {block->second.lead, behind}, call);
  return client;
}

Status Free(void* client) {
  Status status = Release(client);
  if (!status.ok() && strict::On()) strict::Refused(client, status.text(), status.remedy());
  return status;
}

namespace {
Status Release(void* client) {
  constexpr std::string_view kFunction = "aclrtFree", kParam = "devPtr";
  if (client == nullptr)
    return Error(Code::kInvalidParam, "aclrtFree: devPtr is null.").Remedy("Pass what aclrtMalloc returned.");
  Region* region = FindRegion(client);
  if (region == nullptr) {
    return Error(Code::kOutOfRange, "aclrtFree: devPtr ({}) is host memory or no memory at all.", client)
        .Remedy("Pass what aclrtMalloc returned; pinned host memory goes back through aclrtFreeHost.");
  }
  if (region->inherited.load(std::memory_order_relaxed)) return OfTheParent(client, kFunction, kParam);
  if (region->kind == RegionKind::kReserved) {
    return Error(Code::kOutOfRange, "aclrtFree: devPtr ({}) lies in a reserved address range.", client)
        .Remedy("Use aclrtUnmapMem, aclrtFreePhysical and aclrtReleaseMemAddress.");
  }
  if (region->kind == RegionKind::kPeer) {
    return Error(Code::kOutOfRange, "aclrtFree: devPtr ({}) is memory of another process.", client)
        .Remedy("Close it with aclrtIpcMemClose; its owner frees it.");
  }
  Arena* arena = static_cast<Arena*>(region->owner);
  const uint64_t offset = OffsetIn(*region, client);
  const auto block = arena->Holding(offset);
  if (!block || block->second.physical) {
    if (!block && arena->WasFreed(offset)) {
      return Error(Code::kOutOfRange, "aclrtFree: devPtr ({}) was freed already.", client)
          .Remedy("Free each allocation once.");
    }
    return Error(Code::kOutOfRange, "aclrtFree: devPtr ({}) is in the range of card {} but was never allocated.",
                 client, region->card)
        .Remedy("Pass what aclrtMalloc returned.");
  }
  if (block->first != offset) {
    return Error(Code::kOutOfRange, "aclrtFree: devPtr ({}) is {} bytes inside an allocation of {} bytes.", client,
                 offset - block->first, block->second.asked)
        .Remedy("Pass the start of the allocation, {}.", Pointer(region->client + block->first));
  }
  const bool idle = !strict::On() || strict::Freed(static_cast<std::byte*>(region->ToLocal(Number(client))), kFunction);
  arena->Drop(offset, RevokeExport(*arena, block->second), /*in_use=*/!idle);
  return {};
}
}  // namespace

void* Local(const void* client) {
  const Region* region = FindRegion(client);
  if (region == nullptr) return FindForeign(client) ? const_cast<void*>(client) : nullptr;
  if (region->inherited.load(std::memory_order_relaxed)) return nullptr;
  return region->ToLocal(Number(client));
}

Status Check(const void* client, size_t bytes, std::string_view function, std::string_view param) {
  Status status = Look(client, bytes, function, param);
  if (!status.ok() && strict::On()) strict::Refused(client, status.text(), status.remedy());
  return status;
}

namespace {
Status Look(const void* client, size_t bytes, std::string_view function, std::string_view param) {
  if (client == nullptr) {
    return Error(Code::kNullPointer, "{}: {} is null.", function, param).Remedy("Pass device memory.");
  }
  const Region* region = FindRegion(client);
  if (region == nullptr) return CheckForeign(client, bytes, function, param);
  if (region->inherited.load(std::memory_order_relaxed)) return OfTheParent(client, function, param);
  const uintptr_t begin = Number(client), end = begin + bytes;
  const auto leaves = [&](uintptr_t first, uint64_t has) {
    return Error(Code::kOutOfRange,
                 "{}: {} ({}) and {} bytes from there leave the allocation, which has {} bytes from {} on.", function,
                 param, client, bytes, has, Pointer(first))
        .Remedy("Pass a size of at most {} bytes.", first + has - begin);
  };
  if (region->kind == RegionKind::kArena) {
    Arena* arena = static_cast<Arena*>(region->owner);
    const uint64_t epoch = arena->epoch();
    LastChecked& last = last_checked;
    if (last.owner == arena && last.epoch == epoch && begin >= last.begin && end <= last.end && end >= begin) return {};
    const uint64_t offset = OffsetIn(*region, client);
    const auto block = arena->Holding(offset);
    if (!block) {
      if (arena->WasFreed(offset)) {
        return Error(Code::kOutOfRange, "{}: {} ({}) is device memory that was freed.", function, param, client)
            .Remedy("Keep the allocation until all work that uses it is done.");
      }
      return Error(Code::kOutOfRange, "{}: {} ({}) is in the range of card {} but was never allocated.", function,
                   param, client, region->card)
          .Remedy("Pass an address from aclrtMalloc.");
    }
    const uintptr_t first = region->client + block->first;
    if (end < begin || end > first + block->second.bytes) return leaves(first, block->second.asked);
    last = {arena, epoch, first, first + block->second.bytes};
    return {};
  }
  if (region->kind == RegionKind::kReserved) return CheckMapped(*region, client, bytes, function, param);
  const auto block = Find(client);
  if (!block) {
    return Error(Code::kOutOfRange, "{}: {} ({}) is memory of another process that is not imported here.", function,
                 param, client)
        .Remedy("Import it with aclrtIpcMemImportByKey, and use it until aclrtIpcMemClose.");
  }
  if (end < begin || end > Number(block->client) + block->bytes) return leaves(Number(block->client), block->bytes);
  return {};
}
}  // namespace

std::optional<Block> Find(const void* client) {
  const Region* region = FindRegion(client);
  if (region == nullptr || region->inherited.load(std::memory_order_relaxed)) return std::nullopt;
  const uint64_t at = OffsetIn(*region, client);
  switch (region->kind) {
    case RegionKind::kArena: {
      Arena* arena = static_cast<Arena*>(region->owner);
      const auto block = arena->Holding(at);
      if (!block || block->second.physical) return std::nullopt;
      return Block{region->card, arena->machine().slot(), block->first, block->second.asked,
                   Pointer(region->client + block->first)};
    }
    case RegionKind::kReserved:
      return FindMapped(*region, client);
    case RegionKind::kPeer: {
      World* world = WorldIfMade();
      if (world == nullptr) return std::nullopt;
      const Peer* peer = static_cast<const Peer*>(region->owner);
      std::lock_guard lock(world->share_mutex);
      auto import = world->imports.upper_bound({region, at});
      if (import == world->imports.begin()) return std::nullopt;
      --import;
      if (import->first.first != region || at - import->first.second >= import->second.bytes) return std::nullopt;
      return Block{region->card, peer->slot, import->first.second, import->second.bytes,
                   Pointer(region->client + import->first.second)};
    }
  }
  return std::nullopt;
}

std::vector<Piece> PiecesOf(const void* client, size_t bytes) {
  std::vector<Piece> pieces;
  uintptr_t at = Number(client);
  const uintptr_t end = at + bytes;
  while (at < end) {
    const auto block = Find(Pointer(at));
    if (!block) return {};
    const uint64_t inside = at - Number(block->client);
    const uint64_t length = std::min<uint64_t>(block->bytes - inside, end - at);
    const Piece piece{block->slot, block->card, block->offset + inside, length};
    if (!pieces.empty() && pieces.back().slot == piece.slot && pieces.back().card == piece.card &&
        pieces.back().offset + pieces.back().bytes == piece.offset) {
      pieces.back().bytes += piece.bytes;
    } else {
      pieces.push_back(piece);
    }
    at += length;
  }
  return pieces;
}

Result<Usage> UsageOf(int card) {
  NPU_ASSIGN(device::Machine * machine, device::Join());
  if (card < 0 || card >= machine->cards()) {
    return Error(Code::kInvalidDevice, "There is no card {}: machine {} has {}.", card, machine->name(),
                 machine->cards())
        .Remedy("Use 0 to {}, or start with more cards (-n).", machine->cards() - 1);
  }
  machine->Repair();
  Usage usage;
  usage.total = machine->hbm_bytes();
  usage.used = std::min(machine->system_bytes() + machine->UsedOn(card), usage.total);
  usage.free = usage.total - usage.used;
  usage.mine = machine->Mine(card).used.load(std::memory_order_relaxed);
  return usage;
}

Result<void*> MapPeer(uint32_t slot, int card) {
  NPU_ASSIGN(World * world, TheWorld());
  if (card < 0 || card >= world->machine().cards()) {
    return Error(Code::kInvalidDevice, "There is no card {}: machine {} has {}.", card, world->machine().name(),
                 world->machine().cards());
  }
  if (slot == world->machine().slot()) {
    NPU_ASSIGN(Arena * arena, world->ArenaOf(card));
    return Pointer(arena->region().local);
  }
  NPU_ASSIGN(Peer * peer, world->PeerOf(slot, card));
  return Pointer(peer->region->local);
}

void Populate(void* local, size_t bytes) {
  if (bytes == 0) return;
  const Region* region = FindRegion(local);
  if (region == nullptr ||
      region->local != region->client) {  // clients are inaccessible: the kernel is asked each time
    PopulatePages(local, bytes);
    return;
  }
  const uint64_t offset = OffsetIn(*region, local);
  if (bytes > region->bytes - offset) return;
  switch (region->kind) {
    case RegionKind::kArena:
      static_cast<Arena*>(region->owner)->PopulateRange(offset, bytes);
      break;
    case RegionKind::kPeer:
      static_cast<Peer*>(region->owner)->populated->Populate(*region, offset, bytes);
      break;
    case RegionKind::kReserved:
      break;  // was done when it was mapped
  }
}

uint64_t Trim() {
  World* world = WorldIfMade();
  return world == nullptr ? 0 : world->TrimAll();
}

}  // namespace npu::hbm
