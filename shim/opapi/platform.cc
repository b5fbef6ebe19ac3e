// Device memory for the operator core: client addresses become kernel addresses.
#include "device/hbm/hbm.h"
#include "ops/core/platform.h"
#include "runtime/workers/process.h"

namespace npu::opapi {
namespace {
[[maybe_unused]] const bool kReady = [] {
  ops::ThePlatform().local = [](const void* client) { return hbm::Local(client); };
  ops::ThePlatform().no_device = [](std::string_view op) {
    return rt::Forked() ? rt::ForkedError(std::string(op).c_str()) : Status();
  };
  return true;
}();
}  // namespace
}  // namespace npu::opapi
