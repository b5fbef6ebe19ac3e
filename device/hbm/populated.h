// Which parts of a mapping have their pages, so that a second wish costs a few loads.
//
// A bit for each 64 KiB. A bit may be set though the owner has taken the pages away meanwhile: then the next access is
// a page fault, slower and still right.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "device/hbm/region.h"

namespace npu::hbm {

class Populated {
 public:
  static constexpr uint64_t kGranule = uint64_t{64} << 10;

  explicit Populated(uint64_t bytes);
  // False when the host gave no pages.
  bool Populate(const Region& region, uint64_t offset, uint64_t bytes);
  // Whole granules inside the range have lost their pages; those at its ends may have.
  void Forget(uint64_t offset, uint64_t bytes);

 private:
  bool Has(uint64_t granule) const {
    return (bits_[granule / 64].load(std::memory_order_relaxed) >> (granule % 64) & 1) != 0;
  }
  const uint64_t granules_;
  const std::unique_ptr<std::atomic<uint64_t>[]> bits_;
};

}  // namespace npu::hbm
