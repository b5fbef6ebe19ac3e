// A moment on the monotonic clock after which waiting stops. "For ever" is said by name, and only where CANN has it.
#pragma once

#include <chrono>
#include <cstdint>
#include <limits>

namespace npu {

class Deadline {
 public:
  using Clock = std::chrono::steady_clock;
  static Deadline Never() { return Deadline(Clock::time_point::max()); }
  static Deadline In(std::chrono::nanoseconds d) { return Deadline(Clock::now() + d); }
  // The convention of timed ACL calls: -1 is for ever.
  static Deadline FromMs(int64_t ms) { return ms < 0 ? Never() : In(std::chrono::milliseconds(ms)); }

  bool never() const { return at_ == Clock::time_point::max(); }
  bool passed() const { return !never() && Clock::now() >= at_; }
  // Time left; zero when passed, the largest value for never.
  std::chrono::nanoseconds left() const {
    if (never()) return std::chrono::nanoseconds::max();
    const auto d = at_ - Clock::now();
    return d.count() > 0 ? std::chrono::duration_cast<std::chrono::nanoseconds>(d) : std::chrono::nanoseconds(0);
  }
  Clock::time_point at() const { return at_; }

 private:
  explicit Deadline(Clock::time_point at) : at_(at) {}
  Clock::time_point at_;
};

}  // namespace npu
