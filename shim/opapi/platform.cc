// Device memory for the operator core: client addresses become kernel addresses.
#include "device/hbm/hbm.h"
#include "device/hbm/region.h"
#include "device/strict/strict.h"
#include "ops/core/platform.h"
#include "runtime/context/devices.h"
#include "runtime/context/limits.h"

namespace npu::opapi {
namespace {

// A card reaches the memory of another only after aclrtDeviceEnablePeerAccess; on the real one the kernel would fault.
Status Reach(const void* local, int card, std::string_view function, std::string_view param) {
  const hbm::Region* region = hbm::FindRegion(local);
  if (region == nullptr && strict::On()) region = hbm::FindLocalRegion(local);
  if (region == nullptr || region->kind != hbm::RegionKind::kArena || region->card == card) [[likely]] return {};
  const int theirs = rt::LogicalOf(region->card), ours = rt::LogicalOf(card);
  if (theirs < 0 || ours < 0 || rt::PeerAccess(ours, theirs) || rt::PeerAccess(theirs, ours)) return {};
  return Error(Code::kInvalidParam,
               "{}: {} is memory of device {}, but the stream is on device {} and peer access between them is not enabled.", function,
               param, theirs, ours)
      .Remedy("Copy the data to device {} first, or call aclrtDeviceEnablePeerAccess({}, 0) there.", ours, theirs);
}

[[maybe_unused]] const bool kReady = [] {
  ops::ThePlatform().local = [](const void* client) { return hbm::Local(client); };
  ops::ThePlatform().check = [](const void* client, size_t bytes, std::string_view function, std::string_view param) {
    return hbm::Check(client, bytes, function, param);
  };
  ops::ThePlatform().reach = Reach;
  ops::ThePlatform().chip = [] {
    const Result<device::Machine*> machine = rt::TheMachine();
    return machine.ok() ? std::string_view((*machine)->profile().soc) : std::string_view();
  };
  return true;
}();
}  // namespace
}  // namespace npu::opapi
