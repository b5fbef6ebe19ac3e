// The meters of all processes of a machine as values, read without joining it.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "base/status/status.h"
#include "device/machine/machine.h"
#include "device/meters/layout.h"

namespace npu::device {

struct OpReading {
  std::string name;  // as the library calls it: "aclnnAdd"
  uint64_t sum_ns = 0;
  std::array<uint64_t, kMeterBuckets> buckets{};  // each its own count; bounds: kMeterBoundsNs
};

struct RankReading {
  int card = 0;
  uint32_t rank = 0, ranks = 0;
  uint64_t issued = 0, received = 0, completed = 0;
  uint64_t steps = 0, own_ns = 0, wall_ns = 0;
  std::vector<uint32_t> recent_own_us, recent_wall_us;  // of the last steps, in no order
};

struct ProcessReading {
  uint32_t slot = 0;  // names the process for as long as it lives (SlotWord)
  int32_t pid = 0;
  std::vector<OpReading> ops;
  std::vector<RankReading> ranks;
};

// Empty for a machine that does not exist.
Result<std::vector<ProcessReading>> ReadMeters(const MachineConfig& config);

}  // namespace npu::device
