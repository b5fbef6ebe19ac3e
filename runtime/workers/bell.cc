#include "runtime/workers/bell.h"

#include <pthread.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "device/doorbell/doorbell.h"
#include "runtime/workers/process.h"
#include "runtime/workers/timer.h"

namespace npu::rt {
namespace {

// Bounds how long the listener sleeps when nobody rings.
constexpr auto kListen = std::chrono::seconds(5);

struct Listener {
  struct Entry {
    uint32_t seen;
    Waker waker;
  };
  std::mutex mutex;
  std::condition_variable any;
  std::vector<Entry> entries;
  const device::Machine* machine = nullptr;
  bool started = false;

  void Run() {
    pthread_setname_np(pthread_self(), "npu-bell");
    std::vector<Waker> wake;
    while (true) {
      uint32_t count = 0;
      {
        std::unique_lock lock(mutex);
        any.wait(lock, [this] { return !entries.empty(); });
        count = device::BellCount(*machine);
        const auto rung = std::partition(entries.begin(), entries.end(), [&](const Entry& e) { return e.seen == count; });
        for (auto e = rung; e != entries.end(); ++e) wake.push_back(std::move(e->waker));
        entries.erase(rung, entries.end());
      }
      for (const Waker& waker : wake) waker.Wake();
      if (wake.empty()) device::AwaitBell(*machine, count, Deadline::In(kListen));
      wake.clear();
    }
  }
};

Listener& listener() {
  static auto* l = new Listener;
  return *l;
}

}  // namespace

void WakeOnBell(const device::Machine& machine, uint32_t seen, Waker waker, Deadline::Clock::time_point latest) {
  WakeAt(latest, waker);
  Listener& l = listener();
  {
    const std::lock_guard lock(l.mutex);
    if (!l.started) {
      l.machine = &machine;
      const BlockSignals blocked;
      // Refused by the system: the limit given to the timer still wakes the stream.
      try {
        std::thread([&l] { l.Run(); }).detach();
        l.started = true;
      } catch (const std::system_error&) {
        return;
      }
    }
    l.entries.push_back({seen, std::move(waker)});
  }
  l.any.notify_one();
}

}  // namespace npu::rt
