#include "runtime/workers/timer.h"

#include <condition_variable>
#include <map>
#include <mutex>
#include <utility>

#include "base/os/thread.h"

namespace npu::rt {
namespace {

struct Timer {
  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::pair<Deadline::Clock::time_point, uint64_t>, Waker> entries;  // by time and number
  uint64_t next_id = 1;
  bool started = false;

  void Run() {
    std::unique_lock lock(mutex);
    while (true) {
      if (entries.empty()) {
        changed.wait(lock);
        continue;
      }
      const auto first = entries.begin();
      const auto when = first->first.first;
      if (Deadline::Clock::now() < when) {
        changed.wait_until(lock, when);
        continue;
      }
      const Waker waker = std::move(first->second);
      entries.erase(first);
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

void Alarm::Set(Deadline::Clock::time_point when, const Waker& waker) {
  Cancel();
  Timer& t = timer();
  bool first = false;
  {
    const std::lock_guard lock(t.mutex);
    // A refusal of the system is noticed by the next wait, which tries again.
    if (!t.started) t.started = os::Detach("npu-timer", [&t] { t.Run(); }).ok();
    first = t.entries.empty() || when < t.entries.begin()->first.first;
    when_ = when;
    id_ = t.next_id++;
    t.entries.emplace(std::make_pair(when_, id_), waker);
  }
  if (first) t.changed.notify_one();
}

void Alarm::Cancel() {
  if (id_ == 0) return;
  Timer& t = timer();
  Waker gone;  // let go of without the lock
  const std::lock_guard lock(t.mutex);
  const auto found = t.entries.find({when_, std::exchange(id_, 0)});
  if (found == t.entries.end()) return;  // it has rung
  gone = std::move(found->second);
  t.entries.erase(found);
}

size_t Alarm::Pending() {
  Timer& t = timer();
  const std::lock_guard lock(t.mutex);
  return t.entries.size();
}

}  // namespace npu::rt
