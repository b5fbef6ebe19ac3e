// What faults do to the work of a card. Streams ask around each piece of work once AnyFault says that there is one.
#pragma once

#include <functional>

#include "base/status/status.h"
#include "base/task/task.h"
#include "device/figures/meter.h"

namespace npu::device {

inline bool AnyFault(Meter& meter) {
  const StateLayout* layout = meter.layout();
  return layout != nullptr && layout->figures.faults.armed.load(std::memory_order_relaxed) != 0;
}

// Waits as long as the card hangs; an error stands for work that a fault keeps from running. `give_up` ends the wait.
Status BeforeWork(Meter& meter, const TaskWork& work, const std::function<Status()>& give_up);
// Makes slow what is slow: sleeps for the time that the work would have taken longer. `began` is from Meter::Begin.
// Gives the time it was planned to take, made longer likewise; while the machine's clock is held that is all it does.
uint32_t AfterWork(Meter& meter, const TaskWork& work, uint64_t began, uint32_t planned_ns,
                   const std::function<Status()>& give_up);

// For opening a card and taking its memory: lost cards and drivers that do not answer. `card` is the device's number in
// the machine.
Status CheckDriver(StateLayout& layout, int card, const char* function);
// Memory that a leak has taken from a card, and the largest block that its fragmentation leaves of `free_bytes`.
uint64_t LeakedBytes(const StateLayout& layout, int card);
uint64_t LargestBlock(const StateLayout& layout, int card, uint64_t free_bytes);

// How long a kernel may run, in µs; 0: for ever. Set by the runtime, since clients set it there.
extern std::atomic<uint64_t (*)()> execute_limit_us;

}  // namespace npu::device
