#include "device/meters/steps.h"

#include <algorithm>

namespace npu::device::meters {
namespace {

uint64_t Since(uint64_t now, uint64_t then) { return now - std::min(now, then); }

}  // namespace

// Adds the time since the last look in which collectives were under way and the card did nothing else.
void StepClock::Settle(const CardStamp& now) {
  if (under_way_ > 0) {
    const uint64_t passed = Since(now.at_ns, settled_.at_ns);
    waited_ns_ += Since(passed, Since(now.busy_ns, settled_.busy_ns));
  }
  settled_ = now;
}

std::optional<StepClock::Step> StepClock::Begins(uint64_t key, const HostStamp& called, const CardStamp& now) {
  Settle(now);
  ++under_way_;
  return key == 0 ? std::nullopt : Marks(key, called, now);
}

void StepClock::Ends(const CardStamp& now) {
  Settle(now);
  if (under_way_ > 0) --under_way_;
}

std::optional<StepClock::Step> StepClock::Marks(uint64_t key, const HostStamp& called, const CardStamp& now) {
  std::optional<Step> step;
  if (key == mark_) {
    const uint64_t wall = Since(now.at_ns, began_.at_ns);
    const uint64_t host = Since(Since(called.at_ns, called_.at_ns), Since(called.blocked_ns, called_.blocked_ns)) +
                          Since(now.off_caller_ns, began_.off_caller_ns);
    step = Step{wall, std::min(wall, std::max(Since(wall, waited_ns_), host))};
  } else {
    if (mark_ != 0 && seen_.size() < kMostSeen && ++seen_[key] < kSettled) return std::nullopt;
    mark_ = key;
  }
  seen_.clear();
  called_ = called;
  began_ = now;
  waited_ns_ = 0;
  return step;
}

}  // namespace npu::device::meters
