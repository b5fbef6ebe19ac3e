// What the operator core asks of the libraries around it; set once when libnnopbase is loaded.
#pragma once

#include "base/status/status.h"

namespace npu::ops {

struct Platform {
  // The kernel's address for a client's device address; null when it is none.
  void* (*local)(const void* client) = nullptr;
  // Remembers the text for aclGetRecentErrMsg and gives the aclnnStatus.
  int32_t (*report)(const Status& status) = nullptr;
};

// By default every address is usable as it is and errors go nowhere: operators run in programs without a device.
Platform& ThePlatform();

}  // namespace npu::ops
