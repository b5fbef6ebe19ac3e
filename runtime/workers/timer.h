// Wakes parked streams when their time has come. One thread, started with the first use.
#pragma once

#include "base/task/task.h"
#include "base/time/deadline.h"

namespace npu::rt {

// Wakes `waker` soon after `when`. Nothing is ever cancelled: a wake-up too many is harmless.
void WakeAt(Deadline::Clock::time_point when, Waker waker);

}  // namespace npu::rt
