// Which cards there are and what they are.
#include <fmt/format.h>

#include "gen/calls/dcmi.h"
#include "shim/dcmi/chips.h"

namespace npu::calls {

using namespace npu::dcmi;  // NOLINT: the adapters of this library

namespace {

constexpr unsigned kVendor = 0x19e5;

unsigned PciDevice(const device::Profile& profile) {
  if (profile.chip.starts_with("310P")) return 0xd500;
  return profile.dies_per_card == 2 ? 0xd803 : 0xd802;
}

// Drivers call a die of the two-die parts by its generation.
std::string_view NameOf(const device::Profile& profile) {
  return profile.dies_per_card == 2 ? "Ascend910" : profile.chip;
}

// A stable number for a chip of a named machine, so that monitors can tell chips apart.
unsigned IdWord(const Chip& chip, int kind, int word) {
  const std::string text = fmt::format("anynpu/{}/{}/{}/{}", chip.world->name, chip.logic, kind, word);
  uint32_t hash = 2166136261u;
  for (unsigned char c : text) hash = (hash ^ c) * 16777619u;
  return hash;
}

Status CardList(const char* function, int* card_num, int* card_list, int list_len) {
  NPU_TRY(NeedPointers(function, {card_num, card_list}));
  NPU_TRY(NeedInit(function));
  NPU_ASSIGN(const World world, LookAtMachine());
  if (world->profile->dcmi_v2) return npu::Unsupported(function, "the driver of this chip serves dcmiv2_ calls");
  const int cards = CardCount(*world);
  if (list_len < cards) {
    return Error(Code::kInvalidParam, "{}: list_len is {}, but there are {} cards.", function, list_len, cards)
        .Remedy("Pass a list of 64 entries.");
  }
  *card_num = cards;
  for (int i = 0; i < cards; ++i) card_list[i] = i;
  return {};
}

Result<int> LogicOf(const char* function, unsigned id) {
  NPU_TRY(NeedInit(function));
  NPU_ASSIGN(const World world, LookAtMachine());
  if (id < world->cards.size()) return static_cast<int>(id);
  return Error(Code::kInvalidParam, "{}: there is no device {}; machine {} has {}.", function, id, world->name,
               world->cards.size());
}

}  // namespace

Status dcmi_init() {
  NPU_TRY(CheckAccess("dcmi_init"));
  NPU_ASSIGN(const World world, LookAtMachine());
  if (world->profile->dcmi_v2) return npu::Unsupported("dcmi_init", "the driver of this chip serves dcmiv2_init");
  MarkInitialised();
  return {};
}

Status dcmi_set_container_service_enable() { return {}; }

Status dcmi_get_card_list(int* card_num, int* card_list, int list_len) {
  return CardList("dcmi_get_card_list", card_num, card_list, list_len);
}

Status dcmi_get_card_num_list(int* card_num, int* card_list, int list_len) {
  return CardList("dcmi_get_card_num_list", card_num, card_list, list_len);
}

Status dcmi_get_device_num_in_card(int card_id, int* device_num) {
  NPU_TRY(NeedPointers("dcmi_get_device_num_in_card", {device_num}));
  NPU_ASSIGN(const World world, FindCard("dcmi_get_device_num_in_card", card_id));
  *device_num = world->profile->dies_per_card;
  return {};
}

Status dcmi_get_device_id_in_card(int card_id, int* device_id_max, int* mcu_id, int* cpu_id) {
  NPU_TRY(NeedPointers("dcmi_get_device_id_in_card", {device_id_max, mcu_id, cpu_id}));
  NPU_ASSIGN(const World world, FindCard("dcmi_get_device_id_in_card", card_id));
  *device_id_max = world->profile->dies_per_card;
  *mcu_id = *cpu_id = -1;  // there is no board controller and no control CPU
  return {};
}

Status dcmi_get_fault_device_num_in_card(int card_id, int* device_num) {
  NPU_TRY(NeedPointers("dcmi_get_fault_device_num_in_card", {device_num}));
  NPU_ASSIGN(const World world, FindCard("dcmi_get_fault_device_num_in_card", card_id));
  *device_num = 0;
  for (const device::CardFigures& state : world->cards) {
    *device_num += state.logic / world->profile->dies_per_card == card_id && state.health >= 2 ? 1 : 0;
  }
  return {};
}

Status dcmi_get_device_type(int card_id, int device_id, dcmi_unit_type* device_type) {
  NPU_TRY(NeedPointers("dcmi_get_device_type", {device_type}));
  NPU_ASSIGN(const Chip chip, FindChip("dcmi_get_device_type", card_id, device_id));
  *device_type = NPU_TYPE;
  return {};
}

Status dcmi_get_device_logic_id(int* device_logic_id, int card_id, int device_id) {
  NPU_TRY(NeedPointers("dcmi_get_device_logic_id", {device_logic_id}));
  NPU_ASSIGN(const Chip chip, FindChip("dcmi_get_device_logic_id", card_id, device_id));
  *device_logic_id = chip.logic;
  return {};
}

Status dcmi_get_card_id_device_id_from_logicid(int* card_id, int* device_id, unsigned int device_logic_id) {
  NPU_TRY(NeedPointers("dcmi_get_card_id_device_id_from_logicid", {card_id, device_id}));
  NPU_ASSIGN(const int logic, LogicOf("dcmi_get_card_id_device_id_from_logicid", device_logic_id));
  NPU_ASSIGN(const World world, LookAtMachine());
  *card_id = logic / world->profile->dies_per_card;
  *device_id = logic % world->profile->dies_per_card;
  return {};
}

Status dcmi_get_device_logicid_from_phyid(unsigned int phyid, unsigned int* logicid) {
  NPU_TRY(NeedPointers("dcmi_get_device_logicid_from_phyid", {logicid}));
  NPU_ASSIGN(const int logic, LogicOf("dcmi_get_device_logicid_from_phyid", phyid));
  *logicid = static_cast<unsigned>(logic);
  return {};
}

Status dcmi_get_device_phyid_from_logicid(unsigned int logicid, unsigned int* phyid) {
  NPU_TRY(NeedPointers("dcmi_get_device_phyid_from_logicid", {phyid}));
  NPU_ASSIGN(const int logic, LogicOf("dcmi_get_device_phyid_from_logicid", logicid));
  *phyid = static_cast<unsigned>(logic);
  return {};
}

Status dcmi_get_driver_version(char* driver_ver, unsigned int len) {
  NPU_ASSIGN(const World world, LookAtMachine());
  return CopyText("dcmi_get_driver_version", world->driver, driver_ver, len);
}

Status dcmi_get_dcmi_version(char* dcmi_ver, unsigned int len) {
  NPU_ASSIGN(const World world, LookAtMachine());
  return CopyText("dcmi_get_dcmi_version", world->driver, dcmi_ver, len);
}

Status dcmi_get_device_chip_info(int card_id, int device_id, dcmi_chip_info* chip_info) {
  NPU_TRY(NeedPointers("dcmi_get_device_chip_info", {chip_info}));
  NPU_ASSIGN(const Chip chip, FindChip("dcmi_get_device_chip_info", card_id, device_id));
  FillField(chip_info->chip_type, "Ascend");
  FillField(chip_info->chip_name, NameOf(chip.profile()));
  FillField(chip_info->chip_ver, "V1");
  chip_info->aicore_cnt = static_cast<unsigned>(chip.profile().ai_cores);
  return {};
}

Status dcmi_get_device_chip_info_v2(int card_id, int device_id, dcmi_chip_info_v2* chip_info) {
  NPU_TRY(NeedPointers("dcmi_get_device_chip_info_v2", {chip_info}));
  NPU_ASSIGN(const Chip chip, FindChip("dcmi_get_device_chip_info_v2", card_id, device_id));
  FillField(chip_info->chip_type, "Ascend");
  FillField(chip_info->chip_name, NameOf(chip.profile()));
  FillField(chip_info->chip_ver, "V1");
  chip_info->aicore_cnt = static_cast<unsigned>(chip.profile().ai_cores);
  FillField(chip_info->npu_name, chip.profile().chip);
  return {};
}

Status dcmi_get_device_pcie_info(int card_id, int device_id, dcmi_pcie_info* pcie_info) {
  NPU_TRY(NeedPointers("dcmi_get_device_pcie_info", {pcie_info}));
  NPU_ASSIGN(const Chip chip, FindChip("dcmi_get_device_pcie_info", card_id, device_id));
  const device::PciAddress address = device::PciOf(chip.logic);
  *pcie_info = {.deviceid = PciDevice(chip.profile()),
                .venderid = kVendor,
                .bdf_deviceid = address.device,
                .bdf_busid = address.bus,
                .bdf_funcid = address.function};
  return {};
}

Status dcmi_get_device_pcie_info_v2(int card_id, int device_id, dcmi_pcie_info_all* pcie_info) {
  NPU_TRY(NeedPointers("dcmi_get_device_pcie_info_v2", {pcie_info}));
  NPU_ASSIGN(const Chip chip, FindChip("dcmi_get_device_pcie_info_v2", card_id, device_id));
  const device::PciAddress address = device::PciOf(chip.logic);
  *pcie_info = {.venderid = kVendor,
                .deviceid = PciDevice(chip.profile()),
                .domain = static_cast<int>(address.domain),
                .bdf_busid = address.bus,
                .bdf_deviceid = address.device,
                .bdf_funcid = address.function};
  return {};
}

Status dcmi_get_device_die_v2(int card_id, int device_id, dcmi_die_type input_type, dcmi_die_id* die_id) {
  NPU_TRY(NeedPointers("dcmi_get_device_die_v2", {die_id}));
  NPU_ASSIGN(const Chip chip, FindChip("dcmi_get_device_die_v2", card_id, device_id));
  if (input_type != NDIE && input_type != VDIE) {
    return Error(Code::kInvalidParam, "dcmi_get_device_die_v2: input_type is {}; 0 (NDie) and 1 (VDie) exist.",
                 int{input_type});
  }
  for (int word = 0; word < 5; ++word) die_id->soc_die[word] = IdWord(chip, input_type, word);
  return {};
}

Status dcmi_get_card_elabel_v2(int card_id, dcmi_elabel_info* elabel_info) {
  NPU_TRY(NeedPointers("dcmi_get_card_elabel_v2", {elabel_info}));
  NPU_ASSIGN(const World world, FindCard("dcmi_get_card_elabel_v2", card_id));
  FillField(elabel_info->product_name, fmt::format("{} (software)", world->profile->soc));
  FillField(elabel_info->model, world->profile->chip);
  FillField(elabel_info->manufacturer, "AnyNPU");
  FillField(elabel_info->manufacturer_date, "");
  FillField(elabel_info->serial_number, fmt::format("anynpu-{}-{}", world->name, card_id));
  return {};
}

Status dcmi_get_device_boot_status(int card_id, int device_id, dcmi_boot_status* boot_status) {
  NPU_TRY(NeedPointers("dcmi_get_device_boot_status", {boot_status}));
  NPU_ASSIGN(const Chip chip, FindChip("dcmi_get_device_boot_status", card_id, device_id));
  *boot_status = DCMI_SYSTEM_START_FINISH;
  return {};
}

Status dcmi_get_device_compatibility(int card_id, int device_id, dcmi_device_compat* compatibility) {
  NPU_TRY(NeedPointers("dcmi_get_device_compatibility", {compatibility}));
  NPU_ASSIGN(const Chip chip, FindChip("dcmi_get_device_compatibility", card_id, device_id));
  *compatibility = DCMI_COMPAT_OK;
  return {};
}

}  // namespace npu::calls
