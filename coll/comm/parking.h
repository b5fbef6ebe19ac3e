// The collectives of this process that wait for peers, and the thread that wakes them.
//
// A waiting call parks its stream here. The process's doorbell (rung by peers when something changed) wakes all of
// them: they look again, and park again if it was not for them. Every 200 ms they are woken anyway to see whether their
// peers live and their time is up.
#pragma once

#include <mutex>
#include <utility>
#include <vector>

#include "base/task/task.h"

namespace npu::coll {

class Parking {
 public:
  static Parking& Get();
  // `key` names the caller; parking twice replaces the waker.
  void Park(const void* key, const Waker& waker);
  // False when it is not parked.
  bool Leave(const void* key);
  void WakeAll();
  // The same by the watcher's thread, for a caller that cannot run what it wakes.
  void WakeSoon();
  // The thread that answers the doorbell; started once.
  Status StartWatcher();

 private:
  Parking() = default;
  void Watch();

  std::mutex mutex_;  // guards parked_, started_
  std::vector<std::pair<const void*, Waker>> parked_;
  bool started_ = false;
};

}  // namespace npu::coll
