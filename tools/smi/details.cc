#include "tools/smi/details.h"

#include <fmt/format.h>

#include <array>
#include <map>

#include "tools/smi/block.h"

namespace npu::smi {
namespace {

constexpr int kHbm = 2;  // dcmi_device_type
enum Rate {
  kRateAiCore = 2,
  kRateAiCpu = 3,
  kRateCtrlCpu = 4,
  kRateHbm = 6,
  kRateHbmBandwidth = 10,
  kRateVector = 12,
  kRateNpu = 13,
  kRateCube = 14
};
enum Clock { kClockHbm = 6, kClockAiCoreNow = 7, kClockAiCore = 9 };

std::optional<unsigned> Frequency(const Dcmi& dcmi, ChipId id, Clock clock) {
  unsigned mhz = 0;
  return If(NPU_DCMI(dcmi, dcmi_get_device_frequency, id.card, id.chip, static_cast<dcmi_freq_type>(clock), &mhz), mhz);
}

std::string Watts(const std::optional<int>& deciwatts) {
  return deciwatts ? fmt::format("{:.1f}", *deciwatts / 10.0) : "NA";
}

std::optional<unsigned> Percent(std::optional<uint64_t> used, std::optional<uint64_t> total) {
  if (!used || !total || *total == 0) return std::nullopt;
  return static_cast<unsigned>(*used * 100 / *total);
}

std::string Firmware(const Asked& a) {
  std::array<unsigned char, 64> text{};
  const int code = NPU_DCMI(a.dcmi, dcmi_get_device_component_static_version, a.id.card, a.id.chip,
                            static_cast<dcmi_component_type>(0), text.data(), unsigned{text.size()});
  return code == 0 ? reinterpret_cast<const char*>(text.data()) : "NA";
}

int Board(const Asked& a, std::string& out) {
  dcmi_board_info board{};
  const bool has_board = NPU_DCMI(a.dcmi, dcmi_get_device_board_info, a.id.card, a.id.chip, &board) == 0;
  const std::string board_id = has_board ? fmt::format("0x{:02x}", board.board_id) : "NA";
  dcmi_pcie_info_all pcie{};
  const bool has_pcie = NPU_DCMI(a.dcmi, dcmi_get_device_pcie_info_v2, a.id.card, a.id.chip, &pcie) == 0;
  const auto hex = [&](unsigned value) { return has_pcie ? fmt::format("0x{:04X}", value) : std::string("NA"); };
  Line(out, "NPU ID", a.id.card);
  if (a.chip_given) {
    dcmi_chip_info chip{};
    if (int code = NPU_DCMI(a.dcmi, dcmi_get_device_chip_info, a.id.card, a.id.chip, &chip)) return code;
    Line(out, "Chip ID", a.id.chip);
    Line(out, "Chip Type", Text(chip.chip_type));
    Line(out, "Chip Name", Text(chip.chip_name));
    Line(out, "Chip Version", Text(chip.chip_ver));
    Line(out, "Board ID", board_id);
    Line(out, "PCB ID", "NA");
    Line(out, "BOM ID", has_board ? fmt::format("{}", board.bom_id) : "NA");
    for (const auto& [label, kind] : {std::pair{"VDie ID", VDIE}, std::pair{"NDie ID", NDIE}}) {
      dcmi_die_id die{};
      const int code = NPU_DCMI(a.dcmi, dcmi_get_device_die_v2, a.id.card, a.id.chip, kind, &die);
      Line(out, label,
           code ? std::string("NA")
                : fmt::format("{:08X} {:08X} {:08X} {:08X} {:08X}", die.soc_die[0], die.soc_die[1], die.soc_die[2],
                              die.soc_die[3], die.soc_die[4]));
    }
    Line(out, "Chip Position ID", a.id.chip);
    Line(out, "PCIe Bus Info", BusId(a.dcmi, a.id));
    Line(out, "Firmware Version", Firmware(a));
    return 0;
  }
  dcmi_elabel_info label{};
  if (NPU_DCMI(a.dcmi, dcmi_get_card_elabel_v2, a.id.card, &label) == 0) {
    Line(out, "Product Name", Text(label.product_name));
    Line(out, "Model", Text(label.model));
    Line(out, "Manufacturer", Text(label.manufacturer));
    Line(out, "Serial Number", Text(label.serial_number));
  }
  Line(out, "Software Version", DriverVersion(a.dcmi));
  Line(out, "Firmware Version", Firmware(a));
  dcmi_device_compat compatible{};
  const int compat = NPU_DCMI(a.dcmi, dcmi_get_device_compatibility, a.id.card, a.id.chip, &compatible);
  Line(out, "Compatibility",
       compat != 0                     ? "UNKNOWN"
       : compatible == DCMI_COMPAT_OK  ? "OK"
       : compatible == DCMI_COMPAT_NOK ? "NOT SUPPORT"
                                       : "UNKNOWN");
  Line(out, "Board ID", board_id);
  Line(out, "PCB ID", has_board && board.pcb_id < 26 ? std::string(1, static_cast<char>('A' + board.pcb_id)) : "NA");
  Line(out, "BOM ID", has_board ? fmt::format("{}", board.bom_id) : "NA");
  Line(out, "PCIe Bus Info", BusId(a.dcmi, a.id));
  Line(out, "Slot ID", has_board ? fmt::format("{}", board.slot_id) : "NA");
  Line(out, "Class ID", "NA");
  Line(out, "PCI Vendor ID", hex(pcie.venderid));
  Line(out, "PCI Device ID", hex(pcie.deviceid));
  Line(out, "Subsystem Vendor ID", hex(pcie.subvenderid));
  Line(out, "Subsystem Device ID", hex(pcie.subdeviceid));
  Line(out, "Chip Count", a.chips.size());
  int faulty = 0;
  Line(out, "Chip Fault", If(NPU_DCMI(a.dcmi, dcmi_get_fault_device_num_in_card, a.id.card, &faulty), faulty));
  return 0;
}

int Common(const Asked& a, std::string& out) {
  Line(out, "NPU ID", a.id.card);
  Line(out, "Chip Count", a.chips.size());
  for (const ChipId& id : a.chips) {
    const Chip chip = ReadChip(a.dcmi, id);
    dcmi_chip_info info{};
    const int code = NPU_DCMI(a.dcmi, dcmi_get_device_chip_info, id.card, id.chip, &info);
    out += '\n';
    Line(out, "Chip ID", id.chip);
    Line(out, "Memory Usage Rate(%)", 0);
    Line(out, "HBM Usage Rate(%)", Percent(chip.hbm_used_mb, chip.hbm_total_mb));
    Line(out, "Aicore Usage Rate(%)", chip.aicore_percent);
    Line(out, "Aicore Freq(MHZ)", Frequency(a.dcmi, id, kClockAiCore));
    Line(out, "Aicore curFreq(MHZ)", Frequency(a.dcmi, id, kClockAiCoreNow));
    Line(out, "Aicore Count", If(code, info.aicore_cnt));
    Line(out, "Temperature(C)", chip.temperature_c);
    Line(out, "NPU Real-time Power(W)", Watts(chip.power_dw));
  }
  return 0;
}

int Memory(const Asked& a, std::string& out) {
  dcmi_hbm_info hbm{};
  dcmi_get_memory_info_stru ddr{};
  if (NPU_DCMI(a.dcmi, dcmi_get_device_memory_info_v3, a.id.card, a.id.chip, &ddr) == 0) {
    Head(a, out);
    Line(out, "DDR Capacity(MB)", ddr.memory_size);
    Line(out, "Clock Speed(MHz)", ddr.freq);
    Line(out, "Chip ID", a.id.chip);
    return 0;
  }
  if (int code = NPU_DCMI(a.dcmi, dcmi_get_device_hbm_info, a.id.card, a.id.chip, &hbm)) return code;
  dcmi_hbm_product_info product{};
  const int code = NPU_DCMI(a.dcmi, dcmi_get_device_hbm_product_info, a.id.card, a.id.chip, &product);
  Line(out, "NPU ID", a.id.card);
  Line(out, "Chip Count", a.chips.size());
  out += '\n';
  Line(out, "DDR Capacity(MB)", 0);
  Line(out, "DDR Clock Speed(MHz)", 0);
  Line(out, "HBM Capacity(MB)", hbm.memory_size);
  Line(out, "HBM Clock Speed(MHz)", hbm.freq);
  Line(out, "HBM Temperature(C)", hbm.temp);
  Line(out, "HBM Manufacturer ID", code ? std::string("NA") : fmt::format("0x{:X}", product.manufacturer_id));
  Line(out, "Chip ID", a.id.chip);
  return 0;
}

int Usages(const Asked& a, std::string& out) {
  const Chip chip = ReadChip(a.dcmi, a.id);
  Line(out, "NPU ID", a.id.card);
  Line(out, "Chip Count", a.chips.size());
  out += '\n';
  Line(out, "DDR Capacity(MB)", 0);
  Line(out, "DDR Usage Rate(%)", 0);
  Line(out, "DDR Hugepages Total(page)", 0);
  Line(out, "DDR Hugepages Usage Rate(%)", 0);
  Line(out, "HBM Capacity(MB)", chip.hbm_total_mb);
  Line(out, "HBM Usage Rate(%)", Percent(chip.hbm_used_mb, chip.hbm_total_mb));
  Line(out, "Aicore Usage Rate(%)", chip.aicore_percent);
  Line(out, "Aivector Usage Rate(%)", Utilization(a.dcmi, a.id, kRateVector));
  Line(out, "Aicpu Usage Rate(%)", Utilization(a.dcmi, a.id, kRateAiCpu));
  Line(out, "Ctrlcpu Usage Rate(%)", Utilization(a.dcmi, a.id, kRateCtrlCpu));
  Line(out, "DDR Bandwidth Usage Rate(%)", 0);
  Line(out, "HBM Bandwidth Usage Rate(%)", Utilization(a.dcmi, a.id, kRateHbmBandwidth));
  Line(out, "NPU Utilization(%)", Utilization(a.dcmi, a.id, kRateNpu));
  Line(out, "Aicube Usage Rate(%)", Utilization(a.dcmi, a.id, kRateCube));
  Line(out, "Chip ID", a.id.chip);
  return 0;
}

int Temperature(const Asked& a, std::string& out) {
  int degrees = 0;
  if (int code = NPU_DCMI(a.dcmi, dcmi_get_device_temperature, a.id.card, a.id.chip, &degrees)) return code;
  Line(out, "NPU ID", a.id.card);
  Line(out, "Chip Count", a.chips.size());
  out += '\n';
  Line(out, "NPU Temperature (C)", degrees);
  Line(out, "Chip ID", a.id.chip);
  return 0;
}

int Power(const Asked& a, std::string& out) {
  int deciwatts = 0;
  if (int code = NPU_DCMI(a.dcmi, dcmi_get_device_power_info, a.id.card, a.id.chip, &deciwatts)) return code;
  Line(out, "NPU ID", a.id.card);
  Line(out, "Chip Count", a.chips.size());
  out += '\n';
  Line(out, "NPU Real-time Power(W)", Watts(deciwatts));
  Line(out, "Chip ID", a.id.chip);
  return 0;
}

int Voltage(const Asked& a, std::string& out) {
  unsigned centivolts = 0;
  if (int code = NPU_DCMI(a.dcmi, dcmi_get_device_voltage, a.id.card, a.id.chip, &centivolts)) return code;
  Line(out, "NPU ID", a.id.card);
  Line(out, "Voltage(V)", fmt::format("{:.2f}", centivolts / 100.0));
  return 0;
}

int Health(const Asked& a, std::string& out) {
  unsigned health = 0;
  if (int code = NPU_DCMI(a.dcmi, dcmi_get_device_health, a.id.card, a.id.chip, &health)) return code;
  if (!a.chip_given) {
    Line(out, "Health", HealthWord(health));
    return 0;
  }
  Line(out, "Health Status", HealthWord(health));
  std::array<unsigned, 128> codes{};
  int count = 0;
  NPU_DCMI(a.dcmi, dcmi_get_device_errorcode_v2, a.id.card, a.id.chip, &count, codes.data(), unsigned{codes.size()});
  Line(out, "Error Code", count > 0 ? fmt::format("{:X}", codes[0]) : std::string("NA"));
  std::array<unsigned char, 256> text{};
  const bool told = count > 0 && NPU_DCMI(a.dcmi, dcmi_get_device_errorcode_string, a.id.card, a.id.chip, codes[0],
                                          text.data(), int{text.size()}) == 0;
  Line(out, "Error Information", told ? reinterpret_cast<const char*>(text.data()) : "NA");
  return 0;
}

int Ecc(const Asked& a, std::string& out) {
  Line(out, "NPU ID", a.id.card, 40);
  Line(out, "Chip Count", a.chips.size(), 40);
  for (const ChipId& id : a.chips) {
    dcmi_ecc_info ecc{};
    if (int code =
            NPU_DCMI(a.dcmi, dcmi_get_device_ecc_info, id.card, id.chip, static_cast<dcmi_device_type>(kHbm), &ecc)) {
      return code;
    }
    out += '\n';
    Line(out, "Chip ID", id.chip, 40);
    Line(out, "HBM Single Bit Error Count", ecc.single_bit_error_cnt, 40);
    Line(out, "HBM Double Bit Error Count", ecc.double_bit_error_cnt, 40);
    Line(out, "HBM Single Bit Aggregate Total Err Cnt", ecc.total_single_bit_error_cnt, 40);
    Line(out, "HBM Double Bit Aggregate Total Err Cnt", ecc.total_double_bit_error_cnt, 40);
    Line(out, "HBM Single Bit Isolated Pages Count", ecc.single_bit_isolated_pages_cnt, 40);
    Line(out, "HBM Double Bit Isolated Pages Count", ecc.double_bit_isolated_pages_cnt, 40);
    Line(out, "HBM Single Bit Next Isolated Pages Count", 0, 40);
    Line(out, "HBM Double Bit Next Isolated Pages Count", 0, 40);
  }
  return 0;
}

int Product(const Asked& a, std::string& out) {
  std::array<char, 64> text{};
  if (int code = NPU_DCMI(a.dcmi, dcmi_get_product_type, a.id.card, a.id.chip, text.data(), int{text.size()}))
    return code;
  Line(out, "Product Type", text.data());
  return 0;
}

int ProcessMemory(const Asked& a, std::string& out) {
  if (!a.chip_given) return kInvalid;
  const Chip chip = ReadChip(a.dcmi, a.id);
  for (const Process& p : chip.processes) {
    fmt::format_to(std::back_inserter(out), "\tProcess id:{:<7} Process name:{:<17} Process memory(MB):{}\n", p.pid,
                   p.name, p.memory_bytes / 1024 / 1024);
  }
  if (chip.processes.empty()) out += "\tNo process in device.\n";
  return 0;
}

// Links between all chips of the machine and the processors near to each.
int Topology(const Dcmi& dcmi, std::string& out) {
  static constexpr const char* kLinks[] = {"X", "SYS", "PHB", "HCCS", "PXB", "PIX", "SIO"};
  std::vector<ChipId> chips;
  if (int code = ListChips(dcmi, chips)) return code;
  out += fmt::format("\t{:<10}", "");
  for (size_t i = 0; i < chips.size(); ++i) out += fmt::format(" {:<10}", fmt::format("NPU{}", i));
  out += " CPU Affinity\n";
  for (size_t row = 0; row < chips.size(); ++row) {
    out += fmt::format("\t{:<10}", fmt::format("NPU{}", row));
    for (const ChipId& other : chips) {
      int link = -1;
      const int code = NPU_DCMI(dcmi, dcmi_get_topo_info_by_device_id, chips[row].card, chips[row].chip, other.card,
                                other.chip, &link);
      out += fmt::format(" {:<10}",
                         code == 0 && link >= 0 && link < static_cast<int>(std::size(kLinks)) ? kLinks[link] : "NA");
    }
    std::array<char, 256> cpus{};
    int length = cpus.size();
    const int code =
        NPU_DCMI(dcmi, dcmi_get_affinity_cpu_info_by_device_id, chips[row].card, chips[row].chip, cpus.data(), &length);
    out += fmt::format(" {}\n", code == 0 ? cpus.data() : "NA");
  }
  out +=
      "\nLegend:\n\n  X    = the chip itself\n  HCCS = chip to chip link\n  SIO  = two dies of one chip\n"
      "  PIX  = at most one PCIe switch between\n  PXB  = several PCIe switches between\n"
      "  PHB  = a PCIe host bridge between\n  SYS  = the path crosses sockets\n  NA   = unknown\n";
  return 0;
}

int Remap(const Dcmi& dcmi, const Question& question, std::string& out) {
  unsigned logic = 0;
  if (!question.phy) return kInvalid;
  if (int code = NPU_DCMI(dcmi, dcmi_get_device_logicid_from_phyid, static_cast<unsigned>(*question.phy), &logic))
    return code;
  Line(out, "Chip Physical ID", *question.phy);
  Line(out, "Chip Logic ID", logic);
  return 0;
}

}  // namespace

int ListCards(const Dcmi& dcmi, std::string& out) {
  std::vector<ChipId> chips;
  if (int code = ListChips(dcmi, chips)) return code;
  std::map<int, int> chips_of_card;
  for (const ChipId& id : chips) ++chips_of_card[id.card];
  Line(out, "Total Count", chips_of_card.size());
  for (const auto& [card, count] : chips_of_card) {
    out += '\n';
    Line(out, "NPU ID", card);
    Line(out, "Chip Count", count);
  }
  return 0;
}

int MapChips(const Dcmi& dcmi, std::string& out) {
  std::vector<ChipId> chips;
  if (int code = ListChips(dcmi, chips)) return code;
  bool dies = false;  // products with two dies on a card name their physical ids too
  for (const ChipId& id : chips) dies = dies || id.chip > 0;
  out += fmt::format("\t{:<30} {:<30} {:<30} ", "NPU ID", "Chip ID", "Chip Logic ID");
  if (dies) out += fmt::format("{:<30} ", "Chip Phy-ID");
  out += fmt::format("{:<30}\n", "Chip Name");
  for (const ChipId& id : chips) {
    int logic = 0;
    dcmi_chip_info info{};
    const auto logic_id = If(NPU_DCMI(dcmi, dcmi_get_device_logic_id, &logic, id.card, id.chip), logic);
    const bool named = NPU_DCMI(dcmi, dcmi_get_device_chip_info, id.card, id.chip, &info) == 0;
    out += fmt::format("\t{:<30} {:<30} {:<30} ", id.card, id.chip, logic_id ? fmt::format("{}", *logic_id) : "-");
    if (dies) {
      unsigned phy = 0;
      const bool known =
          logic_id && NPU_DCMI(dcmi, dcmi_get_device_phyid_from_logicid, static_cast<unsigned>(*logic_id), &phy) == 0;
      out += fmt::format("{:<30} ", known ? fmt::format("{}", phy) : "-");
    }
    const std::string type = named ? Text(info.chip_type) : "", name = named ? Text(info.chip_name) : "NA";
    out += named && !name.starts_with(type) ? type + " " + name + "\n" : name + "\n";
  }
  return 0;
}

int Answer(const Dcmi& dcmi, const Question& question, std::string& out) {
  if (question.type == "topo") return Topology(dcmi, out);
  if (question.type == "phyid-remap") return Remap(dcmi, question, out);
  static const std::map<std::string, Answerer> kTypes = {
      {"board", Board},      {"common", Common},   {"memory", Memory},         {"usages", Usages},
      {"temp", Temperature}, {"power", Power},     {"volt", Voltage},          {"health", Health},
      {"ecc", Ecc},          {"product", Product}, {"proc-mem", ProcessMemory}};
  const auto known = kTypes.find(question.type);
  const Answerer answer = known != kTypes.end() ? known->second : FindFurther(question.type);
  if (answer == nullptr) return IsForeign(question.type) ? kNotSupported : kUnknownType;
  if (!question.card) return kInvalid;
  std::vector<ChipId> all, chips;
  if (int code = ListChips(dcmi, all)) return code;
  for (const ChipId& id : all) {
    if (id.card == *question.card && (!question.chip || id.chip == *question.chip)) chips.push_back(id);
  }
  if (chips.empty()) return kInvalid;
  return answer({dcmi, chips[0], question.chip.has_value(), chips}, out);
}

}  // namespace npu::smi
