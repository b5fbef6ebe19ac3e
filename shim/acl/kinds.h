// Handle kinds of the holders of libascendcl (base/handle/table.h), 40 to 47, and what they share; 48 is a communicator.
#pragma once

#include <atomic>
#include <cstdint>

namespace npu {

inline constexpr uint8_t kTensorDescKind = 40;
inline constexpr uint8_t kDataBufferKind = 41;
// 42 are attribute sets: ops/core/named.cc.

struct Counted {
  void AddRef() { refs.fetch_add(1, std::memory_order_relaxed); }
  void Release() {
    if (refs.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }
  virtual ~Counted() = default;
  std::atomic<uint32_t> refs{1};
};

}  // namespace npu
