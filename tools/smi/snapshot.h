// What npu-smi shows, as values: read once through libdcmi.so (query.h), then rendered. A value the driver does not
// answer is absent and printed as NA.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace npu::smi {

struct Process {
  int pid = 0;
  std::string name;
  uint64_t memory_bytes = 0;
};

struct Chip {
  int card = 0;      // what npu-smi prints as NPU id
  int chip = 0;      // position on the card
  int logic = 0;     // the index ACL uses
  std::string name;  // 910B4
  std::optional<unsigned> health;
  std::optional<int> power_dw;  // 0.1 W
  std::optional<int> temperature_c;
  std::optional<unsigned> aicore_percent;
  std::optional<uint64_t> hbm_used_mb, hbm_total_mb;
  std::string bus_id;  // 0000:41:00.0
  uint64_t hugepages_used = 0, hugepages_total = 0;
  uint64_t memory_used_mb = 0, memory_total_mb = 0;  // DDR: none on a 910B
  std::vector<Process> processes;
  std::optional<int> phy;  // of two-die cards: the physical id of the die
};

struct Snapshot {
  std::string tool_version, driver_version;
  std::vector<Chip> chips;  // in card order
};

// The box of `npu-smi info`. Its width follows the driver: 98 characters up to 25.5, 99 later.
std::string RenderInfo(const Snapshot& snapshot);

// OK, Warning, Alarm, Critical, UNKNOWN.
const char* HealthWord(std::optional<unsigned> health);

}  // namespace npu::smi
