// What monitors show, read once: in base units (watts, bytes, seconds, degrees Celsius, shares from 0 to 1), whatever
// the source counted in. A value the source does not have is absent and shown nowhere.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace npu::monitor {

struct Process {
  int pid = 0;
  std::string name;
  uint64_t memory_bytes = 0;
  std::string container_id;      // empty on the host
  std::optional<double> core_s;  // what it has used of the AI cores
};

struct EccCounts {
  bool enabled = true;
  uint64_t single_bit = 0, double_bit = 0;              // now
  uint64_t single_bit_total = 0, double_bit_total = 0;  // over the card's life
  uint64_t single_bit_pages = 0, double_bit_pages = 0;  // isolated
};

struct Link {
  std::optional<bool> up, reachable;
  std::optional<double> speed_bits_per_s;
  std::optional<uint64_t> times_up;
  std::optional<double> send_bytes_per_s, receive_bytes_per_s;
};

struct Optical {
  std::optional<bool> present;
  std::optional<double> temperature_c, supply_v;
  std::array<std::optional<double>, 4> send_w, receive_w;  // by lane
};

// Of one direction and kind of PCIe traffic, bytes/s.
struct PcieRate {
  double mean = 0, least = 0, most = 0;
};
// Sent and received: posted writes, requests to read, completions.
struct Pcie {
  PcieRate tx_p, tx_np, tx_cpl, rx_p, rx_np, rx_cpl;
};

struct HccsLane {
  int number = 0;
  double send_bytes_per_s = 0, receive_bytes_per_s = 0;
  std::optional<uint64_t> sent_flits, received_flits, crc_errors;
};
struct Hccs {
  double watched_s = 0, send_bytes_per_s = 0, receive_bytes_per_s = 0;
  std::vector<HccsLane> lanes;
};

// Everything a card did, by part of the card and by direction of bytes.
struct Done {
  std::string name;
  double value = 0;
};
struct Work {
  std::vector<Done> busy_s, tasks, bytes;
};

struct Card {
  int id = 0;           // logic id: npu0, npu1, …
  bool answers = true;  // false: it was there and is lost
  std::string model;    // 910B4-Ascend-V1
  std::string die_id;   // five words of the chip
  std::string bus;      // 0000:41:00.0
  std::string serial;
  std::optional<double> power_w, temperature_c, hbm_temperature_c, voltage_v, core_mhz;
  std::optional<double> core_use, vector_use, cube_use, overall_use, bandwidth_use;
  std::optional<uint64_t> hbm_used_bytes, hbm_total_bytes, ddr_used_bytes, ddr_total_bytes;
  std::optional<double> fragmentation;  // 1 - largest free range / free memory
  std::optional<unsigned> health;       // 0 good … 3 critical
  std::vector<uint32_t> error_codes;
  std::optional<EccCounts> ecc;
  Link link;
  std::vector<std::pair<std::string, uint64_t>> port;  // counters, by hccn_tool's names
  std::optional<Optical> optical;
  std::optional<Pcie> pcie;
  std::optional<Hccs> hccs;
  std::optional<std::pair<uint64_t, uint64_t>> die_link_errors;  // between the dies of a card: sending, receiving
  std::optional<Work> work;
  std::optional<uint64_t> send_queue, receive_queue;
  std::vector<Process> processes;
};

inline constexpr std::array<double, 19> kOperatorBoundsUs = {
    1, 2, 5, 10, 20, 50, 100, 200, 400, 800, 1600, 3200, 6400, 12800, 25600, 51200, 102400, 409600, 1638400};

struct Operator {
  std::string name;  // MatMul, Softmax, LayerNorm, Add, …
  double sum_us = 0;
  std::array<uint64_t, kOperatorBoundsUs.size() + 1> counts{};  // of each bucket alone
};

struct Rank {
  int card = 0, rank = 0, ranks = 0;
  uint64_t steps = 0;
  double own_s = 0, wall_s = 0;                     // sums
  std::vector<double> recent_own_s, recent_wall_s;  // of the last steps
};

struct Reading {
  std::string source;  // software, dcmi, npu-smi, sysfs
  std::string driver;
  std::vector<Card> cards;  // by id
  std::vector<Operator> operators;
  std::vector<Rank> ranks;
  std::vector<std::string> faults;    // injected, by name; the software device only
  std::vector<std::string> problems;  // what could not be read, one clear line each
};

}  // namespace npu::monitor
