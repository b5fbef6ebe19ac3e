// What the operator core asks of the library around it; set once when libopapi is loaded.
#pragma once

#include <cstddef>
#include <string_view>

#include "base/status/status.h"

namespace npu::ops {

struct Platform {
  // The kernel's address for a client's device address; null when it is none.
  void* (*local)(const void* client) = nullptr;
  // Whether `bytes` from `client` on are device memory that is allocated; the text begins with "function: param".
  Status (*check)(const void* client, size_t bytes, std::string_view function, std::string_view param) = nullptr;
  // The chip that the cards are, as aclrtGetSocName names it; asked in parity mode only.
  std::string_view (*chip)() = nullptr;
  // Whether kernels that run on physical `card` reach the memory at a kernel's address.
  Status (*reach)(const void* local, int card, std::string_view function, std::string_view param) = nullptr;
};

// By default every address is usable as it is: operators run in programs without a device.
Platform& ThePlatform();

}  // namespace npu::ops
