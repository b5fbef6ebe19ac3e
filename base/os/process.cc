#include "base/os/process.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>

namespace npu::os {
namespace {

// Reads a small file of /proc whole; empty on failure. `buffer` is terminated.
size_t ReadSmall(const char* path, char* buffer, size_t capacity) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  const ssize_t n = read(fd, buffer, capacity - 1);
  close(fd);
  const size_t size = n > 0 ? static_cast<size_t>(n) : 0;
  buffer[size] = 0;
  return size;
}

struct Stat {
  char state = 0;  // 0: no such process
  uint64_t start_ticks = 0;
};

Stat ReadStat(const char* path) {
  char text[1024];
  if (ReadSmall(path, text, sizeof text) == 0) return {};
  // The command in parentheses may hold anything, so fields are counted from the last one.
  const char* at = std::strrchr(text, ')');
  if (at == nullptr || at[1] == 0) return {};
  Stat stat;
  stat.state = at[2];
  at += 2;
  for (int field = 3; field < 22; ++field) {
    at = std::strchr(at, ' ');
    if (at == nullptr) return {};
    ++at;
  }
  stat.start_ticks = std::strtoull(at, nullptr, 10);
  return stat;
}

// The first thread's file says the same as the process's own, and emulators of another processor do not replace it by
// one with times of their own.
Stat StatOf(int32_t pid) {
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%d/task/%d/stat", pid, pid);
  return ReadStat(path);
}

// /proc may be missing, or show another pid namespace than ours (unshare --pid without --mount-proc).
bool ProcShowsOurNamespace() {
  char text[24];
  const ssize_t n = readlink("/proc/self", text, sizeof text - 1);
  if (n <= 0) return false;
  text[n] = 0;
  return std::strtol(text, nullptr, 10) == getpid();
}

uint64_t PidNamespace() {
  struct stat s {};
  return stat("/proc/self/ns/pid", &s) == 0 ? static_cast<uint64_t>(s.st_ino) : 0;
}

}  // namespace

ProcessId Self() {
  ProcessId id;
  id.pid = getpid();
  id.pid_namespace = PidNamespace();
  char path[64];
  std::snprintf(path, sizeof path, "/proc/self/task/%d/stat", id.pid);
  id.start_ticks = ReadStat(path).start_ticks;
  if (id.start_ticks == 0) id.start_ticks = ReadStat("/proc/self/stat").start_ticks;  // /proc of another pid namespace
  return id;
}

Liveness LivenessOf(const ProcessId& id) {
  if (id.pid <= 0) return Liveness::kDead;
  if (id.pid_namespace != PidNamespace()) return Liveness::kUnknown;
  if (kill(id.pid, 0) != 0 && errno == ESRCH) return Liveness::kDead;
  if (!ProcShowsOurNamespace()) return Liveness::kUnknown;
  const Stat stat = StatOf(id.pid);
  if (stat.state == 0 || stat.state == 'Z' || stat.state == 'X') return Liveness::kDead;
  return stat.start_ticks == id.start_ticks ? Liveness::kAlive : Liveness::kDead;
}

std::string CommandOf(int32_t pid) {
  char path[48];
  std::snprintf(path, sizeof path, "/proc/%d/comm", pid);
  char text[64];
  size_t n = ReadSmall(path, text, sizeof text);
  while (n > 0 && text[n - 1] == '\n') --n;
  return std::string(text, n);
}

uint64_t BootId() {
  char text[64];
  const size_t n = ReadSmall("/proc/sys/kernel/random/boot_id", text, sizeof text);
  uint64_t hash = 14695981039346656037ull;  // FNV-1a
  for (size_t i = 0; i < n; ++i) hash = (hash ^ static_cast<unsigned char>(text[i])) * 1099511628211ull;
  return hash;
}

namespace {
std::atomic<uint32_t> forks{0};
}

ForkGuard::ForkGuard() : page_(nullptr) {
  static std::once_flag once;
  std::call_once(once, [] { pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1, std::memory_order_relaxed); }); });
  forks_ = forks.load(std::memory_order_relaxed);
  const size_t size = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  void* page = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return;
  if (madvise(page, size, MADV_WIPEONFORK) != 0) {
    munmap(page, size);
    return;
  }
  page_ = page;
  *static_cast<volatile uint32_t*>(page_) = 1;
}

bool ForkGuard::Forked() const {
  if (forks.load(std::memory_order_relaxed) != forks_) return true;
  return page_ != nullptr && *static_cast<volatile uint32_t*>(page_) == 0;
}

void ForkGuard::Reset() {
  forks_ = forks.load(std::memory_order_relaxed);
  if (page_ != nullptr) *static_cast<volatile uint32_t*>(page_) = 1;
}

}  // namespace npu::os
