#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <mutex>

#include "tools/monitor/collect/collector.h"
#include "tools/monitor/collect/files.h"
#include "tools/monitor/collect/links.h"
#include "tools/monitor/collect/units.h"
#include "tools/smi/dcmi.h"
#include "tools/smi/query.h"

namespace npu::monitor {
namespace {

using smi::Dcmi;
using smi::If;

constexpr int kMaxProcesses = 256, kMaxErrorCodes = 128;
constexpr auto kHbmMemory = static_cast<dcmi_device_type>(2);
enum Rate { kAiCore = 2, kHbmBandwidth = 10, kVector = 12, kWhole = 13, kCube = 14 };
constexpr auto kAiCoreNow = static_cast<dcmi_freq_type>(7);
// Values a driver gives for "cannot be read" in place of an error.
constexpr int kInvalidReading = 0x7ffd, kFailedReading = 0x7fff;

std::optional<double> Share(std::optional<unsigned> percent) {
  return percent && *percent <= 100 ? std::optional<double>(*percent / 100.0) : std::nullopt;
}

class DcmiSource final : public Collector {
 public:
  explicit DcmiSource(const CollectorOptions& options)
      : proc_(options.proc), links_(dcmi_, FindPortTool(options.hccn_tool)) {}

  Reading Read() override {
    Reading reading;
    reading.source = "dcmi";
    if (!opened_) {
      if (const int code = dcmi_.Open(); code != 0) {
        reading.problems.push_back(
            fmt::format("libdcmi.so: {} ({})", dcmi_.Loaded() ? "dcmi_init failed" : "not found", code));
        return reading;
      }
      opened_ = true;
    }
    reading.driver = smi::DriverVersion(dcmi_);
    std::vector<smi::ChipId> ids;
    if (const int code = smi::ListChips(dcmi_, ids); code != 0) {
      reading.problems.push_back(fmt::format("libdcmi.so: the cards cannot be listed ({})", code));
      return reading;
    }
    for (const smi::ChipId& id : ids) reading.cards.push_back(ReadCard(id));
    std::vector<LinkedChip> linked;
    for (const Identity& known : identities_) linked.push_back({known.id, known.logic, known.physical});
    links_.Watch(std::move(linked));
    for (Card& card : reading.cards) links_.Fill(card, reading.problems);
    std::sort(reading.cards.begin(), reading.cards.end(), [](const Card& a, const Card& b) { return a.id < b.id; });
    return reading;
  }

 private:
  // What never changes while a card is there.
  struct Identity {
    smi::ChipId id;
    int logic = 0, physical = 0;
    std::string model, die_id, bus, serial;
  };

  const Identity& IdentityOf(smi::ChipId id) {
    for (const Identity& known : identities_) {
      if (known.id.card == id.card && known.id.chip == id.chip) return known;
    }
    Identity fresh{.id = id, .logic = id.card};
    NPU_DCMI(dcmi_, dcmi_get_device_logic_id, &fresh.logic, id.card, id.chip);
    fresh.physical = fresh.logic;
    if (unsigned physical = 0;
        NPU_DCMI(dcmi_, dcmi_get_device_phyid_from_logicid, static_cast<unsigned>(fresh.logic), &physical) == 0)
      fresh.physical = static_cast<int>(physical);
    dcmi_chip_info chip{};
    if (NPU_DCMI(dcmi_, dcmi_get_device_chip_info, id.card, id.chip, &chip) == 0)
      fresh.model =
          fmt::format("{}-{}-{}", smi::Text(chip.chip_name), smi::Text(chip.chip_type), smi::Text(chip.chip_ver));
    dcmi_die_id die{};
    if (NPU_DCMI(dcmi_, dcmi_get_device_die_v2, id.card, id.chip, VDIE, &die) == 0) {
      fresh.die_id = fmt::format("{:08X}-{:08X}-{:08X}-{:08X}-{:08X}", die.soc_die[0], die.soc_die[1], die.soc_die[2],
                                 die.soc_die[3], die.soc_die[4]);
    }
    fresh.bus = smi::BusId(dcmi_, id);
    dcmi_elabel_info label{};
    if (NPU_DCMI(dcmi_, dcmi_get_card_elabel_v2, id.card, &label) == 0) fresh.serial = smi::Text(label.serial_number);
    identities_.push_back(std::move(fresh));
    return identities_.back();
  }

  Card ReadCard(smi::ChipId id) {
    const Identity& identity = IdentityOf(id);
    Card card{.id = identity.logic,
              .model = identity.model,
              .die_id = identity.die_id,
              .bus = identity.bus,
              .serial = identity.serial};
    int number = 0;
    unsigned count = 0;
    if (NPU_DCMI(dcmi_, dcmi_get_device_health, id.card, id.chip, &count) == 0 && count <= 3) card.health = count;
    card.answers = card.health.has_value();
    const auto sound = [](int value) { return value >= 0 && value != kInvalidReading && value != kFailedReading; };
    if (NPU_DCMI(dcmi_, dcmi_get_device_power_info, id.card, id.chip, &number) == 0 && sound(number))
      card.power_w = WattsFromDeci(number);
    if (NPU_DCMI(dcmi_, dcmi_get_device_temperature, id.card, id.chip, &number) == 0 && sound(number))
      card.temperature_c = number;
    if (NPU_DCMI(dcmi_, dcmi_get_device_voltage, id.card, id.chip, &count) == 0 && sound(static_cast<int>(count)))
      card.voltage_v = count / 100.0;
    if (NPU_DCMI(dcmi_, dcmi_get_device_frequency, id.card, id.chip, kAiCoreNow, &count) == 0) card.core_mhz = count;
    card.core_use = Share(smi::Utilization(dcmi_, id, kAiCore));
    card.vector_use = Share(smi::Utilization(dcmi_, id, kVector));
    card.cube_use = Share(smi::Utilization(dcmi_, id, kCube));
    card.overall_use = Share(smi::Utilization(dcmi_, id, kWhole));
    card.bandwidth_use = Share(smi::Utilization(dcmi_, id, kHbmBandwidth));
    dcmi_hbm_info hbm{};
    if (NPU_DCMI(dcmi_, dcmi_get_device_hbm_info, id.card, id.chip, &hbm) == 0) {
      card.hbm_used_bytes = BytesFromMegabytes(hbm.memory_usage);
      card.hbm_total_bytes = BytesFromMegabytes(hbm.memory_size);
      if (sound(hbm.temp)) card.hbm_temperature_c = hbm.temp;
    }
    dcmi_get_memory_info_stru ddr{};
    if (NPU_DCMI(dcmi_, dcmi_get_device_memory_info_v3, id.card, id.chip, &ddr) == 0 &&
        ddr.memory_available <= ddr.memory_size) {
      card.ddr_total_bytes = BytesFromMegabytes(ddr.memory_size);
      card.ddr_used_bytes = BytesFromMegabytes(ddr.memory_size - ddr.memory_available);
    }
    dcmi_ecc_info ecc{};
    if (NPU_DCMI(dcmi_, dcmi_get_device_ecc_info, id.card, id.chip, kHbmMemory, &ecc) == 0) {
      card.ecc = EccCounts{ecc.enable_flag != 0,
                           ecc.single_bit_error_cnt,
                           ecc.double_bit_error_cnt,
                           ecc.total_single_bit_error_cnt,
                           ecc.total_double_bit_error_cnt,
                           ecc.single_bit_isolated_pages_cnt,
                           ecc.double_bit_isolated_pages_cnt};
    }
    std::array<unsigned, kMaxErrorCodes> codes{};
    if (NPU_DCMI(dcmi_, dcmi_get_device_errorcode_v2, id.card, id.chip, &number, codes.data(),
                 unsigned{kMaxErrorCodes}) == 0)
      card.error_codes.assign(codes.begin(), codes.begin() + std::clamp(number, 0, kMaxErrorCodes));
    dcmi_rdfx_detect_result network{};
    if (NPU_DCMI(dcmi_, dcmi_get_device_network_health, id.card, id.chip, &network) == 0)
      card.link.reachable = static_cast<int>(network) == 0;
    std::array<dcmi_proc_mem_info, kMaxProcesses> processes{};
    if (NPU_DCMI(dcmi_, dcmi_get_device_resource_info, id.card, id.chip, processes.data(), &number) == 0) {
      for (int i = 0; i < std::min(number, kMaxProcesses); ++i) {
        const int pid = processes[i].proc_id;
        card.processes.push_back({pid, ProcessName(proc_, pid), processes[i].proc_mem_usage, ContainerOf(proc_, pid)});
      }
    }
    return card;
  }

  const std::string proc_;
  Dcmi dcmi_;
  bool opened_ = false;
  std::vector<Identity> identities_;
  Links links_;  // after what its thread asks
};

}  // namespace

std::unique_ptr<Collector> DcmiCollector(const CollectorOptions& options) {
  return std::make_unique<DcmiSource>(options);
}

}  // namespace npu::monitor
