// One line, one event, the room as category.
//
//   NPU_LOG(kInfo, "hbm", "card {}: {} MiB of {} in use", card, used >> 20, total >> 20);
//   NPU_LOG_EVERY(kWarning, 10s, "hbm", "host memory is short: …");      // counted in between
//
// The vendor's variables are honoured: ASCEND_GLOBAL_LOG_LEVEL 0 debug, 1 info, 2 warning, 3 error (default), 4 off;
// ASCEND_SLOG_PRINT_TO_STDOUT 1 sends lines to stdout; otherwise they go to a file of the process below
// ASCEND_PROCESS_LOG_PATH, ASCEND_WORK_PATH/log or $HOME/ascend/log, which is made with the first line and not before.
// A disabled level costs one relaxed load and formats nothing. Any thread; a line is written with one system call.
#pragma once

#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace npu::log {

enum Level : int { kDebug = 0, kInfo = 1, kWarning = 2, kError = 3, kOff = 4 };

extern std::atomic<int> threshold;
inline bool Enabled(Level level) { return level >= threshold.load(std::memory_order_relaxed); }
void SetThreshold(Level level);

void Write(Level level, std::string_view room, std::string_view text);
// Where lines go, or would go: a path or "stdout".
std::string Destination();
// Reads the environment again and opens the sink anew with the next line; for tests and after a change of the
// environment.
void Reload();

// Lets one event through in each period and counts the others.
class Limiter {
 public:
  explicit constexpr Limiter(std::chrono::nanoseconds period) : period_ns_(period.count()) {}
  // True when the caller may write; *dropped says how many were not written before.
  bool Admit(uint64_t* dropped);

 private:
  const int64_t period_ns_;
  std::atomic<int64_t> next_ns_{0};
  std::atomic<uint64_t> dropped_{0};
};

}  // namespace npu::log

#define NPU_LOG(level, room, ...)                                             \
  do {                                                                        \
    if (::npu::log::Enabled(::npu::log::level)) {                             \
      ::npu::log::Write(::npu::log::level, room, ::fmt::format(__VA_ARGS__)); \
    }                                                                         \
  } while (false)

#define NPU_LOG_EVERY(level, period, room, ...)                                                   \
  do {                                                                                            \
    if (::npu::log::Enabled(::npu::log::level)) {                                                 \
      static ::npu::log::Limiter npu_limiter_(period);                                            \
      if (uint64_t npu_dropped_ = 0; npu_limiter_.Admit(&npu_dropped_)) {                         \
        std::string npu_text_ = ::fmt::format(__VA_ARGS__);                                       \
        if (npu_dropped_ > 0) npu_text_ += ::fmt::format(" (and {} more like it)", npu_dropped_); \
        ::npu::log::Write(::npu::log::level, room, npu_text_);                                    \
      }                                                                                           \
    }                                                                                             \
  } while (false)
