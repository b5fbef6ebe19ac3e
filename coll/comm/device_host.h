// Host on the machine of device/: arenas of peer processes, doorbells, process slots.
#pragma once

#include <map>
#include <shared_mutex>

#include "coll/transport/host.h"
#include "device/machine/machine.h"

namespace npu::coll {

class DeviceHost final : public Host {
 public:
  explicit DeviceHost(device::Machine& machine) : machine_(machine) {}
  Result<void*> Map(const Place& place) override;
  bool Alive(uint32_t slot) override { return machine_.IsAlive(slot); }
  void Ring(uint32_t slot) override;
  int32_t PidOf(uint32_t slot) override { return machine_.PidOf(slot); }

 private:
  device::Machine& machine_;
  std::shared_mutex mutex_;                               // guards bases_
  std::map<std::pair<uint32_t, int>, std::byte*> bases_;  // arenas by slot and card
};

}  // namespace npu::coll
