#include "tools/hccn/hccn.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cstdio>
#include <ctime>
#include <map>
#include <optional>

#include "base/extras/port.h"
#include "tools/smi/query.h"

namespace npu::hccn {
namespace {

using smi::ChipId;
using smi::Dcmi;

constexpr int kNoAddress = -8014;  // DCMI_ERR_CODE_FILE_OPERATE_FAIL: its file has none, or none that is an address

constexpr const char* kHelp =
    "Usage: hccn_tool -i DEVICE QUESTION -g\n"
    "  -ip          address and netmask\n"
    "  -link        link status\n"
    "  -link_stat   how often the link came up\n"
    "  -speed       speed of the port\n"
    "  -bandwidth   traffic in the next moment\n"
    "  -optical     the optical module\n"
    "  -stat        packet counters\n"
    "  -net_health  reachability\n"
    "  -gateway, -mtu, -mac, -lldp, -netdetect, -tls   as set up\n";

struct Port {
  Dcmi& dcmi;
  ChipId id;
  int device;
  CardExtras extras;
  bool has_extras = false;
};

using Answer = int (*)(Port&);

std::string Text(const dcmi_ip_addr& address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const int family = address.ip_type == DCMI_IPADDR_TYPE_V6 ? AF_INET6 : AF_INET;
  return inet_ntop(family, &address.u_addr, text.data(), text.size()) == nullptr ? "NA" : text.data();
}

int Ip(Port& port) {
  dcmi_ip_addr ip{}, mask{};
  if (int code = NPU_DCMI(port.dcmi, dcmi_get_device_ip, port.id.card, port.id.chip, DCMI_ROCE_PORT, 0, &ip, &mask)) {
    if (code == kNoAddress)
      std::puts("hccn_tool: the driver has no valid address of this device; see /etc/hccn.conf (ANYNPU_HCCN_CONF).");
    return code;
  }
  fmt::print("ipaddr:{}\nnetmask:{}\n", Text(ip), Text(mask));
  return 0;
}

int Health(Port& port, dcmi_rdfx_detect_result* result) {
  return NPU_DCMI(port.dcmi, dcmi_get_device_network_health, port.id.card, port.id.chip, result);
}

int Link(Port& port) {
  dcmi_rdfx_detect_result health{};
  if (int code = Health(port, &health)) return code;
  fmt::print("link status: {}\n", health == DCMI_RDFX_DETECT_OK ? "UP" : "DOWN");
  return 0;
}

int NetHealth(Port& port) {
  static constexpr const char* kWords[] = {"Success",     "Socket fail",   "Receive timeout",
                                           "Unreachable", "Time exceeded", "Detect fault",
                                           "Init",        "Thread error",  "Detect ip set"};
  dcmi_rdfx_detect_result health{};
  if (int code = Health(port, &health)) return code;
  const auto n = static_cast<size_t>(health);
  fmt::print("net health status: {}\n", n < std::size(kWords) ? kWords[n] : "Unknown");
  return 0;
}

int LinkStat(Port& port) {
  dcmi_rdfx_detect_result health{};
  if (int code = Health(port, &health)) return code;
  if (!port.has_extras) return smi::kNotSupported;
  std::array<char, 64> now{};
  const std::time_t seconds = std::time(nullptr);
  std::tm tm{};
  localtime_r(&seconds, &tm);
  std::strftime(now.data(), now.size(), "%a %b %e %H:%M:%S %Y", &tm);
  fmt::print("[device {0}]current time : {1}\n[device {0}]link up count : {2}\n[device {0}]link down count : {3}\n",
             port.device, now.data(), port.extras.link_ups + 1, port.extras.link_downs);  // it came up with the machine
  return 0;
}

int Speed(Port& port) {
  dcmi_rdfx_detect_result health{};
  if (int code = Health(port, &health)) return code;
  fmt::print("Speed: {} Mb/s\n", kPortMegabitsPerS);
  return 0;
}

int Bandwidth(Port& port) {
  constexpr int kWatchMs = 100;
  constexpr double kMbInGb = 1000;
  dcmi_hccs_bandwidth_info info{};
  info.profiling_time = kWatchMs;
  if (int code = NPU_DCMI(port.dcmi, dcmi_get_hccs_link_bandwidth_info, port.id.card, port.id.chip, &info)) return code;
  fmt::print("Bandwidth TX: {:.2f} MB/sec\nBandwidth RX: {:.2f} MB/sec\n", info.total_txbw * kMbInGb,
             info.total_rxbw * kMbInGb);
  return 0;
}

int Optical(Port& port) {
  dcmi_rdfx_detect_result health{};
  if (int code = Health(port, &health)) return code;
  if (!port.has_extras) return smi::kNotSupported;
  const OpticalModule module = OpticalModuleOf(port.extras);
  fmt::print("optical info:\npresent : present\ntype : software\ntemperature : {:.0f} C\nVcc : {:.2f} mV\n",
             module.temperature_c, module.supply_mv);
  for (size_t i = 0; i < kOpticalLanes; ++i) fmt::print("Tx_Power{} : {:.4f} mW\n", i, module.send_mw[i]);
  for (size_t i = 0; i < kOpticalLanes; ++i) fmt::print("Rx_Power{} : {:.4f} mW\n", i, module.receive_mw[i]);
  return 0;
}

int Stat(Port& port) {
  dcmi_rdfx_detect_result health{};
  if (int code = Health(port, &health)) return code;
  if (!port.has_extras) return smi::kNotSupported;
  fmt::print("packet statistics:\n");
  for (const auto& [name, value] : PortCounters(port.extras)) fmt::print("{}:{}\n", name, value);
  return 0;
}

// What is not set up on a software port; the text is what an untouched port shows.
template <const char* kText>
int Untouched(Port& port) {
  dcmi_rdfx_detect_result health{};
  if (int code = Health(port, &health)) return code;
  std::puts(kText);
  return 0;
}
constexpr char kNoGateway[] = "default gateway:0.0.0.0", kMtu[] = "mtu:1500",
               kNoDetect[] = "netdetect address: 0.0.0.0", kNoLldp[] = "lldp: no neighbour",
               kTls[] = "tls switch[0](0:disable, 1:enable)";

int Mac(Port& port) {
  dcmi_die_id die{};
  if (int code = NPU_DCMI(port.dcmi, dcmi_get_device_die_v2, port.id.card, port.id.chip, NDIE, &die)) return code;
  // Of the locally administered range, made from the die's id.
  const unsigned id = die.soc_die[0];
  fmt::print("mac addr: 02:00:{:02x}:{:02x}:{:02x}:{:02x}\n", id >> 24, id >> 16 & 255, id >> 8 & 255, id & 255);
  return 0;
}

const std::map<std::string, Answer>& Questions() {
  static const std::map<std::string, Answer> kQuestions = {{"-ip", Ip},
                                                           {"-link", Link},
                                                           {"-link_stat", LinkStat},
                                                           {"-speed", Speed},
                                                           {"-stat", Stat},
                                                           {"-optical", Optical},
                                                           {"-bandwidth", Bandwidth},
                                                           {"-net_health", NetHealth},
                                                           {"-mac", Mac},
                                                           {"-mtu", Untouched<kMtu>},
                                                           {"-gateway", Untouched<kNoGateway>},
                                                           {"-netdetect", Untouched<kNoDetect>},
                                                           {"-lldp", Untouched<kNoLldp>},
                                                           {"-tls", Untouched<kTls>}};
  return kQuestions;
}

int Usage() {
  std::fputs(kHelp, stdout);
  return 1;
}

}  // namespace

int Main(int argc, char** argv) {
  std::optional<int> device;
  Answer answer = nullptr;
  bool get = false;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "-h" || word == "--help") {
      std::fputs(kHelp, stdout);
      return 0;
    }
    if (word == "-i" && i + 1 < argc) {
      int number = -1;
      const std::string text = argv[++i];
      const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
      if (error != std::errc() || stop != text.data() + text.size() || number < 0) return Usage();
      device = number;
    } else if (word == "-g") {
      get = true;
    } else if (word == "-s") {
      std::puts("hccn_tool: setting is not supported; write addresses into /etc/hccn.conf (ANYNPU_HCCN_CONF).");
      return 1;
    } else if (const auto found = Questions().find(word); found != Questions().end() && answer == nullptr) {
      answer = found->second;
    } else {
      return Usage();
    }
  }
  if (!device || answer == nullptr || !get) return Usage();
  Dcmi dcmi;
  if (int code = dcmi.Open()) {
    std::printf("dcmi module initialize failed. ret is %d\n", code);
    return 1;
  }
  unsigned logic = 0;
  Port port{dcmi, {}, *device, {}};
  int code = NPU_DCMI(dcmi, dcmi_get_device_logicid_from_phyid, static_cast<unsigned>(*device), &logic);
  if (code == 0) code = NPU_DCMI(dcmi, dcmi_get_card_id_device_id_from_logicid, &port.id.card, &port.id.chip, logic);
  if (code != 0) {
    std::printf("hccn_tool: there is no device %d.\n", *device);
    return 1;
  }
  port.has_extras = smi::ReadExtras(dcmi, port.id, &port.extras);
  code = answer(port);
  if (code == smi::kNotSupported) std::puts("hccn_tool: the card has no network port.");
  if (code != 0 && code != smi::kNotSupported) std::printf("hccn_tool: the driver answers %d.\n", code);
  return code == 0 ? 0 : 1;
}

}  // namespace npu::hccn
