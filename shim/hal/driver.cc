// The driver's own interface, as far as clients ask: how many cards there are, and which age it has.
#include "device/figures/read.h"
#include "gen/calls/hal.h"

namespace npu::calls {
namespace {

// Older than the first driver that clients ask for the device clock (0x071905), so they use the host's.
constexpr int32_t kApiVersion = 0x071900;

}  // namespace

// All cards of the machine: which of them a process sees is the runtime's business.

Status drvGetDevNum(uint32_t* num_dev) {
  if (num_dev == nullptr) return Error(Code::kInvalidParam, "drvGetDevNum: num_dev is null.");
  if (const device::Machine* machine = device::Joined()) {
    *num_dev = static_cast<uint32_t>(machine->cards());
    return {};
  }
  NPU_ASSIGN(const device::MachineConfig config, device::ConfigFromEnvironment());
  NPU_ASSIGN(const device::MachineFigures machine, device::ReadFigures(config));
  *num_dev = static_cast<uint32_t>(machine.cards.size());
  return {};
}

Status halGetAPIVersion(int32_t* halAPIVersion) {
  if (halAPIVersion == nullptr) return Error(Code::kInvalidParam, "halGetAPIVersion: halAPIVersion is null.");
  *halAPIVersion = kApiVersion;
  return {};
}

Status halGetDeviceInfo(uint32_t devId, int32_t moduleType, int32_t infoType, int64_t* value) {
  if (value == nullptr) return Error(Code::kInvalidParam, "halGetDeviceInfo: value is null.");
  return NotYet("halGetDeviceInfo", fmt::format("device {}, module {}, item {}", devId, moduleType, infoType));
}

}  // namespace npu::calls
