// Waking streams that wait for another process: this process's doorbell (device/doorbell), listened to by one thread
// that starts with the first use.
//
//   BellWait wait_;                                             // in the task
//   const uint32_t seen = device::BellCount(machine);           // before looking
//   if (Happened()) return Outcome::Done();
//   wait_.Set(machine, seen, context.waker, now + 200ms);       // the limit is for asking whether the peer still lives
//   return Outcome::Parked();
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/task/task.h"
#include "base/time/deadline.h"
#include "device/machine/machine.h"
#include "runtime/workers/timer.h"

namespace npu::rt {

// One place among those who listen; given up when this goes.
class BellWait {
 public:
  BellWait() = default;
  ~BellWait();
  BellWait(const BellWait&) = delete;
  BellWait& operator=(const BellWait&) = delete;

  // Wakes `waker` once the bell has rung since `seen`, and at `latest` in any case. Setting it again replaces that.
  void Set(const device::Machine& machine, uint32_t seen, const Waker& waker, Deadline::Clock::time_point latest);

  // For tests: how many listen.
  static size_t Pending();

 private:
  Alarm latest_;
  bool set_ = false;
};

}  // namespace npu::rt
