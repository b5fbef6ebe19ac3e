// Device memory for the operator core: client addresses become kernel addresses.
#include "device/hbm/hbm.h"
#include "ops/core/platform.h"

namespace npu::opapi {
namespace {
[[maybe_unused]] const bool kReady = [] {
  ops::ThePlatform().local = [](const void* client) { return hbm::Local(client); };
  return true;
}();
}  // namespace
}  // namespace npu::opapi
