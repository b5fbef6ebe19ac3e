#include "base/log/log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <mutex>

#include "base/os/fd.h"
#include "base/os/process.h"

namespace npu::log {
namespace {

constexpr const char* kNames[] = {"DEBUG", "INFO", "WARNING", "ERROR", "OFF"};

int LevelFromEnvironment() {
  const char* text = std::getenv("ASCEND_GLOBAL_LOG_LEVEL");
  if (text == nullptr || text[0] < '0' || text[0] > '4' || text[1] != 0) return kError;
  return text[0] - '0';
}

bool ToStdout() {
  const char* text = std::getenv("ASCEND_SLOG_PRINT_TO_STDOUT");
  return text != nullptr && text[0] == '1' && text[1] == 0;
}

std::string Directory() {
  if (const char* path = std::getenv("ASCEND_PROCESS_LOG_PATH"); path != nullptr && *path != 0) return path;
  if (const char* path = std::getenv("ASCEND_WORK_PATH"); path != nullptr && *path != 0)
    return std::string(path) + "/log";
  if (const char* path = std::getenv("HOME"); path != nullptr && *path != 0) return std::string(path) + "/ascend/log";
  return {};
}

bool MakeDirectories(const std::string& path) {
  for (size_t at = 1; at <= path.size(); ++at) {
    if (at == path.size() || path[at] == '/') mkdir(path.substr(0, at).c_str(), 0750);
  }
  struct stat s {};
  return stat(path.c_str(), &s) == 0 && S_ISDIR(s.st_mode);
}

// The file of this process, opened with its first line; a forked child opens its own.
class Sink {
 public:
  void Write(const std::string& line) {
    std::lock_guard lock(mutex_);
    if (!opened_ || fork_.Forked()) Open();
    const int fd = stdout_ ? STDOUT_FILENO : file_.get();
    if (fd >= 0) [[maybe_unused]]
      const ssize_t written = ::write(fd, line.data(), line.size());
  }
  void Close() {
    std::lock_guard lock(mutex_);
    opened_ = false;
  }
  static std::string Path() {
    const std::string directory = Directory();
    return directory.empty() ? std::string() : fmt::format("{}/debug/plog/plog-{}.log", directory, getpid());
  }

 private:
  void Open() {
    fork_.Reset();
    opened_ = true;
    stdout_ = ToStdout();
    file_.Reset();
    if (stdout_) return;
    const std::string path = Path();
    if (path.empty() || !MakeDirectories(path.substr(0, path.rfind('/')))) return;
    file_.Reset(open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0640));
  }

  std::mutex mutex_;
  os::ForkGuard fork_;
  bool opened_ = false, stdout_ = false;
  os::Fd file_;
};

Sink& TheSink() {
  static Sink* sink = new Sink;  // lives for ever: lines may come from exit handlers
  return *sink;
}

int64_t NowNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

std::atomic<int> threshold{LevelFromEnvironment()};

void SetThreshold(Level level) { threshold.store(level, std::memory_order_relaxed); }

void Reload() {
  threshold.store(LevelFromEnvironment(), std::memory_order_relaxed);
  TheSink().Close();
}

std::string Destination() { return ToStdout() ? "stdout" : Sink::Path(); }

void Write(Level level, std::string_view room, std::string_view text) {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  tm parts{};
  localtime_r(&now.tv_sec, &parts);
  char time[32];
  std::strftime(time, sizeof time, "%Y-%m-%d-%H:%M:%S", &parts);
  std::string line = fmt::format("[{}] {}({},anynpu):{}.{:03} [{}] ", kNames[std::clamp<int>(level, 0, 4)], room,
                                 getpid(), time, now.tv_nsec / 1'000'000, gettid());
  for (const char c : text) line += c == '\n' ? ' ' : c;
  line += '\n';
  TheSink().Write(line);
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
