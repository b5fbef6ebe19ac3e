#include "device/machine/cells.h"

#include "device/doorbell/doorbell.h"

namespace npu::device {

Result<CellRef> MakeCell(const Machine& machine) {
  StateLayout& shared = machine.shared();
  for (uint32_t index = 0; index < kMaxCells; ++index) {
    Cell& cell = shared.cells[index];
    uint32_t none = 0;
    if (!cell.owner.compare_exchange_strong(none, machine.slot(), std::memory_order_acquire, std::memory_order_relaxed))
      continue;
    for (auto& word : cell.words) word.store(0, std::memory_order_relaxed);
    RaiseHigh(shared.header.cell_high, index);
    // The new generation makes it findable; release so that a finder sees the zeros.
    uint32_t generation = cell.generation.load(std::memory_order_relaxed) + 1;
    if (generation == 0) generation = 1;
    cell.generation.store(generation, std::memory_order_release);
    return CellRef{static_cast<uint64_t>(generation) << 32 | (index + 1), &cell};
  }
  return Error(Code::kNoNotifyResource, "All {} signals between processes of machine {} are in use.", kMaxCells,
               machine.name())
      .Remedy("Destroy events and notifies that are no longer shared.");
}

Cell* FindCell(const Machine& machine, uint64_t id) {
  const uint32_t index = static_cast<uint32_t>(id) - 1;
  if (index >= kMaxCells) return nullptr;
  Cell& cell = machine.shared().cells[index];
  if (cell.generation.load(std::memory_order_acquire) != id >> 32) return nullptr;
  return cell.owner.load(std::memory_order_relaxed) != 0 ? &cell : nullptr;
}

uint32_t CellOwner(const Machine& machine, uint64_t id) {
  const Cell* cell = FindCell(machine, id);
  return cell == nullptr ? 0 : cell->owner.load(std::memory_order_relaxed);
}

void FreeCell(const Machine& machine, uint64_t id) {
  Cell* cell = FindCell(machine, id);
  if (cell == nullptr || cell->owner.load(std::memory_order_relaxed) != machine.slot()) return;
  cell->generation.fetch_add(1, std::memory_order_relaxed);
  cell->owner.store(0, std::memory_order_release);
  RingAll(machine);
}

}  // namespace npu::device
