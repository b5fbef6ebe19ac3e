// Handle kinds of this room (HandleTable wants one number for each in a process); 1 to 15 are ours.
#pragma once

#include <cstdint>

namespace npu::rt {

enum HandleKind : uint8_t {
  kContextHandle = 1,
  kStreamHandle = 2,
  kEventHandle = 3,
  kNotifyHandle = 4,
  kCountNotifyHandle = 5,
  kPhysicalHandle = 6,
  kMemPoolHandle = 7,
  kStreamConfigHandle = 8,
};

}  // namespace npu::rt
