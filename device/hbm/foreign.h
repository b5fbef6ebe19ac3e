// Host memory that clients registered for devices (aclrtHostRegister): kernels reach it under its own address.
//
//   AddForeign(p, bytes);
//   Local(p + 8) == p + 8;  Check(p, bytes, …).ok();     // hbm.h: as for memory of a card
//   RemoveForeign(p);
//
// The memory stays the client's: who frees it while queued work uses it takes it away from that work. Any thread may
// call anything; while nothing is registered a look-up costs one load.
#pragma once

#include <cstddef>
#include <optional>

namespace npu::hbm {

struct Foreign {
  void* begin = nullptr;
  size_t bytes = 0;
};

// Ranges do not overlap, which the caller sees to; adding one twice changes nothing.
void AddForeign(void* begin, size_t bytes);
void RemoveForeign(void* begin);
std::optional<Foreign> FindForeign(const void* address);

}  // namespace npu::hbm
