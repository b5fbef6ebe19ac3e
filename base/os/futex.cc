#include "base/os/futex.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>

namespace npu::os {

static_assert(sizeof(std::atomic<uint32_t>) == 4 && std::atomic<uint32_t>::is_always_lock_free);

bool FutexWait(std::atomic<uint32_t>& word, uint32_t seen, Deadline deadline) {
  while (word.load(std::memory_order_acquire) == seen) {
    timespec limit{};
    timespec* limit_ptr = nullptr;
    if (!deadline.never()) {
      const auto left = deadline.left().count();
      if (left <= 0) return false;
      limit.tv_sec = static_cast<time_t>(left / 1'000'000'000);
      limit.tv_nsec = static_cast<long>(left % 1'000'000'000);
      limit_ptr = &limit;
    }
    const long r = syscall(SYS_futex, &word, FUTEX_WAIT, seen, limit_ptr, nullptr, 0);
    if (r == 0 || errno == EAGAIN) return true;
    if (errno != EINTR && errno != ETIMEDOUT) return true;  // a spurious wake-up is allowed, an endless wait is not
  }
  return true;
}

void FutexWake(std::atomic<uint32_t>& word, int waiters) {
  syscall(SYS_futex, &word, FUTEX_WAKE, waiters, nullptr, nullptr, 0);
}

}  // namespace npu::os
