#include "device/machine/repair.h"

#include <chrono>
#include <cstring>

#include "base/log/log.h"
#include "base/os/futex.h"
#include "base/os/process.h"
#include "device/figures/model.h"
#include "device/machine/state_file.h"

namespace npu::device {

uint64_t NowMs() {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now().time_since_epoch())
          .count());
}

bool SlotLives(const Slot& slot, uint32_t index, const StateFile& file) {
  os::ProcessId id;
  id.pid = slot.pid.load(std::memory_order_relaxed);
  id.pid_namespace = slot.pid_namespace.load(std::memory_order_relaxed);
  id.start_ticks = slot.start_ticks.load(std::memory_order_relaxed);
  switch (os::LivenessOf(id)) {
    case os::Liveness::kAlive:
      return true;
    case os::Liveness::kDead:
      return false;
    case os::Liveness::kUnknown:
      return file.SlotHeld(index);
  }
  return false;
}

void ClearSlot(Slot& slot) {
  slot.generation.store(0, std::memory_order_relaxed);
  for (CardUse& use : slot.cards) {
    use.used.store(0, std::memory_order_relaxed);
    use.pooled.store(0, std::memory_order_relaxed);
    use.pending.store(0, std::memory_order_relaxed);
    use.arena_inode.store(0, std::memory_order_relaxed);
    use.arena_fd.store(-1, std::memory_order_relaxed);
    use.open.store(0, std::memory_order_relaxed);
  }
  slot.pid.store(0, std::memory_order_relaxed);
  slot.pid_namespace.store(0, std::memory_order_relaxed);
  slot.start_ticks.store(0, std::memory_order_relaxed);
  std::memset(slot.command, 0, sizeof slot.command);
}

void ReleaseSlot(StateLayout& layout, uint32_t index) {
  Slot& slot = layout.slots[index];
  const uint32_t word = SlotWord(index, slot.generation.load(std::memory_order_relaxed));
  slot.state.store(kSlotFree, std::memory_order_release);
  for (uint32_t i = 0; i < CellHigh(layout); ++i) {
    Cell& cell = layout.cells[i];
    if (cell.owner.load(std::memory_order_relaxed) != word) continue;
    cell.generation.fetch_add(1, std::memory_order_relaxed);
    cell.owner.store(0, std::memory_order_release);
  }
  const uint64_t bit = uint64_t{1} << (index % 64);
  for (uint32_t i = 0; i < ExportHigh(layout); ++i) {
    Export& entry = layout.exports[i];
    if (entry.importers[index / 64].load(std::memory_order_relaxed) & bit) {
      entry.importers[index / 64].fetch_and(~bit, std::memory_order_relaxed);
    }
    if (entry.owner.load(std::memory_order_relaxed) != word) continue;
    entry.generation.fetch_add(1, std::memory_order_relaxed);
    entry.owner.store(0, std::memory_order_release);
  }
  KeepWorkOf(layout, index);
  ClearSlot(slot);
  ClearMeters(layout.meters[index]);
  for (uint32_t i = 0; i < SlotHigh(layout); ++i) {
    Slot& other = layout.slots[i];
    if (other.state.load(std::memory_order_relaxed) != kSlotLive) continue;
    other.bell.fetch_add(1, std::memory_order_seq_cst);
    os::FutexWake(other.bell);
  }
}

uint32_t RepairSlots(StateLayout& layout, const StateFile& file) {
  uint32_t live = 0;
  for (uint32_t i = 0; i < SlotHigh(layout); ++i) {
    Slot& slot = layout.slots[i];
    const uint32_t state = slot.state.load(std::memory_order_acquire);
    if (state == kSlotFree) continue;
    if (state == kSlotLive && SlotLives(slot, i, file)) {
      ++live;
      continue;
    }
    NPU_LOG(kInfo, "machine", "process {} has died; slot {} is free again", slot.pid.load(std::memory_order_relaxed),
            i);
    ReleaseSlot(layout, i);
  }
  return live;
}

void ForgetAll(StateLayout& layout) {
  for (uint32_t i = 0; i < SlotHigh(layout); ++i) {
    if (layout.slots[i].state.load(std::memory_order_relaxed) != kSlotFree) {
      layout.slots[i].state.store(kSlotFree, std::memory_order_relaxed);
      KeepWorkOf(layout, i);
      ClearSlot(layout.slots[i]);
      ClearMeters(layout.meters[i]);
    }
  }
  for (uint32_t i = 0; i < CellHigh(layout); ++i) {
    Cell& cell = layout.cells[i];
    if (cell.owner.load(std::memory_order_relaxed) != 0) cell.owner.store(0, std::memory_order_relaxed);
  }
  for (uint32_t i = 0; i < ExportHigh(layout); ++i) {
    Export& entry = layout.exports[i];
    if (entry.owner.load(std::memory_order_relaxed) != 0) entry.owner.store(0, std::memory_order_relaxed);
    for (auto& word : entry.importers) {
      if (word.load(std::memory_order_relaxed) != 0) word.store(0, std::memory_order_relaxed);
    }
  }
  ForgetFigures(layout);
}

}  // namespace npu::device
