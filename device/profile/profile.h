// What a card is: one object that every layer reads, from aclrtGetSocName to npu-smi.
//
//   const Profile* p = FindProfile("Ascend910B4");       // also "910B4"; null when unknown
//
// Profiles are constant data and live for ever. Which one this process has is decided by the machine it joins
// (machine.h).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace npu::device {

struct Profile {
  std::string_view soc;        // "Ascend910B4", what aclrtGetSocName answers
  std::string_view chip;       // "910B4", what npu-smi prints
  std::string_view short_soc;  // "Ascend910B"
  int dies_per_card = 1;       // 2: devices 2k and 2k+1 are the dies of card k

  uint64_t hbm_mb = 0;         // memory of one device
  uint64_t system_hbm_mb = 0;  // used when idle, by the system itself
  bool ddr = false;            // the memory is DDR and not HBM
  bool dcmi_v2 = false;        // the driver speaks the second generation of DCMI only

  int ai_cores = 0;  // what ACL calls the AI core number
  int cube_cores = 0;
  int vector_cores = 0;
  int ai_cpus = 0;
  int cube_mhz = 0;  // rated; also the AI core clock of DCMI
  int hbm_mhz = 0;
  int npu_arch = 0;  // 2201: the second generation's split cores
  std::string_view aic_version;

  uint64_t l2_bytes = 0;
  uint64_t l1_bytes = 0, ub_bytes = 0, l0a_bytes = 0, l0b_bytes = 0, l0c_bytes = 0, bt_bytes = 0;

  uint32_t max_streams = 0;  // of one device
  uint32_t max_events = 0;
  uint32_t max_notifies = 0;
  uint32_t stream_depth = 0;
  bool bf16 = false;

  int idle_power_dw = 0;  // in 0.1 W, as DCMI counts
  int busy_power_dw = 0;  // at full use
  int idle_temp_c = 0;
  int busy_temp_c = 0;
};

inline constexpr std::string_view kDefaultSoc = "Ascend910B4";
inline constexpr std::string_view kDefaultCann = "9.1.0";
inline constexpr std::string_view kDefaultDriver = "25.5.2";
inline constexpr int kDefaultCards = 2;
inline constexpr int kMaxCards = 64;

std::span<const Profile> Profiles();
// By SoC name or chip name, letter case ignored.
const Profile* FindProfile(std::string_view name);
// The CANN versions that may be reported.
std::span<const std::string_view> CannVersions();
// "0000:41:00.0": domain, bus, device, function; upper-case hexadecimal.
std::string BusId(int card);
struct PciAddress {
  uint32_t domain, bus, device, function;
};
PciAddress PciOf(int card);

// "32G", "512M", "1073741824", "1.5GiB"; nothing for anything else, zero or more than 2^50.
std::optional<uint64_t> ParseBytes(std::string_view text);

}  // namespace npu::device
