// Device memory for the operator core: client addresses become kernel addresses.
#include "device/hbm/hbm.h"
#include "ops/core/platform.h"

namespace npu::opapi {
namespace {
[[maybe_unused]] const bool kReady = [] {
  ops::ThePlatform().local = [](const void* client) { return hbm::Local(client); };
  ops::ThePlatform().check = [](const void* client, size_t bytes, std::string_view function, std::string_view param) {
    return hbm::Check(client, bytes, function, param);
  };
  return true;
}();
}  // namespace
}  // namespace npu::opapi
