// Device memory between processes of a machine.
//
//   owner:  NPU_ASSIGN(std::string key, ExportKey(p, bytes, /*any_process=*/true));       // 64 characters at most
//   peer:   NPU_ASSIGN(void* q, ImportKey(key));   …   NPU_TRY(CloseKey(key));
//
// Keys name machine, process, card, place, size and generation, and an entry in the machine's state file; a key whose
// memory was freed, whose owner has died or that was made up is refused. Memory that a peer has imported is not handed
// out again by its owner before the peer lets go or dies, though the owner has freed it. It counts once, for its owner.
// Unless any_process was said, only processes named by AllowProcesses (and the owner) may import.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/status/status.h"
#include "device/hbm/arena.h"
#include "device/hbm/vmm.h"

namespace npu::hbm {

inline constexpr size_t kKeyBytes = 65;  // with the terminating zero

// `client` is the start of an allocation. Exporting it again gives the same key.
Result<std::string> ExportKey(void* client, size_t bytes, bool any_process);
Status AllowProcesses(std::string_view key, std::span<const int32_t> pids);
// Importing twice gives the same address and wants two closes; the owner gets its own address.
Result<void*> ImportKey(std::string_view key);
// Undoes one import; where the key was not imported but made, revokes it.
Status CloseKey(std::string_view key);

// The same for physical handles; a token is a 64-bit number, never 0.
Result<uint64_t> ExportShareable(Physical& memory, bool any_process);
Status AllowProcesses(uint64_t token, std::span<const int32_t> pids);
Result<Ref<Physical>> ImportShareable(uint64_t token);

// For hbm.cc and vmm.cc: the block is being freed. Says whether an importer still holds it.
Arena::Fate RevokeExport(Arena& arena, const BlockInfo& block);
void ForgetExported(const Physical* memory);
void DropImport(Peer& peer, uint32_t export_index);

}  // namespace npu::hbm
