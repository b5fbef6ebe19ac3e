// What a dead process leaves in the state file, and how it is taken away. All but SlotLives need the file's lock.
#pragma once

#include <cstdint>

#include "device/machine/layout.h"

namespace npu::device {

class StateFile;

inline constexpr uint64_t kBusyWindowMs = 500;
uint64_t NowMs();  // monotonic, the same for all processes

bool SlotLives(const Slot& slot, uint32_t index, const StateFile& file);
void ClearSlot(Slot& slot);
// Frees the slot and what it owns: memory, cells, exports, its marks as an importer. Rings everybody.
void ReleaseSlot(StateLayout& layout, uint32_t index);
// Releases the slots of the dead; says how many live.
uint32_t RepairSlots(StateLayout& layout, const StateFile& file);
// Empties everything but the header.
void ForgetAll(StateLayout& layout);

}  // namespace npu::device
