#include "runtime/workers/timer.h"

#include <pthread.h>

#include <condition_variable>
#include <mutex>
#include <queue>
#include <thread>
#include <vector>

#include "runtime/workers/pool.h"
#include "runtime/workers/process.h"

namespace npu::rt {
namespace {

struct Entry {
  Deadline::Clock::time_point when;
  Waker waker;
  bool operator>(const Entry& other) const { return when > other.when; }
};

struct Timer {
  std::mutex mutex;
  std::condition_variable changed;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> entries;
  bool started = false;

  void Run() {
    pthread_setname_np(pthread_self(), "npu-timer");
    std::unique_lock lock(mutex);
    while (true) {
      if (entries.empty()) {
        changed.wait(lock);
        continue;
      }
      const auto when = entries.top().when;
      if (Deadline::Clock::now() < when) {
        changed.wait_until(lock, when);
        continue;
      }
      const Waker waker = entries.top().waker;
      entries.pop();
      lock.unlock();
      waker.Wake();
      lock.lock();
    }
  }
};

Timer& timer() {
  static auto* t = new Timer;
  return *t;
}

}  // namespace

void WakeAt(Deadline::Clock::time_point when, Waker waker) {
  Timer& t = timer();
  bool first = false;
  {
    const std::lock_guard lock(t.mutex);
    if (!t.started) {
      const BlockSignals blocked;
      // A refusal of the system is noticed by the next wait, which tries again.
      try {
        std::thread([&t] { t.Run(); }).detach();
        t.started = true;
      } catch (const std::system_error&) {
      }
    }
    first = t.entries.empty() || when < t.entries.top().when;
    t.entries.push({when, std::move(waker)});
  }
  if (first) t.changed.notify_one();
}

}  // namespace npu::rt
