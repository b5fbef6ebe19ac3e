// Waking streams that wait for another process: this process's doorbell (device/doorbell), listened to by one thread that
// starts with the first use.
//
//   const uint32_t seen = device::BellCount(machine);           // before looking
//   if (Happened()) return Outcome::Done();
//   WakeOnBell(machine, seen, context.waker, now + 200ms);      // the limit is for asking whether the peer still lives
//   return Outcome::Parked();
#pragma once

#include <cstdint>

#include "base/task/task.h"
#include "base/time/deadline.h"
#include "device/machine/machine.h"

namespace npu::rt {

// Wakes `waker` once the bell has rung since `seen`, and at `latest` in any case.
void WakeOnBell(const device::Machine& machine, uint32_t seen, Waker waker, Deadline::Clock::time_point latest);

}  // namespace npu::rt
