#include "coll/comm/device_host.h"

#include "coll/comm/parking.h"
#include "device/doorbell/doorbell.h"
#include "device/hbm/hbm.h"

namespace npu::coll {

Result<void*> DeviceHost::Map(const Place& place) {
  std::byte* base = nullptr;
  {
    const std::shared_lock lock(mutex_);
    const auto at = bases_.find({place.slot, place.card});
    if (at != bases_.end()) base = at->second;
  }
  if (base == nullptr) {
    NPU_ASSIGN(void* arena, hbm::MapPeer(place.slot, place.card));
    base = static_cast<std::byte*>(arena);
    const std::unique_lock lock(mutex_);
    bases_[{place.slot, place.card}] = base;
  }
  if (place.bytes > machine_.hbm_bytes() || place.offset > machine_.hbm_bytes() * 2) {
    return Error(Code::kIpcError, "A peer names {} bytes at offset {} of its memory, more than a card has.",
                 place.bytes, place.offset);
  }
  void* local = base + place.offset;
  hbm::Populate(local, place.bytes);
  return local;
}

void DeviceHost::Ring(uint32_t slot) {
  if (slot == machine_.slot()) {
    Parking::Get().WakeAll();
  } else {
    device::Ring(machine_, slot);
  }
}

}  // namespace npu::coll
