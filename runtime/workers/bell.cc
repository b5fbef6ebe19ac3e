#include "runtime/workers/bell.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <vector>

#include "base/os/thread.h"
#include "device/doorbell/doorbell.h"

namespace npu::rt {
namespace {

// Bounds how long the listener sleeps when nobody rings.
constexpr auto kListen = std::chrono::seconds(5);

struct Listener {
  struct Entry {
    const BellWait* who;
    uint32_t seen;
    Waker waker;
  };
  std::mutex mutex;
  std::condition_variable any;
  std::vector<Entry> entries;
  const device::Machine* machine = nullptr;
  bool started = false;

  void Run() {
    std::vector<Waker> wake;
    while (true) {
      uint32_t count = 0;
      {
        std::unique_lock lock(mutex);
        any.wait(lock, [this] { return !entries.empty(); });
        count = device::BellCount(*machine);
        const auto rung =
            std::partition(entries.begin(), entries.end(), [&](const Entry& e) { return e.seen == count; });
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

void BellWait::Set(const device::Machine& machine, uint32_t seen, const Waker& waker,
                   Deadline::Clock::time_point latest) {
  latest_.Set(latest, waker);
  Listener& l = listener();
  {
    const std::lock_guard lock(l.mutex);
    if (!l.started) {
      l.machine = &machine;
      // Refused by the system: the limit given to the timer still wakes the stream.
      if (!os::Detach("npu-bell", [&l] { l.Run(); }).ok()) return;
      l.started = true;
    }
    set_ = true;
    const auto mine = std::find_if(l.entries.begin(), l.entries.end(), [this](const auto& e) { return e.who == this; });
    if (mine != l.entries.end()) {
      *mine = {this, seen, waker};
    } else {
      l.entries.push_back({this, seen, waker});
    }
  }
  l.any.notify_one();
}

BellWait::~BellWait() {
  if (!set_) return;
  Listener& l = listener();
  const std::lock_guard lock(l.mutex);
  std::erase_if(l.entries, [this](const auto& e) { return e.who == this; });
}

size_t BellWait::Pending() {
  Listener& l = listener();
  const std::lock_guard lock(l.mutex);
  return l.entries.size();
}

}  // namespace npu::rt
