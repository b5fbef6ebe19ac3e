// What the operator core asks of the library around it; set once when libopapi is loaded.
#pragma once

namespace npu::ops {

struct Platform {
  // The kernel's address for a client's device address; null when it is none.
  void* (*local)(const void* client) = nullptr;
};

// By default every address is usable as it is: operators run in programs without a device.
Platform& ThePlatform();

}  // namespace npu::ops
