#include "device/hbm/share.h"

#include <unistd.h>

#include <cstring>

#include "base/os/process.h"
#include "device/hbm/world.h"
#include "device/strict/strict.h"

namespace npu::hbm {
namespace {

enum : uint32_t { kAnyProcess = 1, kRevoked = 2, kPhysical = 4 };

// An export as a key or token names it.
struct Name {
  uint32_t slot = 0;
  int card = -1;
  uint64_t offset = 0, bytes = 0;
  uint32_t index = 0, generation = 0;
};

device::Export& EntryOf(const device::Machine& machine, uint32_t index) { return machine.shared().exports[index]; }

std::string KeyOf(const device::Machine& machine, const Name& name) {
  return fmt::format("anpu1{:08x}{:08x}{:02x}{:010x}{:010x}{:04x}{:08x}", static_cast<uint32_t>(machine.nonce()),
                     name.slot, name.card, name.offset, name.bytes, name.index, name.generation);
}

Status UnknownKey(std::string_view what) {
  return Error(Code::kOutOfRange, "The {} of shared device memory is not known on this machine.", what)
      .Remedy("Pass it unchanged from a process of the same machine that still runs.");
}

// Whole and exact: what KeyOf would print.
Result<Name> ParseKey(const device::Machine& machine, std::string_view key) {
  Name name;
  unsigned nonce = 0, slot = 0, card = 0, index = 0, generation = 0;
  unsigned long long offset = 0, bytes = 0;
  const std::string text(key.substr(0, kKeyBytes));
  if (std::sscanf(text.c_str(), "anpu1%8x%8x%2x%10llx%10llx%4x%8x", &nonce, &slot, &card, &offset, &bytes, &index,
                  &generation) != 7) {
    return UnknownKey("key");
  }
  name = {slot, static_cast<int>(card), offset, bytes, index, generation};
  if (KeyOf(machine, name) != text || index >= device::kMaxExports || static_cast<int>(card) >= machine.cards())
    return UnknownKey("key");
  return name;
}

uint64_t TokenOf(const Name& name) {
  return static_cast<uint64_t>(name.generation) << 32 | 0x5A000000u | (name.index + 1);
}

Result<Name> ParseToken(const device::Machine& machine, uint64_t token) {
  const uint32_t low = static_cast<uint32_t>(token);
  const uint32_t index = (low & 0xFFFFFF) - 1;
  if (low >> 24 != 0x5A || index >= device::kMaxExports) return UnknownKey("shareable handle");
  device::Export& entry = EntryOf(machine, index);
  Name name;
  name.index = index;
  name.generation = static_cast<uint32_t>(token >> 32);
  if (entry.generation.load(std::memory_order_acquire) != name.generation) return UnknownKey("shareable handle");
  name.slot = entry.owner.load(std::memory_order_relaxed);
  name.card = static_cast<int>(entry.card.load(std::memory_order_relaxed));
  name.offset = entry.offset.load(std::memory_order_relaxed);
  name.bytes = entry.bytes.load(std::memory_order_relaxed);
  if (name.card >= machine.cards()) return UnknownKey("shareable handle");
  return name;
}

Result<Name> MakeExport(Arena& arena, uint64_t offset, uint64_t bytes, uint32_t flags) {
  device::Machine& machine = arena.machine();
  for (uint32_t index = 0; index < device::kMaxExports; ++index) {
    device::Export& entry = EntryOf(machine, index);
    uint32_t none = 0;
    if (!entry.owner.compare_exchange_strong(none, machine.slot(), std::memory_order_acquire,
                                             std::memory_order_relaxed))
      continue;
    device::RaiseHigh(machine.shared().header.export_high, index);
    entry.card.store(static_cast<uint32_t>(arena.card()), std::memory_order_relaxed);
    entry.offset.store(offset, std::memory_order_relaxed);
    entry.bytes.store(bytes, std::memory_order_relaxed);
    entry.flags.store(flags, std::memory_order_relaxed);
    for (auto& pid : entry.pids) pid.store(0, std::memory_order_relaxed);
    for (auto& word : entry.importers) word.store(0, std::memory_order_relaxed);
    uint32_t generation = entry.generation.load(std::memory_order_relaxed) + 1;
    if (generation == 0) generation = 1;
    entry.generation.store(generation, std::memory_order_release);  // now it can be found
    arena.SetExport(offset, index + 1);
    return Name{machine.slot(), arena.card(), offset, bytes, index, generation};
  }
  return Error(Code::kResourceExhausted, "{} blocks of machine {} are shared between processes, which is the most.",
               device::kMaxExports, machine.name())
      .Remedy("Free or revoke shared memory that is no longer needed.");
}

// The block's export, made if there is none.
Result<Name> Exported(Arena& arena, uint64_t offset, const BlockInfo& block, uint32_t flags) {
  World* world = WorldIfMade();
  std::lock_guard lock(world->share_mutex);
  const auto now = arena.Holding(offset);
  if (now && now->second.export_index != 0) {
    const uint32_t index = now->second.export_index - 1;
    device::Export& entry = EntryOf(arena.machine(), index);
    if (entry.owner.load(std::memory_order_relaxed) == arena.machine().slot()) {
      uint32_t generation = entry.generation.load(std::memory_order_relaxed);
      if ((entry.flags.load(std::memory_order_relaxed) & kRevoked) == 0) {
        entry.flags.fetch_or(flags, std::memory_order_relaxed);
      } else {
        // Shared anew under another name. The entry stays the same: who imported it by the old name still holds it.
        // Who was allowed then is not by that allowed now.
        for (auto& pid : entry.pids) pid.store(0, std::memory_order_relaxed);
        if (++generation == 0) generation = 1;
        entry.flags.store(flags, std::memory_order_relaxed);
        entry.generation.store(generation, std::memory_order_release);
      }
      return Name{arena.machine().slot(), arena.card(), offset, block.asked, index, generation};
    }
  }
  return MakeExport(arena, offset, block.asked, flags);
}

bool MayImport(const device::Export& entry, const device::Machine& machine) {
  if ((entry.flags.load(std::memory_order_relaxed) & kAnyProcess) != 0) return true;
  if (entry.owner.load(std::memory_order_relaxed) == machine.slot()) return true;
  const int32_t self = getpid();
  for (const auto& pid : entry.pids) {
    if (pid.load(std::memory_order_relaxed) == self) return true;
  }
  return false;
}

// The entry behind a name, if it is what the name says and we may have it.
Result<device::Export*> Admit(const device::Machine& machine, const Name& name, uint32_t kind, std::string_view what) {
  device::Export& entry = EntryOf(machine, name.index);
  if (entry.generation.load(std::memory_order_acquire) != name.generation ||
      entry.owner.load(std::memory_order_relaxed) != name.slot ||
      entry.card.load(std::memory_order_relaxed) != static_cast<uint32_t>(name.card) ||
      entry.offset.load(std::memory_order_relaxed) != name.offset ||
      entry.bytes.load(std::memory_order_relaxed) != name.bytes) {
    return Error(Code::kOutOfRange, "The {} names device memory that was freed or whose owner has ended.", what)
        .Remedy("Keep the memory and its process until all have imported it.");
  }
  const uint32_t flags = entry.flags.load(std::memory_order_seq_cst);
  if ((flags & kRevoked) != 0 || (flags & kPhysical) != kind) {
    return Error(Code::kOutOfRange, "The {} names device memory that was freed or is no longer shared.", what)
        .Remedy("Keep the memory until all have imported it.");
  }
  if (!MayImport(entry, machine)) {
    return Error(Code::kNoPermission, "The owner of the {} has not allowed process {} to import it.", what, getpid())
        .Remedy(
            "Name this process in the owner (aclrtIpcMemSetImportPid, aclrtMemSetPidToShareableHandle) or switch the "
            "check off.");
  }
  return &entry;
}

// Our mark among the importers of an entry.
size_t Word(const device::Machine& machine) { return device::SlotIndex(machine.slot()) / 64; }
uint64_t Bit(const device::Machine& machine) { return uint64_t{1} << (device::SlotIndex(machine.slot()) % 64); }

// Marks us as an importer, unless the owner was quicker to free. World::share_mutex held.
Result<Peer*> Hold(World& world, const Name& name, device::Export& entry) {
  device::Machine& machine = world.machine();
  NPU_ASSIGN(Peer * peer, world.PeerOf(name.slot, name.card));
  if (name.bytes == 0 || name.offset > peer->region->bytes || name.bytes > peer->region->bytes - name.offset) {
    return Error(Code::kIpcError, "Shared device memory of process {} leaves its arena.", machine.PidOf(name.slot));
  }
  peer->holds.fetch_add(1, std::memory_order_seq_cst);
  const auto failed = [&] {
    peer->holds.fetch_sub(1, std::memory_order_relaxed);
    return Error(Code::kOutOfRange, "Shared device memory was freed by its owner while it was being imported.")
        .Remedy("Keep the memory and its process until all have imported it.");
  };
  if (peer->let_go.load(std::memory_order_seq_cst)) return failed();
  const auto key = std::make_pair(name.index, name.slot);
  if (world.held.find(key) == world.held.end()) {
    // Sequentially consistent on both sides: either the owner, which revokes and then looks, sees this mark, or we see
    // the revocation; and if the owner has ended, the entry's next owner wipes the mark or we see the change.
    entry.importers[Word(machine)].fetch_or(Bit(machine), std::memory_order_seq_cst);
    if ((entry.flags.load(std::memory_order_seq_cst) & kRevoked) != 0 ||
        entry.owner.load(std::memory_order_seq_cst) != name.slot ||
        entry.generation.load(std::memory_order_seq_cst) != name.generation) {
      entry.importers[Word(machine)].fetch_and(~Bit(machine), std::memory_order_seq_cst);
      return failed();
    }
  }
  ++world.held[key];
  return peer;
}

// World::share_mutex held.
void Unhold(World& world, Peer& peer, uint32_t index) {
  const auto at = world.held.find({index, peer.slot});
  if (at == world.held.end()) return;
  peer.holds.fetch_sub(1, std::memory_order_relaxed);
  if (--at->second != 0) return;
  world.held.erase(at);
  device::Export& entry = EntryOf(world.machine(), index);
  // Of an owner that has ended nothing is left to unmark: the entry may be another's by now.
  if (entry.owner.load(std::memory_order_seq_cst) != peer.slot) return;
  entry.importers[Word(world.machine())].fetch_and(~Bit(world.machine()), std::memory_order_seq_cst);
}

Status Allow(const device::Machine& machine, const Name& name, std::span<const int32_t> pids, std::string_view what) {
  device::Export& entry = EntryOf(machine, name.index);
  if (entry.generation.load(std::memory_order_acquire) != name.generation ||
      entry.owner.load(std::memory_order_relaxed) != machine.slot()) {
    return Error(Code::kOutOfRange, "The {} was not made by this process.", what)
        .Remedy("Only the owner may allow processes.");
  }
  for (const int32_t pid : pids) {
    bool placed = false;
    for (auto& place : entry.pids) {
      int32_t none = 0;
      placed = place.load(std::memory_order_relaxed) == pid ||
               place.compare_exchange_strong(none, pid, std::memory_order_relaxed);
      if (placed) break;
    }
    if (!placed) {
      return Error(Code::kResourceExhausted, "The {} has {} allowed processes already.", what, std::size(entry.pids))
          .Remedy("Export with the check of processes switched off.");
    }
  }
  return {};
}

}  // namespace

Result<std::string> ExportKey(void* client, size_t bytes, bool any_process) {
  NPU_TRY(Check(client, bytes, "aclrtIpcMemGetExportKey", "devPtr"));
  Region* region = FindRegion(client);
  if (region->kind != RegionKind::kArena) {
    return Error(Code::kOutOfRange, "aclrtIpcMemGetExportKey: devPtr ({}) is not from aclrtMalloc in this process.",
                 client)
        .Remedy("Share mapped handles with aclrtMemExportToShareableHandle, imported memory from its owner.");
  }
  Arena* arena = static_cast<Arena*>(region->owner);
  const uint64_t offset = reinterpret_cast<uintptr_t>(client) - region->client;
  const auto block = arena->Holding(offset);
  if (!block || block->first != offset) {
    return Error(Code::kOutOfRange, "aclrtIpcMemGetExportKey: devPtr ({}) is not the start of an allocation.", client)
        .Remedy("Export the allocation and add the distance on the other side.");
  }
  NPU_ASSIGN(const Name name, Exported(*arena, offset, block->second, any_process ? kAnyProcess : 0u));
  if (strict::On()) strict::Shared(static_cast<std::byte*>(region->ToLocal(reinterpret_cast<uintptr_t>(client))));
  return KeyOf(arena->machine(), name);
}

Status AllowProcesses(std::string_view key, std::span<const int32_t> pids) {
  NPU_ASSIGN(device::Machine * machine, device::Join());
  NPU_ASSIGN(const Name name, ParseKey(*machine, key));
  return Allow(*machine, name, pids, "key");
}

Result<void*> ImportKey(std::string_view key) {
  NPU_ASSIGN(World * world, TheWorld());
  device::Machine& machine = world->machine();
  NPU_ASSIGN(const Name name, ParseKey(machine, key));
  NPU_ASSIGN(device::Export * entry, Admit(machine, name, 0, "key"));
  std::lock_guard lock(world->share_mutex);
  if (name.slot == machine.slot()) {
    Arena* arena = world->ArenaIfMade(name.card);
    if (arena == nullptr) return UnknownKey("key");
    Import& import = world->imports[{&arena->region(), name.offset}];
    ++import.count;
    import.bytes = name.bytes;
    return reinterpret_cast<void*>(arena->region().client + name.offset);
  }
  NPU_ASSIGN(Peer * peer, Hold(*world, name, *entry));
  Import& import = world->imports[{peer->region, name.offset}];
  import.bytes = name.bytes;
  import.export_index = name.index + 1;
  import.export_generation = name.generation;
  if (++import.count == 1) Populate(reinterpret_cast<void*>(peer->region->local + name.offset), name.bytes);
  return reinterpret_cast<void*>(peer->region->client + name.offset);
}

Status CloseKey(std::string_view key) {
  NPU_ASSIGN(World * world, TheWorld());
  device::Machine& machine = world->machine();
  NPU_ASSIGN(const Name name, ParseKey(machine, key));
  std::lock_guard lock(world->share_mutex);
  for (auto at = world->imports.begin(); at != world->imports.end(); ++at) {
    const Region* region = at->first.first;
    const bool own = region->kind == RegionKind::kArena;
    Peer* const peer = own ? nullptr : static_cast<Peer*>(region->owner);
    const uint32_t slot = own ? machine.slot() : peer->slot;
    if (at->first.second != name.offset || region->card != name.card || slot != name.slot) continue;
    if (!own) Unhold(*world, *peer, at->second.export_index - 1);
    if (--at->second.count == 0) world->imports.erase(at);
    return {};
  }
  device::Export& entry = EntryOf(machine, name.index);
  if (name.slot == machine.slot() && entry.generation.load(std::memory_order_relaxed) == name.generation &&
      entry.owner.load(std::memory_order_relaxed) == name.slot) {
    entry.flags.fetch_or(kRevoked, std::memory_order_seq_cst);
    return {};
  }
  return UnknownKey("key");
}

Result<uint64_t> ExportShareable(Physical& memory, bool any_process) {
  if (memory.imported()) {
    return Error(Code::kOutOfRange, "aclrtMemExportToShareableHandle: the handle was itself imported.")
        .Remedy("Let its owner export it.");
  }
  NPU_TRY(TheWorld().status());
  const auto block = memory.arena()->Holding(memory.offset());
  if (!block) return Error(Code::kInvalidHandle, "aclrtMemExportToShareableHandle: the handle's memory was freed.");
  NPU_ASSIGN(const Name name,
             Exported(*memory.arena(), memory.offset(), block->second, kPhysical | (any_process ? kAnyProcess : 0u)));
  World* world = WorldIfMade();
  std::lock_guard lock(world->share_mutex);
  world->exported[name.index] = &memory;
  return TokenOf(name);
}

Status AllowProcesses(uint64_t token, std::span<const int32_t> pids) {
  NPU_ASSIGN(device::Machine * machine, device::Join());
  NPU_ASSIGN(const Name name, ParseToken(*machine, token));
  return Allow(*machine, name, pids, "shareable handle");
}

Result<Ref<Physical>> ImportShareable(uint64_t token) {
  NPU_ASSIGN(World * world, TheWorld());
  device::Machine& machine = world->machine();
  NPU_ASSIGN(const Name name, ParseToken(machine, token));
  NPU_ASSIGN(device::Export * entry, Admit(machine, name, kPhysical, "shareable handle"));
  std::lock_guard lock(world->share_mutex);
  if (name.slot == machine.slot()) {
    auto own = world->exported.find(name.index);
    if (own == world->exported.end() || !own->second->TryAddRef()) return UnknownKey("shareable handle");
    return Ref<Physical>::Adopt(own->second);
  }
  NPU_ASSIGN(Peer * peer, Hold(*world, name, *entry));
  return Ref<Physical>::Adopt(
      new Physical(name.card, name.slot, name.offset, name.bytes, nullptr, peer, name.index + 1));
}

Arena::Fate RevokeExport(Arena& arena, const BlockInfo& block) {
  if (block.export_index == 0) return Arena::Fate::kReuse;
  device::Export& entry = EntryOf(arena.machine(), block.export_index - 1);
  if (entry.owner.load(std::memory_order_relaxed) != arena.machine().slot()) return Arena::Fate::kReuse;
  entry.flags.fetch_or(kRevoked, std::memory_order_seq_cst);
  for (auto& word : entry.importers) {
    if (word.load(std::memory_order_seq_cst) != 0) return Arena::Fate::kLinger;
  }
  entry.owner.store(0, std::memory_order_release);
  return Arena::Fate::kReuse;
}

void ForgetExported(const Physical* memory) {
  World* world = WorldIfMade();
  if (world == nullptr) return;
  std::lock_guard lock(world->share_mutex);
  std::erase_if(world->exported, [memory](const auto& entry) { return entry.second == memory; });
}

void DropImport(Peer& peer, uint32_t export_index) {
  World* world = WorldIfMade();
  if (world == nullptr || export_index == 0) return;
  std::lock_guard lock(world->share_mutex);
  Unhold(*world, peer, export_index - 1);
}

}  // namespace npu::hbm
