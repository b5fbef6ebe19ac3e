// The log of CANN's applications: one line, one event, the room or library as module.
//
//   NPU_LOG(kInfo, "hbm", "card {}: {} MiB of {} in use", card, used >> 20, total >> 20);
//   NPU_LOG_EVERY(kWarning, 10s, "hbm", "host memory is short: …");      // counted in between
//
//   [ERROR] ASCENDCL(4711,python):2026-11-30-17:05:11.123.456 [boundary.cc:31]4712 aclrtSetDevice: …
//
// The vendor's variables are honoured: ASCEND_GLOBAL_LOG_LEVEL 0 debug, 1 info, 2 warning, 3 error (default), 4 off;
// ASCEND_GLOBAL_EVENT_ENABLE 0 leaves [EVENT] lines out; ASCEND_SLOG_PRINT_TO_STDOUT 1 sends lines to stdout.
// Otherwise they go to debug/plog/plog-<pid>_<time>.log (events: run/plog) below ASCEND_PROCESS_LOG_PATH,
// ASCEND_WORK_PATH/log or $HOME/ascend/log, which is made with the first line and not before. A file of 20 MiB is
// followed by another, and of a process the last ASCEND_HOST_LOG_FILE_NUM (10) stay. A disabled level costs one relaxed
// load and formats nothing. Any thread; a line is written with one system call; nothing is thrown, no lock is held
// across a fork. What cannot be written is lost, and a folder that was asked for and cannot be used is told once on
// stderr.
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
extern std::atomic<bool> events;
inline bool Enabled(Level level) { return level >= threshold.load(std::memory_order_relaxed) && level < kOff; }
inline bool EventsEnabled() { return events.load(std::memory_order_relaxed); }
void SetThreshold(Level level);

// Where in the source a line comes from; only the last part of `file` is written.
struct Where {
  const char* file;
  int line;
};

void Write(Level level, std::string_view module, std::string_view text, Where where) noexcept;
// A line of level EVENT: it does not depend on the level and goes to the folder of run logs.
void WriteEvent(std::string_view module, std::string_view text, Where where) noexcept;
// The same for a text still to be made, whose making may fail.
template <class F>
void WriteMade(Level level, std::string_view module, Where where, F&& text) noexcept {
  try {
    Write(level, module, text(), where);
  } catch (...) {
    // No memory for the text: the line is lost.
  }
}

// Where lines go, or would go: the file being written, else the folder, or "stdout".
std::string Destination();
// Reads the environment again and opens the files anew with the next line; for tests and after a change of the
// environment.
void Reload();
// "2026-11-30-17:05:11.123.456", as log lines and error texts have it. Needs no lock of the C library.
std::string TimeText();

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

#define NPU_HERE \
  ::npu::log::Where { __FILE__, __LINE__ }

#define NPU_LOG(level, module, ...)                                                                           \
  do {                                                                                                        \
    if (::npu::log::Enabled(::npu::log::level)) {                                                             \
      ::npu::log::WriteMade(::npu::log::level, module, NPU_HERE, [&] { return ::fmt::format(__VA_ARGS__); }); \
    }                                                                                                         \
  } while (false)

#define NPU_LOG_EVERY(level, period, module, ...)                                                   \
  do {                                                                                              \
    if (::npu::log::Enabled(::npu::log::level)) {                                                   \
      static ::npu::log::Limiter npu_limiter_(period);                                              \
      if (uint64_t npu_dropped_ = 0; npu_limiter_.Admit(&npu_dropped_)) {                           \
        ::npu::log::WriteMade(::npu::log::level, module, NPU_HERE, [&] {                            \
          std::string npu_text_ = ::fmt::format(__VA_ARGS__);                                       \
          if (npu_dropped_ > 0) npu_text_ += ::fmt::format(" (and {} more like it)", npu_dropped_); \
          return npu_text_;                                                                         \
        });                                                                                         \
      }                                                                                             \
    }                                                                                               \
  } while (false)
