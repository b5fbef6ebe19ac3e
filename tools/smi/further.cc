// The rarer types of `npu-smi info -t`: one detail block each.
#include <algorithm>
#include <array>
#include <ctime>
#include <map>

#include "tools/smi/block.h"

namespace npu::smi {
namespace {

int Known(const Asked& a) {
  dcmi_unit_type type{};
  return NPU_DCMI(a.dcmi, dcmi_get_device_type, a.id.card, a.id.chip, &type);
}

int Flash(const Asked& a, std::string& out) {
  if (int code = Known(a)) return code;
  Line(out, "NPU ID", a.id.card);
  Line(out, "Flash Count", 0);  // no firmware, no flash
  return 0;
}

int EccEnable(const Asked& a, std::string& out) {
  dcmi_ecc_info ecc{};
  if (int code = NPU_DCMI(a.dcmi, dcmi_get_device_ecc_info, a.id.card, a.id.chip, DCMI_DEVICE_TYPE_HBM, &ecc))
    return code;
  Line(out, "NPU ID", a.id.card);
  Line(out, "Chip ID", a.id.chip);
  Line(out, "HBM ECC Enable", ecc.enable_flag);
  return 0;
}

int PcieErrors(const Asked& a, std::string& out) {
  if (int code = Known(a)) return code;
  CardExtras extras;
  const bool known = ReadExtras(a.dcmi, a.id, &extras);
  Line(out, "NPU ID", a.id.card);
  Line(out, "Chip ID", a.id.chip);
  Line(out, "Correctable Error Count", known ? std::optional<uint64_t>(extras.pcie_errors) : std::nullopt);
  Line(out, "Link Width", known ? std::optional<uint64_t>(extras.pcie_lanes) : std::nullopt);
  return 0;
}

int DeviceShare(const Asked& a, std::string& out) {
  Line(out, "NPU ID", a.id.card);
  for (const ChipId& id : a.chips) {
    int enabled = 0;
    if (int code = NPU_DCMI(a.dcmi, dcmi_get_device_share_enable, id.card, id.chip, &enabled)) return code;
    Line(out, "Chip ID", id.chip);
    Line(out, "Device-share Status", enabled != 0 ? "True" : "False");
  }
  return 0;
}

int Sensors(const Asked& a, std::string& out) {
  Head(a, out);
  for (const ChipId& id : a.chips) {
    for (const auto& [label, sensor] :
         {std::pair{"Soc Temperature(C)", DCMI_SOC_TEMP_ID}, std::pair{"HBM Temperature(C)", DCMI_HBM_TEMP_ID},
          std::pair{"NDie Temperature(C)", DCMI_N_DIE_TEMP_ID}}) {
      dcmi_sensor_info value{};
      const int code = NPU_DCMI(a.dcmi, dcmi_get_device_sensor_info, id.card, id.chip, sensor, &value);
      Line(out, label, If(code, value.iint));
    }
    Line(out, "Chip ID", id.chip);
  }
  return 0;
}

int SystemTime(const Asked& a, std::string& out) {
  unsigned seconds = 0;
  if (int code = NPU_DCMI(a.dcmi, dcmi_get_device_system_time, a.id.card, a.id.chip, &seconds)) return code;
  const std::time_t time = seconds;
  std::tm tm{};
  gmtime_r(&time, &tm);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S", &tm);
  Line(out, "NPU ID", a.id.card);
  Line(out, "Chip ID", a.id.chip);
  Line(out, "System Time", text.data());
  return 0;
}

// Chips are not divided.
int VirtualChips(const Asked& a, std::string& out) {
  if (int code = Known(a)) return code;
  Line(out, "NPU ID", a.id.card);
  Line(out, "Chip ID", a.id.chip);
  Line(out, "vNPU Count", 0);
  return 0;
}

int VirtualMode(const Asked& a, std::string& out) {
  if (int code = Known(a)) return code;
  Line(out, "vnpu-mode", "docker");
  return 0;
}

int VirtualRecover(const Asked& a, std::string& out) {
  if (int code = Known(a)) return code;
  Line(out, "vnpu config recover mode", "Disable");
  return 0;
}

int Hccs(const Asked& a, std::string& out) {
  CardExtras extras;
  if (int code = Known(a)) return code;
  const bool known = ReadExtras(a.dcmi, a.id, &extras);
  Line(out, "NPU ID", a.id.card);
  Line(out, "Chip ID", a.id.chip);
  Line(out, "HCCS Health Status", !known ? "NA" : extras.link_up != 0 ? "OK" : "Abnormal");
  Line(out, "HCCS TX Count", known ? std::optional<uint64_t>(extras.sent_bytes) : std::nullopt);
  Line(out, "HCCS RX Count", known ? std::optional<uint64_t>(extras.received_bytes) : std::nullopt);
  Line(out, "HCCS Retry Count", known ? std::optional<uint64_t>(extras.packets_lost) : std::nullopt);
  return 0;
}

int HccsBandwidth(const Asked& a, std::string& out) {
  constexpr int kWatchMs = 100;
  dcmi_hccs_bandwidth_info info{};
  info.profiling_time = kWatchMs;
  if (int code = NPU_DCMI(a.dcmi, dcmi_get_hccs_link_bandwidth_info, a.id.card, a.id.chip, &info)) return code;
  Line(out, "NPU ID", a.id.card);
  Line(out, "Chip ID", a.id.chip);
  Line(out, "TX Bandwidth(GB/s)", fmt::format("{:.2f}", info.total_txbw));
  Line(out, "RX Bandwidth(GB/s)", fmt::format("{:.2f}", info.total_rxbw));
  return 0;
}

int OpTimeout(const Asked& a, std::string& out) {
  if (int code = Known(a)) return code;
  Line(out, "NPU ID", a.id.card);
  Line(out, "Chip ID", a.id.chip);
  Line(out, "OP Timeout(ms)", 0);  // programs set their own (aclrtSetOpExecuteTimeOut)
  return 0;
}

// Parts that a software card lacks: the block says so and the call succeeds, as it does on a card where they are not
// set up.
template <const char* kLabel, const char* kValue>
int Fixed(const Asked& a, std::string& out) {
  if (int code = Known(a)) return code;
  Line(out, "NPU ID", a.id.card);
  Line(out, "Chip ID", a.id.chip);
  Line(out, kLabel, kValue);
  return 0;
}
constexpr char kNone[] = "NA", kOff[] = "Disable", kTemplates[] = "Template Count", kZero[] = "0",
               kKeys[] = "Key Status", kCert[] = "Certificate", kPeriod[] = "Certificate Alarm Period(day)",
               kCsr[] = "Certificate Request", kRoot[] = "Root Key Status", kLogs[] = "System Log Status",
               kVerify[] = "Custom OP Verify";

const std::map<std::string, Answerer>& Further() {
  static const std::map<std::string, Answerer> kFurther = {
      {"flash", Flash},
      {"ecc-enable", EccEnable},
      {"pcie-err", PcieErrors},
      {"device-share", DeviceShare},
      {"sensors", Sensors},
      {"sys-time", SystemTime},
      {"info-vnpu", VirtualChips},
      {"vnpu-mode", VirtualMode},
      {"vnpu-cfg-recover", VirtualRecover},
      {"template-info", Fixed<kTemplates, kZero>},
      {"key-manage", Fixed<kKeys, kNone>},
      {"tls-cert", Fixed<kCert, kNone>},
      {"tls-cert-period", Fixed<kPeriod, kNone>},
      {"tls-csr-get", Fixed<kCsr, kNone>},
      {"rootkey", Fixed<kRoot, kNone>},
      {"hccs", Hccs},
      {"hccs-bw", HccsBandwidth},
      {"xlink", Hccs},
      {"xlink-bw", HccsBandwidth},
      {"sys-log-info", Fixed<kLogs, kOff>},
      {"op-timeout", OpTimeout},
      {"custom-op-secverify-enable", Fixed<kVerify, kOff>},
      {"custom-op-secverify-mode", Fixed<kVerify, kOff>},
      {"custom-op-secverify-cert", Fixed<kVerify, kNone>},
  };
  return kFurther;
}

}  // namespace

Answerer FindFurther(const std::string& type) {
  const auto found = Further().find(type);
  return found == Further().end() ? nullptr : found->second;
}

bool IsForeign(const std::string& type) {
  static constexpr std::array kForeign = {"mac-addr",
                                          "ip",
                                          "gateway",
                                          "license",
                                          "nve-level",
                                          "p2p-mem-cfg",
                                          "p2p-enable",
                                          "cpu-num-cfg",
                                          "aicpu-config",
                                          "work-mode",
                                          "ssh-enable",
                                          "customized-info",
                                          "mcu-monitor",
                                          "err-count",
                                          "boot-area",
                                          "vnpu-svm",
                                          "first-power-on-date",
                                          "pkcs-enable",
                                          "pwm-mode",
                                          "pwm-duty-ratio",
                                          "boot-select",
                                          "power-state",
                                          "usb",
                                          "system-info",
                                          "nic-info",
                                          "spod-info",
                                          "sio-info",
                                          "disk-power",
                                          "ufs-info",
                                          "low-power",
                                          "port"};
  return std::find(kForeign.begin(), kForeign.end(), type) != kForeign.end();
}

}  // namespace npu::smi
