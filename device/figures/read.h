// The figures of a machine as values, read without joining it: what the exporter, DCMI and npu-smi show.
//
//   NPU_ASSIGN(const MachineConfig config, ConfigFromEnvironment());
//   NPU_ASSIGN(const MachineFigures figures, ReadFigures(config));
//   for (const CardFigures& card : figures.cards) …card.busy_s[size_t(Unit::kCube)], card.power_w…
//
// A machine that does not exist gives the idle figures of the one that would be made. Times are seconds, sizes bytes.
// Sums of a card hold what ended processes did, and start anew with the machine.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/status/status.h"
#include "device/figures/layout.h"
#include "device/machine/machine.h"

namespace npu::device {

struct CardProcess {
  int32_t pid = 0;
  uint64_t pid_namespace = 0;  // in which the pid is meant
  std::string command;
  uint64_t used_bytes = 0;
  bool open = false;
  std::array<double, kUnits> busy_s{};
};

struct FaultFigures {
  uint32_t id = 0;
  std::string name;  // "card-lost", …
  std::string call;  // of "call": the function
  int card = -1;     // -1: every one
  int rank = -1;     // -1: whatever rank
  uint64_t seen = 0, acted = 0;
  uint64_t since_unix_ms = 0;
  bool active = false;  // acts now
};

struct CardFigures {
  int logic = 0;
  uint64_t total_bytes = 0, used_bytes = 0, system_bytes = 0;
  uint64_t free_bytes = 0, largest_free_bytes = 0;
  double fragmentation_ratio = 0;  // 1 - largest free range / free memory

  std::array<double, kUnits> busy_s{};
  std::array<uint64_t, kUnits> tasks{};
  std::array<uint64_t, kFlows> bytes{};
  std::array<double, kFlows> bytes_per_s{};
  uint64_t failed_tasks = 0;

  // Use in the last window, 0 to 1. Core: cube or vector; any: whatever ran.
  double use_core = 0, use_cube = 0, use_vector = 0, use_memory = 0, use_link = 0, use_any = 0, use_bandwidth = 0;
  double power_w = 0, chip_c = 0, hbm_c = 0, voltage_v = 0;
  int core_mhz = 0, hbm_mhz = 0;

  uint64_t ecc_single = 0, ecc_double = 0, ecc_single_life = 0, ecc_double_life = 0;
  uint64_t isolated_single = 0, isolated_double = 0;
  bool present = true, link_up = true;
  uint64_t driver_timeout_ms = 0;  // the driver does not answer, and gives up after so long
  uint64_t link_downs = 0, link_ups = 0, packets_lost = 0, pcie_errors = 0, resets = 0;
  int pcie_lanes = 16, pcie_generation = 4;
  uint32_t health = 0;  // 0 good, 1 minor, 2 major, 3 critical
  std::vector<uint32_t> fault_codes;
  bool shared = false, exclusive = false, ecc_enabled = true;  // exclusive: one container at a time

  std::vector<CardProcess> processes;
};

struct MachineFigures {
  std::string name, cann, driver;
  const Profile* profile = nullptr;
  bool exists = false, kept = false;
  std::vector<CardFigures> cards;
  std::vector<FaultFigures> faults;
};

Result<MachineFigures> ReadFigures(const MachineConfig& config);

}  // namespace npu::device
