#include "device/doorbell/doorbell.h"

#include "base/os/futex.h"

namespace npu::device {
namespace {

void RingSlot(Slot& slot) {
  // Sequentially consistent on both sides: either the ringer sees the waiter's count, or the waiter sees the new bell.
  slot.bell.fetch_add(1, std::memory_order_seq_cst);
  if (slot.bell_waiters.load(std::memory_order_seq_cst) != 0) os::FutexWake(slot.bell);
}

Slot& Own(const Machine& machine) { return machine.shared().slots[SlotIndex(machine.slot())]; }

}  // namespace

uint32_t BellCount(const Machine& machine) { return Own(machine).bell.load(std::memory_order_acquire); }

bool AwaitBell(const Machine& machine, uint32_t seen, Deadline deadline) {
  Slot& slot = Own(machine);
  slot.bell_waiters.fetch_add(1, std::memory_order_seq_cst);
  const bool rang = os::FutexWait(slot.bell, seen, deadline);
  slot.bell_waiters.fetch_sub(1, std::memory_order_relaxed);
  return rang;
}

void Ring(const Machine& machine, uint32_t slot) {
  if (Slot* entry = machine.SlotOf(slot); entry != nullptr) RingSlot(*entry);
}

void RingAll(const Machine& machine) {
  for (uint32_t i = 0; i < SlotHigh(machine.shared()); ++i) {
    Slot& slot = machine.shared().slots[i];
    if (slot.state.load(std::memory_order_relaxed) == kSlotLive) RingSlot(slot);
  }
}

}  // namespace npu::device
