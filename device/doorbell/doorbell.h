// Waking another process of the machine.
//
//   uint32_t seen = BellCount(*machine);               // the waiter, before it looks at what it waits for
//   if (!Happened()) AwaitBell(*machine, seen, Deadline::In(100ms));
//
//   word.store(…, std::memory_order_release);          // the signaller: first the fact, then the bell
//   Ring(*machine, slot);
//
// Each process has one bell, a futex word in the state file; whoever waits looks again at everything after it rang.
// Nobody answers for a dead process, so a waiter sets a limit and asks Machine::IsAlive. Ringing costs a few ns when
// nobody sleeps.
#pragma once

#include <cstdint>

#include "base/time/deadline.h"
#include "device/machine/machine.h"

namespace npu::device {

// How often this process's bell has rung.
uint32_t BellCount(const Machine& machine);
// Sleeps until the bell has rung since `seen`; false when the deadline passed first. Any number of threads.
bool AwaitBell(const Machine& machine, uint32_t seen, Deadline deadline);
// Rings the bell of the process that `slot` names, this one included; nothing when it has left.
void Ring(const Machine& machine, uint32_t slot);
void RingAll(const Machine& machine);

}  // namespace npu::device
