#include "base/log/log.h"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/log/files.h"

namespace npu::log {
namespace {

constexpr const char* kNames[] = {"DEBUG", "INFO", "WARNING", "ERROR", "OFF"};
constexpr size_t kLongestText = 8192, kLongestName = 64;

int LevelFromEnvironment() {
  const char* text = std::getenv("ASCEND_GLOBAL_LOG_LEVEL");
  if (text == nullptr || text[0] < '0' || text[0] > '4' || text[1] != 0) return kError;
  return text[0] - '0';
}

bool Says(const char* name, char value) {
  const char* text = std::getenv(name);
  return text != nullptr && text[0] == value && text[1] == 0;
}
bool EventsFromEnvironment() { return !Says("ASCEND_GLOBAL_EVENT_ENABLE", '0'); }
bool StdoutFromEnvironment() { return Says("ASCEND_SLOG_PRINT_TO_STDOUT", '1'); }

std::atomic<bool> to_stdout{StdoutFromEnvironment()};

// Seconds that local time is ahead of UTC, asked for when the library is loaded: later a fork may have left the C
// library's lock held.
int64_t OffsetSeconds() {
  const time_t now = time(nullptr);
  tm parts{};
  return localtime_r(&now, &parts) != nullptr ? parts.tm_gmtoff : 0;
}
const int64_t kOffset = OffsetSeconds();

// Lives for ever, since lines may come from exit handlers. A forked child leaves the parent's where it is.
Files& FilesOf(std::atomic<Files*>& slot, const char* kind) {
  Files* files = slot.load(std::memory_order_acquire);
  if (files != nullptr && !files->Forked()) return *files;
  auto* fresh = new Files(kind);
  if (slot.compare_exchange_strong(files, fresh, std::memory_order_acq_rel)) return *fresh;
  delete fresh;
  return *files;
}
std::atomic<Files*> debug_files{nullptr}, run_files{nullptr};
Files& DebugFiles() { return FilesOf(debug_files, "debug"); }
Files& RunFiles() { return FilesOf(run_files, "run"); }

int64_t NowNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Control characters would let a text pretend to be several lines.
void AppendClean(std::string* line, std::string_view text, size_t longest) {
  const bool cut = text.size() > longest;
  for (const char c : text.substr(0, longest)) *line += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? ' ' : c;
  if (cut) *line += " [cut]";
}

std::string Line(const char* level, std::string_view module, std::string_view text, Where where) {
  std::string line = fmt::format("[{}] ", level);
  AppendClean(&line, module, kLongestName);
  line += fmt::format("({},", getpid());
  AppendClean(&line, program_invocation_short_name != nullptr ? program_invocation_short_name : "", kLongestName);
  const char* slash = std::strrchr(where.file, '/');
  line += fmt::format("):{} [{}:{}]{} ", TimeText(), slash != nullptr ? slash + 1 : where.file, where.line,
                      static_cast<long>(syscall(SYS_gettid)));
  AppendClean(&line, text, kLongestText);
  line += '\n';
  return line;
}

void Print(const std::string& line) {
  [[maybe_unused]] const ssize_t written = ::write(STDOUT_FILENO, line.data(), line.size());
}

}  // namespace

std::atomic<int> threshold{LevelFromEnvironment()};
std::atomic<bool> events{EventsFromEnvironment()};

void SetThreshold(Level level) { threshold.store(level, std::memory_order_relaxed); }

void Reload() {
  threshold.store(LevelFromEnvironment(), std::memory_order_relaxed);
  events.store(EventsFromEnvironment(), std::memory_order_relaxed);
  to_stdout.store(StdoutFromEnvironment(), std::memory_order_relaxed);
  DebugFiles().Close();
  RunFiles().Close();
}

std::string Destination() { return to_stdout.load(std::memory_order_relaxed) ? "stdout" : DebugFiles().Path(); }

std::string TimeText() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  const int64_t local = now.tv_sec + kOffset;
  using namespace std::chrono;
  const sys_days day = floor<days>(sys_seconds(seconds(local)));
  const year_month_day date(day);
  const int64_t second = local - duration_cast<seconds>(day.time_since_epoch()).count();
  return fmt::format("{:04}-{:02}-{:02}-{:02}:{:02}:{:02}.{:03}.{:03}", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()), second / 3600,
                     second / 60 % 60, second % 60, now.tv_nsec / 1'000'000, now.tv_nsec / 1000 % 1000);
}

void Write(Level level, std::string_view module, std::string_view text, Where where) noexcept {
  try {
    const std::string line = Line(kNames[std::clamp<int>(level, 0, 4)], module, text, where);
    if (to_stdout.load(std::memory_order_relaxed)) return Print(line);
    DebugFiles().Write(line, /*make_default=*/true);
  } catch (...) {
    // No memory: the line is lost.
  }
}

void WriteEvent(std::string_view module, std::string_view text, Where where) noexcept {
  if (!EventsEnabled()) return;
  try {
    const std::string line = Line("EVENT", module, text, where);
    if (to_stdout.load(std::memory_order_relaxed)) return Print(line);
    // Every process has events; they leave no file in a home folder where nobody asked for a log.
    RunFiles().Write(line, /*make_default=*/module == "PROFILING");
  } catch (...) {
  }
}

bool Limiter::Admit(uint64_t* dropped) {
  const int64_t now = NowNs();
  int64_t next = next_ns_.load(std::memory_order_relaxed);
  if (now < next || !next_ns_.compare_exchange_strong(next, now + period_ns_, std::memory_order_relaxed)) {
    dropped_.fetch_add(1, std::memory_order_relaxed);
    return false;
  }
  *dropped = dropped_.exchange(0, std::memory_order_relaxed);
  return true;
}

}  // namespace npu::log
