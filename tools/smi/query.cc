#include "tools/smi/query.h"

#include <fmt/format.h>

#include <array>
#include <fstream>

namespace npu::smi {
namespace {

constexpr int kAiCore = 2;  // selector of dcmi_get_device_utilization_rate
constexpr int kMaxCards = 64, kMaxProcesses = 64;

std::string ProcessName(int pid) {
  std::ifstream comm(fmt::format("/proc/{}/comm", pid));
  std::string name;
  std::getline(comm, name);
  return name.empty() ? "NA" : name;
}

std::vector<Process> ReadProcesses(const Dcmi& dcmi, ChipId id) {
  std::array<dcmi_proc_mem_info, kMaxProcesses> list{};
  int count = 0;
  std::vector<Process> processes;
  if (NPU_DCMI(dcmi, dcmi_get_device_resource_info, id.card, id.chip, list.data(), &count) != 0) return processes;
  for (int i = 0; i < count && i < kMaxProcesses; ++i) {
    processes.push_back({list[i].proc_id, ProcessName(list[i].proc_id), list[i].proc_mem_usage});
  }
  return processes;
}

}  // namespace

int ListChips(const Dcmi& dcmi, std::vector<ChipId>& chips) {
  std::array<int, kMaxCards> cards{};
  int card_count = 0;
  if (dcmi.second()) {
    using List = int (*)(int*, int*, int);
    if (int code =
            dcmi.Call("dcmiv2_get_device_list", static_cast<List>(nullptr), cards.data(), &card_count, kMaxCards))
      return code;
    for (int i = 0; i < card_count && i < kMaxCards; ++i) chips.push_back({cards[i], 0});
    return chips.empty() ? kNoDevice : 0;
  }
  if (int code = NPU_DCMI(dcmi, dcmi_get_card_list, &card_count, cards.data(), kMaxCards)) return code;
  for (int i = 0; i < card_count && i < kMaxCards; ++i) {
    int chip_count = 0;
    if (int code = NPU_DCMI(dcmi, dcmi_get_device_num_in_card, cards[i], &chip_count)) return code;
    for (int chip = 0; chip < chip_count; ++chip) chips.push_back({cards[i], chip});
  }
  return chips.empty() ? kNoDevice : 0;
}

std::optional<unsigned> Utilization(const Dcmi& dcmi, ChipId id, int kind) {
  unsigned percent = 0;
  return If(NPU_DCMI(dcmi, dcmi_get_device_utilization_rate, id.card, id.chip, kind, &percent), percent);
}

std::string BusId(const Dcmi& dcmi, ChipId id) {
  dcmi_pcie_info_all pcie{};
  if (NPU_DCMI(dcmi, dcmi_get_device_pcie_info_v2, id.card, id.chip, &pcie) != 0) return "NA";
  return fmt::format("{:04X}:{:02X}:{:02X}.{:X}", static_cast<unsigned>(pcie.domain), pcie.bdf_busid, pcie.bdf_deviceid,
                     pcie.bdf_funcid);
}

bool ReadExtras(const Dcmi& dcmi, ChipId id, CardExtras* extras) {
  unsigned size = sizeof *extras;
  return NPU_DCMI(dcmi, dcmi_get_device_info, id.card, id.chip, static_cast<dcmi_main_cmd>(kExtrasMainCommand),
                  kExtrasSubCommand, static_cast<void*>(extras), &size) == 0;
}

std::string DriverVersion(const Dcmi& dcmi) {
  std::array<char, 64> text{};
  return NPU_DCMI(dcmi, dcmi_get_driver_version, text.data(), unsigned{text.size()}) == 0 ? text.data() : "NA";
}

Chip ReadChip(const Dcmi& dcmi, ChipId id) {
  Chip chip{.card = id.card, .chip = id.chip, .logic = id.card};
  NPU_DCMI(dcmi, dcmi_get_device_logic_id, &chip.logic, id.card, id.chip);
  dcmi_chip_info info{};
  chip.name = NPU_DCMI(dcmi, dcmi_get_device_chip_info, id.card, id.chip, &info) == 0 ? Text(info.chip_name) : "NA";
  unsigned health = 0;
  chip.health = If(NPU_DCMI(dcmi, dcmi_get_device_health, id.card, id.chip, &health), health);
  int power = 0, temperature = 0;
  chip.power_dw = If(NPU_DCMI(dcmi, dcmi_get_device_power_info, id.card, id.chip, &power), power);
  chip.temperature_c = If(NPU_DCMI(dcmi, dcmi_get_device_temperature, id.card, id.chip, &temperature), temperature);
  chip.aicore_percent = Utilization(dcmi, id, kAiCore);
  dcmi_hbm_info hbm{};
  if (NPU_DCMI(dcmi, dcmi_get_device_hbm_info, id.card, id.chip, &hbm) == 0) {
    chip.hbm_used_mb = hbm.memory_usage;
    chip.hbm_total_mb = hbm.memory_size;
  }
  int dies = 0;
  if (NPU_DCMI(dcmi, dcmi_get_device_num_in_card, id.card, &dies) == 0 && dies > 1) {
    unsigned phy = 0;
    if (NPU_DCMI(dcmi, dcmi_get_device_phyid_from_logicid, static_cast<unsigned>(chip.logic), &phy) == 0)
      chip.phy = static_cast<int>(phy);
  }
  dcmi_get_memory_info_stru ddr{};
  if (!chip.hbm_total_mb && NPU_DCMI(dcmi, dcmi_get_device_memory_info_v3, id.card, id.chip, &ddr) == 0) {
    chip.memory_total_mb = ddr.memory_size;
    chip.memory_used_mb = ddr.memory_size - ddr.memory_available;
  }
  chip.bus_id = BusId(dcmi, id);
  chip.processes = ReadProcesses(dcmi, id);
  return chip;
}

int ReadSnapshot(const Dcmi& dcmi, Snapshot& snapshot) {
  std::vector<ChipId> ids;
  if (int code = ListChips(dcmi, ids)) return code;
  // npu-smi belongs to the driver and carries its version.
  snapshot.driver_version = snapshot.tool_version = DriverVersion(dcmi);
  for (const ChipId& id : ids) snapshot.chips.push_back(ReadChip(dcmi, id));
  return 0;
}

}  // namespace npu::smi
