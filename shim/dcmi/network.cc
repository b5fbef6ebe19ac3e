// Links: network health, addresses, and traffic that is measured over a time the caller names.
#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "base/extras/port.h"
#include "gen/calls/dcmi.h"
#include "shim/dcmi/chips.h"

namespace npu::calls {

using namespace npu::dcmi;  // NOLINT: the adapters of this library

namespace {

constexpr double kGiga = 1e9;

// Cards on the PCIe bus alone have no port of their own.
Status NeedPort(const char* function, const Chip& chip) {
  return chip.profile().ddr ? npu::Unsupported(function, "the card has no network port") : Status();
}

// Addresses as hccn_tool keeps them: lines address_N=… and netmask_N=…. Without the file every card has one of a
// private range.
struct Address {
  std::string ip, mask = "255.255.255.0";
};
Address AddressOf(int device) {
  Address address{fmt::format("192.168.{}.{}", 100 + device / 200, 1 + device % 200)};
  const char* path = std::getenv("ANYNPU_HCCN_CONF");
  std::ifstream file(path == nullptr ? "/etc/hccn.conf" : path);
  for (std::string line; std::getline(file, line);) {
    const size_t equals = line.find('=');
    if (equals == std::string::npos) continue;
    const std::string key = line.substr(0, equals),
                      value = line.substr(equals + 1, line.find_last_not_of(" \r\t") - equals);
    if (key == fmt::format("address_{}", device)) address.ip = value;
    if (key == fmt::format("netmask_{}", device)) address.mask = value;
  }
  return address;
}

Status PutAddress(const char* function, const std::string& text, dcmi_ip_addr* out) {
  *out = {};
  if (inet_pton(AF_INET, text.c_str(), &out->u_addr) == 1) {
    out->ip_type = DCMI_IPADDR_TYPE_V4;
    return {};
  }
  if (inet_pton(AF_INET6, text.c_str(), &out->u_addr) == 1) {
    out->ip_type = DCMI_IPADDR_TYPE_V6;
    return {};
  }
  return Error(Code::kInvalidFile, "{}: hccn.conf has {:?}, which is no address.", function, text.substr(0, 60))
      .Remedy("Write lines like address_0=192.168.100.1 and netmask_0=255.255.255.0.");
}

Status NeedTime(const char* function, int ms, int least, int most) {
  if (ms >= least && ms <= most) return {};
  return Error(Code::kInvalidParam, "{}: profiling_time is {} ms.", function, ms).Remedy("Use {} to {}.", least, most);
}

// What a chip did in the next `ms`.
struct Sample {
  std::array<double, device::kFlows> bytes_per_s{};
  std::array<double, device::kUnits> share{};
};
Result<Sample> Watch(const char* function, int card, int chip, int ms) {
  NPU_ASSIGN(const Chip before, AskChip(function, card, chip));
  const auto start = std::chrono::steady_clock::now();
  std::this_thread::sleep_for(std::chrono::milliseconds(ms));
  Forget();
  NPU_ASSIGN(const Chip after, AskChip(function, card, chip));
  const double seconds =
      std::max(1e-3, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  Sample sample;
  for (size_t f = 0; f < device::kFlows; ++f) {
    const uint64_t now = after.state().bytes[f], then = before.state().bytes[f];
    sample.bytes_per_s[f] = static_cast<double>(now - std::min(now, then)) / seconds;
  }
  for (size_t u = 0; u < device::kUnits; ++u) {
    sample.share[u] = std::clamp((after.state().busy_s[u] - before.state().busy_s[u]) / seconds, 0.0, 1.0);
  }
  return sample;
}

}  // namespace

Status dcmi_get_device_network_health(int card_id, int device_id, dcmi_rdfx_detect_result* result) {
  constexpr const char* kName = "dcmi_get_device_network_health";
  NPU_TRY(NeedPointers(kName, {result}));
  NPU_ASSIGN(const Chip chip, AskChip(kName, card_id, device_id));
  NPU_TRY(NeedPort(kName, chip));
  *result = chip.state().link_up ? DCMI_RDFX_DETECT_OK : DCMI_RDFX_DETECT_UNREACH;
  return {};
}

Status dcmi_get_device_ip(int card_id, int device_id, dcmi_port_type input_type, int port_id, dcmi_ip_addr* ip,
                          dcmi_ip_addr* mask) {
  constexpr const char* kName = "dcmi_get_device_ip";
  NPU_TRY(NeedPointers(kName, {ip, mask}));
  NPU_ASSIGN(const Chip chip, FindChip(kName, card_id, device_id));
  NPU_TRY(NeedPort(kName, chip));
  if (input_type != DCMI_ROCE_PORT && input_type != DCMI_VNIC_PORT) {
    return Error(Code::kInvalidParam, "{}: input_type is {}; 0 (virtual) and 1 (RoCE) exist.", kName,
                 static_cast<int>(input_type));
  }
  if (port_id != 0) return Error(Code::kInvalidParam, "{}: port_id is {}; port 0 exists.", kName, port_id);
  const Address address = AddressOf(chip.logic);
  NPU_TRY(PutAddress(kName, address.ip, ip));
  return PutAddress(kName, address.mask, mask);
}

Status dcmi_get_device_multi_utilization_rate_period(int card_id, int device_id, dcmi_multi_utilization_info* util_info,
                                                     int period) {
  constexpr const char* kName = "dcmi_get_device_multi_utilization_rate_period";
  NPU_TRY(NeedPointers(kName, {util_info}));
  NPU_TRY(NeedTime(kName, period, 1, 10'000));
  NPU_ASSIGN(const Sample sample, Watch(kName, card_id, device_id, period));
  const auto percent = [](double share) { return static_cast<unsigned>(std::min(share, 1.0) * 100 + 0.5); };
  *util_info = {.aic_util = percent(sample.share[0]),
                .aiv_util = percent(sample.share[1]),
                .aicore_util = percent(sample.share[0] + sample.share[1]),
                .npu_util = percent(sample.share[0] + sample.share[1] + sample.share[2] + sample.share[3])};
  return {};
}

Status dcmi_get_hccs_link_bandwidth_info(int card_id, int device_id, dcmi_hccs_bandwidth_info* hccs_bandwidth_info) {
  constexpr const char* kName = "dcmi_get_hccs_link_bandwidth_info";
  NPU_TRY(NeedPointers(kName, {hccs_bandwidth_info}));
  NPU_ASSIGN(const Chip chip, AskChip(kName, card_id, device_id));
  NPU_TRY(NeedPort(kName, chip));
  NPU_TRY(NeedTime(kName, hccs_bandwidth_info->profiling_time, 1, 1000));
  NPU_ASSIGN(const Sample sample, Watch(kName, card_id, device_id, hccs_bandwidth_info->profiling_time));
  dcmi_hccs_bandwidth_info out{.profiling_time = hccs_bandwidth_info->profiling_time};
  out.total_txbw = sample.bytes_per_s[static_cast<size_t>(device::Flow::kLinkSend)] / kGiga;
  out.total_rxbw = sample.bytes_per_s[static_cast<size_t>(device::Flow::kLinkReceive)] / kGiga;
  // Which peer took what is not counted: the links share it evenly. Readers look from link 1 on.
  const int links = HccsLinks(chip.world->cards.size());
  for (int link = 1; link <= links; ++link) {
    out.tx_bandwidth[link] = out.total_txbw / links;
    out.rx_bandwidth[link] = out.total_rxbw / links;
  }
  *hccs_bandwidth_info = out;
  return {};
}

Status dcmi_get_pcie_link_bandwidth_info(int card_id, int device_id,
                                         dcmi_pcie_link_bandwidth_info* pcie_link_bandwidth_info) {
  constexpr const char* kName = "dcmi_get_pcie_link_bandwidth_info";
  NPU_TRY(NeedPointers(kName, {pcie_link_bandwidth_info}));
  const int ms = pcie_link_bandwidth_info->profiling_time;
  NPU_TRY(NeedTime(kName, ms, 0, 2000));
  NPU_ASSIGN(const Sample sample, Watch(kName, card_id, device_id, std::max(ms, 1)));
  dcmi_pcie_link_bandwidth_info out{.profiling_time = ms};
  // MB in a ms, as the driver counts: posted writes leave the card, completions come back for what it reads. One window
  // is measured, so the smallest, largest and mean of it are one.
  const auto mb_per_ms = [&](device::Flow flow) {
    return static_cast<unsigned>(sample.bytes_per_s[static_cast<size_t>(flow)] / 1e9);
  };
  for (int i = 0; i < 3; ++i) {
    out.tx_p_bw[i] = mb_per_ms(device::Flow::kToHost);
    out.rx_cpl_bw[i] = mb_per_ms(device::Flow::kToDevice);
  }
  *pcie_link_bandwidth_info = out;
  return {};
}

}  // namespace npu::calls
