#include "base/os/fork.h"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <mutex>

namespace npu::os {
namespace {

constexpr int kMost = 1024;
std::atomic<int> descriptors[kMost];  // descriptor + 1, so that zero means none
std::atomic<int> high{0};             // entries from here on were never used

void InChild() {
  for (int i = 0; i < high.load(std::memory_order_relaxed); ++i) {
    if (const int fd = descriptors[i].exchange(0, std::memory_order_relaxed) - 1; fd >= 0) close(fd);
  }
}

}  // namespace

void CloseInChildren(int fd) {
  static std::once_flag once;
  std::call_once(once, [] { pthread_atfork(nullptr, nullptr, InChild); });
  for (int i = 0; i < kMost; ++i) {
    int none = 0;
    if (!descriptors[i].compare_exchange_strong(none, fd + 1, std::memory_order_relaxed)) continue;
    int seen = high.load(std::memory_order_relaxed);
    while (seen <= i && !high.compare_exchange_weak(seen, i + 1, std::memory_order_relaxed)) {
    }
    return;
  }
}

void ForgetInChildren(int fd) {
  for (int i = 0; i < high.load(std::memory_order_relaxed); ++i) {
    int held = fd + 1;
    if (descriptors[i].compare_exchange_strong(held, 0, std::memory_order_relaxed)) return;
  }
}

}  // namespace npu::os
