// Wakes parked streams when their time has come. One thread, started with the first use.
//
//   Alarm alarm_;                                  // in the task
//   alarm_.Set(deadline.at(), context.waker);      // before it parks
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/task/task.h"
#include "base/time/deadline.h"

namespace npu::rt {

// One wake-up. It is taken back when the alarm goes or is set anew, so a wait that ends early leaves nothing behind.
class Alarm {
 public:
  Alarm() = default;
  ~Alarm() { Cancel(); }
  Alarm(const Alarm&) = delete;
  Alarm& operator=(const Alarm&) = delete;

  void Set(Deadline::Clock::time_point when, const Waker& waker);
  void Cancel();

  // For tests: how many are set in this process.
  static size_t Pending();

 private:
  Deadline::Clock::time_point when_;
  uint64_t id_ = 0;  // 0: not set
};

}  // namespace npu::rt
