// Wakers of parked tasks, by the task that left them: one that goes on for another reason (its limit, an abort) takes
// its own back. The owner's lock guards it.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "base/task/task.h"

namespace npu::rt {

class WakerList {
 public:
  void Add(const void* who, const Waker& waker) {
    const auto mine = Find(who);
    if (mine != entries_.end()) {
      mine->second = waker;
    } else {
      entries_.emplace_back(who, waker);
    }
  }
  void Remove(const void* who) {
    if (const auto mine = Find(who); mine != entries_.end()) entries_.erase(mine);
  }
  std::vector<std::pair<const void*, Waker>> TakeAll() { return std::exchange(entries_, {}); }
  size_t size() const { return entries_.size(); }

 private:
  std::vector<std::pair<const void*, Waker>>::iterator Find(const void* who) {
    return std::find_if(entries_.begin(), entries_.end(), [who](const auto& e) { return e.first == who; });
  }
  std::vector<std::pair<const void*, Waker>> entries_;
};

}  // namespace npu::rt
