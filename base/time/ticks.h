// Nanoseconds that only count up, for measuring short things: the cheapest clock of the processor, a few ns a reading.
// Its zero means nothing. Where the processor has no steady counter the system's monotonic clock serves.
#pragma once

#include <cstdint>

namespace npu {

uint64_t TicksNs();

}  // namespace npu
