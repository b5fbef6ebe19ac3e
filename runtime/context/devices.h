// The devices this process sees: logical numbers for clients, physical ones for everything between processes.
#pragma once

#include "base/status/status.h"
#include "device/machine/machine.h"
#include "runtime/context/visible.h"

namespace npu::rt {

// The machine, joined at the first device call. The error names what is wrong with it.
Result<device::Machine*> TheMachine();

// ASCEND_RT_VISIBLE_DEVICES as it was at the first device call of this process.
Result<const Visible*> TheVisible();

Result<int> DeviceCount();  // kNoDevice when none is left
// The physical card behind a logical number.
Result<int> PhysicalOf(int logical, const char* function);
// -1 when this process does not see the card.
int LogicalOf(int physical);

// Counts again how many cards are in use by how many processes, and shares the cores accordingly; at most a few times a
// second, so it may be called often.
void ShareCores();

}  // namespace npu::rt
