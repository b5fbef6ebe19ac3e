#include "device/hbm/populated.h"

#include <algorithm>

#include "device/hbm/host_memory.h"

namespace npu::hbm {

Populated::Populated(uint64_t bytes)
    : granules_((bytes + kGranule - 1) / kGranule), bits_(new std::atomic<uint64_t>[(granules_ + 63) / 64]()) {}

bool Populated::Populate(const Region& region, uint64_t offset, uint64_t bytes) {
  if (bytes == 0) return true;
  uint64_t at = offset / kGranule;
  const uint64_t end = std::min((offset + bytes + kGranule - 1) / kGranule, granules_);
  while (at < end) {
    if (Has(at)) {
      ++at;
      continue;
    }
    uint64_t last = at + 1;  // one call for the run that is missing
    while (last < end && !Has(last)) ++last;
    const uint64_t begin_byte = at * kGranule, end_byte = std::min(last * kGranule, region.bytes);
    if (!PopulatePages(reinterpret_cast<void*>(region.local + begin_byte), end_byte - begin_byte)) return false;
    for (; at < last; ++at) bits_[at / 64].fetch_or(uint64_t{1} << (at % 64), std::memory_order_relaxed);
  }
  return true;
}

void Populated::Forget(uint64_t offset, uint64_t bytes) {
  const uint64_t end = std::min((offset + bytes + kGranule - 1) / kGranule, granules_);
  for (uint64_t at = offset / kGranule; at < end; ++at) {
    bits_[at / 64].fetch_and(~(uint64_t{1} << (at % 64)), std::memory_order_relaxed);
  }
}

}  // namespace npu::hbm
