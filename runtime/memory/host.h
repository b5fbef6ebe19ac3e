// Host memory that devices may reach: pinned blocks made here, and ranges of the client that it registered.
//
//   NPU_ASSIGN(void* p, AllocateHost(bytes, "aclrtMallocHost"));
//   FindHost(p)->registered      // false: pinned by us
//   NPU_TRY(FreeHost(p, "aclrtFreeHost"));
//
// A software card reaches all memory of its process; what this table decides is whether an asynchronous copy may use
// the address later (pinned) or must be done with it before the call returns (anything else). Any thread may call
// anything.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/status/status.h"

namespace npu::rt {

struct HostRange {
  void* begin = nullptr;
  size_t bytes = 0;
  bool registered = false;
};

Result<void*> AllocateHost(size_t bytes, const char* function);
// For the client it is gone at once; its pages go when the work that was queued before is done.
Status FreeHost(void* begin, const char* function);

// Operators may use a registered range, or a pinned block after ShowToDevices, like memory of a card.
// A range inside one pinned block may be registered too; the registration goes with the block at the latest.
// kHostRegistered when the range overlaps another registered one or a part of a pinned block, kHostNotRegistered when
// it is unknown.
Status RegisterHost(void* begin, size_t bytes, const char* function);
Status UnregisterHost(void* begin, const char* function);
Status ShowToDevices(const void* address, const char* function);

// The range that holds `address`; nothing for pageable memory.
std::optional<HostRange> FindHost(const void* address);

}  // namespace npu::rt
