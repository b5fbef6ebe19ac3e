#include "runtime/context/limits.h"

#include <algorithm>
#include <atomic>

#include "device/faults/act.h"
#include "device/strict/strict.h"
#include "runtime/context/devices.h"
#include "runtime/workers/pool.h"

namespace npu::rt {
namespace {
constexpr int kMaxDevices = device::kMaxCards;
std::atomic<uint64_t> peers[kMaxDevices];  // a bit for each peer
static_assert(kMaxDevices <= 64);
std::atomic<uint32_t> core_limits[kMaxDevices][2];
std::atomic<int> saturation_modes[kMaxDevices];  // mode + 1; 0 is never set
std::atomic<uint64_t> execute_limit_us{0};
}  // namespace

Status SetPeerAccess(int device, int peer, bool enabled) {
  const uint64_t bit = uint64_t{1} << peer;
  if (enabled) {
    peers[device].fetch_or(bit, std::memory_order_relaxed);
  } else {
    peers[device].fetch_and(~bit, std::memory_order_relaxed);
  }
  if (strict::On()) {
    NPU_ASSIGN(const int card, PhysicalOf(device, __func__));
    NPU_ASSIGN(const int other, PhysicalOf(peer, __func__));
    strict::PeersMay(card, other, enabled);
    strict::PeersMay(other, card, enabled);
  }
  return {};
}

bool PeerAccess(int device, int peer) {
  return device == peer || (peers[device].load(std::memory_order_relaxed) >> peer & 1) != 0;
}

Result<uint32_t> CoreNumber(int kind, const char* function) {
  NPU_ASSIGN(const device::Machine* machine, TheMachine());
  if (kind == 0) return static_cast<uint32_t>(machine->profile().cube_cores);
  if (kind == 1) return static_cast<uint32_t>(machine->profile().vector_cores);
  return Error(Code::kOutOfRange, "{}: type is {}; there are 0 (cube cores) and 1 (vector cores).", function, kind);
}

Result<uint32_t> DeviceCoreLimit(int device, int kind, const char* function) {
  NPU_ASSIGN(const uint32_t all, CoreNumber(kind, function));
  const uint32_t limit = core_limits[device][kind].load(std::memory_order_relaxed);
  return limit == 0 ? all : limit;
}

Status SetDeviceCoreLimit(int device, int kind, uint32_t cores, const char* function) {
  NPU_ASSIGN(const int card, PhysicalOf(device, function));
  core_limits[device][kind].store(cores, std::memory_order_relaxed);
  int thousandths = 1000;
  for (int k = 0; k < 2; ++k) {
    NPU_ASSIGN(const uint32_t all, CoreNumber(k, function));
    const uint32_t limit = core_limits[device][k].load(std::memory_order_relaxed);
    if (limit != 0) thousandths = std::min(thousandths, std::max<int>(1, static_cast<int>(uint64_t{1000} * limit / all)));
  }
  Pool::Of(card).parallel().Limit(thousandths);
  return {};
}

void SetSaturationMode(int device, int mode) { saturation_modes[device].store(mode + 1, std::memory_order_relaxed); }
int SaturationMode(int device) {
  const int set = saturation_modes[device].load(std::memory_order_relaxed);
  return set == 0 ? 1 : set - 1;
}

void SetExecuteLimitUs(uint64_t us) {
  execute_limit_us.store(us, std::memory_order_relaxed);
  device::execute_limit_us.store(&ExecuteLimitUs, std::memory_order_relaxed);  // for cards that hang
}
uint64_t ExecuteLimitUs() { return execute_limit_us.load(std::memory_order_relaxed); }

}  // namespace npu::rt
