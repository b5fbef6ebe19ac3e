#include "coll/comm/parking.h"

#include <algorithm>
#include <chrono>

#include "base/os/thread.h"
#include "device/doorbell/doorbell.h"
#include "device/machine/machine.h"

namespace npu::coll {
namespace {
constexpr std::chrono::milliseconds kLook(200);
}  // namespace

Parking& Parking::Get() {
  static auto* parking = new Parking;  // lives for ever: the watcher outlasts static destructors
  return *parking;
}

void Parking::Park(const void* key, const Waker& waker) {
  const std::lock_guard lock(mutex_);
  const auto at = std::find_if(parked_.begin(), parked_.end(), [&](const auto& entry) { return entry.first == key; });
  if (at != parked_.end()) {
    at->second = waker;
  } else {
    parked_.emplace_back(key, waker);
  }
}

bool Parking::Leave(const void* key) {
  const std::lock_guard lock(mutex_);
  const auto at = std::find_if(parked_.begin(), parked_.end(), [&](const auto& entry) { return entry.first == key; });
  if (at == parked_.end()) return false;
  if (at != parked_.end() - 1) *at = std::move(parked_.back());
  parked_.pop_back();
  return true;
}

void Parking::WakeAll() {
  std::vector<Waker> wakers;
  {
    const std::lock_guard lock(mutex_);
    wakers.reserve(parked_.size());
    for (const auto& entry : parked_) wakers.push_back(entry.second);
  }
  for (const Waker& waker : wakers) waker.Wake();
}

void Parking::WakeSoon() {
  if (device::Machine* machine = device::Joined(); machine != nullptr) device::Ring(*machine, machine->slot());
}

Status Parking::StartWatcher() {
  const std::lock_guard lock(mutex_);
  if (started_) return {};
  NPU_TRY(os::Detach("npu-coll", [this] { Watch(); }));
  started_ = true;
  return {};
}

void Parking::Watch() {
  device::Machine* machine = device::Joined();
  while (machine != nullptr) {
    const uint32_t seen = device::BellCount(*machine);
    WakeAll();
    device::AwaitBell(*machine, seen, Deadline::In(kLook));
  }
}

}  // namespace npu::coll
