// What the operator core asks of the library around it; set once when libopapi is loaded.
#pragma once

#include <string_view>

#include "base/status/status.h"

namespace npu::ops {

struct Platform {
  // The kernel's address for a client's device address; null when it is none.
  void* (*local)(const void* client) = nullptr;
  // Why no address is device memory in this process (a forked child); ok when the address alone is at fault.
  Status (*no_device)(std::string_view function) = nullptr;
};

// By default every address is usable as it is: operators run in programs without a device.
Platform& ThePlatform();

}  // namespace npu::ops
