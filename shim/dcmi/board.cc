// Boards, slots and what hangs on them: identity beyond the chip itself.
#include <fmt/format.h>
#include <unistd.h>

#include <ctime>

#include "device/faults/faults.h"
#include "device/figures/control.h"
#include "gen/calls/dcmi.h"
#include "gen/fault_errors.h"
#include "shim/dcmi/chips.h"

namespace npu::calls {

using namespace npu::dcmi;  // NOLINT: the adapters of this library

namespace {

// No real board has this number, so clients that know boards by it take the general way.
constexpr unsigned kBoardId = 0xF0;

dcmi_board_info BoardOf(int card) {
  return {.board_id = kBoardId, .pcb_id = 0, .bom_id = 1, .slot_id = static_cast<unsigned>(card)};
}

Status NeedRoot(const char* function) {
  if (geteuid() == 0) return {};
  return Error(Code::kNoPermission, "{}: only root may do this.", function).Remedy("Call it as root.");
}

// A chip that nobody uses: what a reset needs.
Result<Chip> Unused(const char* function, int card, int chip) {
  NPU_TRY(NeedRoot(function));
  NPU_ASSIGN(Chip found, FindChip(function, card, chip));
  if (found.state().processes.empty()) return found;
  return Error(fault::kOccupied, "{}: process {} uses the chip.", function, found.state().processes[0].pid)
      .Remedy("End the processes that npu-smi info shows first.");
}

}  // namespace

Status dcmi_get_card_board_info(int card_id, dcmi_board_info* board_info) {
  NPU_TRY(NeedPointers("dcmi_get_card_board_info", {board_info}));
  NPU_TRY(FindCard("dcmi_get_card_board_info", card_id).status());
  *board_info = BoardOf(card_id);
  return {};
}

Status dcmi_get_device_board_info(int card_id, int device_id, dcmi_board_info* board_info) {
  NPU_TRY(NeedPointers("dcmi_get_device_board_info", {board_info}));
  NPU_TRY(FindChip("dcmi_get_device_board_info", card_id, device_id).status());
  *board_info = BoardOf(card_id);
  return {};
}

Status dcmi_get_device_board_id(int card_id, int device_id, unsigned int* board_id) {
  NPU_TRY(NeedPointers("dcmi_get_device_board_id", {board_id}));
  NPU_TRY(FindChip("dcmi_get_device_board_id", card_id, device_id).status());
  *board_id = kBoardId;
  return {};
}

Status dcmi_get_mainboard_id(int card_id, int device_id, unsigned int* mainboard_id) {
  NPU_TRY(NeedPointers("dcmi_get_mainboard_id", {mainboard_id}));
  NPU_TRY(FindChip("dcmi_get_mainboard_id", card_id, device_id).status());
  *mainboard_id = kBoardId;
  return {};
}

Status dcmi_get_card_pcie_info(int card_id, char* pcie_info, int pcie_info_len) {
  NPU_ASSIGN(const World world, FindCard("dcmi_get_card_pcie_info", card_id));
  return CopyText("dcmi_get_card_pcie_info", device::BusId(card_id * world->profile->dies_per_card), pcie_info,
                  pcie_info_len < 0 ? 0 : static_cast<size_t>(pcie_info_len));
}

Status dcmi_get_card_pcie_slot(int card_id, int* pcie_slot) {
  NPU_TRY(NeedPointers("dcmi_get_card_pcie_slot", {pcie_slot}));
  NPU_TRY(FindCard("dcmi_get_card_pcie_slot", card_id).status());
  *pcie_slot = card_id;
  return {};
}

Status dcmi_get_device_chip_slot(int card_id, int device_id, int* chip_pos_id) {
  NPU_TRY(NeedPointers("dcmi_get_device_chip_slot", {chip_pos_id}));
  NPU_TRY(FindChip("dcmi_get_device_chip_slot", card_id, device_id).status());
  *chip_pos_id = device_id;
  return {};
}

Status dcmi_get_device_component_static_version(int card_id, int device_id, dcmi_component_type component_type,
                                                unsigned char* version_str, unsigned int len) {
  constexpr const char* kName = "dcmi_get_device_component_static_version";
  NPU_ASSIGN(const Chip chip, FindChip(kName, card_id, device_id));
  if (static_cast<int>(component_type) < 0) {
    return Error(Code::kInvalidParam, "{}: component_type is {}.", kName, static_cast<int>(component_type));
  }
  // There is no firmware: what acts as each component came with the driver.
  return CopyText(kName, chip.world->driver, reinterpret_cast<char*>(version_str), len);
}

Status dcmi_get_device_hbm_product_info(int card_id, int device_id, dcmi_hbm_product_info* hbm_product_info) {
  NPU_TRY(NeedPointers("dcmi_get_device_hbm_product_info", {hbm_product_info}));
  NPU_ASSIGN(const Chip chip, FindChip("dcmi_get_device_hbm_product_info", card_id, device_id));
  if (chip.profile().ddr) return npu::Unsupported("dcmi_get_device_hbm_product_info", "the chip has no HBM");
  *hbm_product_info = {};  // no maker has the number 0
  return {};
}

Status dcmi_get_product_type(int card_id, int device_id, char* product_type_str, int buf_size) {
  NPU_TRY(NeedPointers("dcmi_get_product_type", {product_type_str}));
  NPU_ASSIGN(const Chip chip, FindChip("dcmi_get_product_type", card_id, device_id));
  if (!chip.profile().ddr) return npu::Unsupported("dcmi_get_product_type", "a chip of this type has no product text");
  return CopyText("dcmi_get_product_type", "Atlas 300I Pro", product_type_str,
                  buf_size < 0 ? 0 : static_cast<size_t>(buf_size));
}

Status dcmi_get_npu_work_mode(int card_id, unsigned char* work_mode) {
  NPU_TRY(NeedPointers("dcmi_get_npu_work_mode", {work_mode}));
  NPU_TRY(FindCard("dcmi_get_npu_work_mode", card_id).status());
  *work_mode = 1;  // SMP: one system on all cards
  return {};
}

Status dcmi_get_netdev_brother_device(int card_id, int device_id, int* brother_card_id) {
  NPU_TRY(NeedPointers("dcmi_get_netdev_brother_device", {brother_card_id}));
  NPU_ASSIGN(const Chip chip, FindChip("dcmi_get_netdev_brother_device", card_id, device_id));
  return npu::Unsupported("dcmi_get_netdev_brother_device", "no two cards of this type share a network port");
}

Status dcmi_get_pcie_info(int card_id, int device_id, dcmi_tag_pcie_idinfo* pcie_idinfo) {
  // The oldest name; clients pass the struct of dcmi_get_device_pcie_info.
  return calls::dcmi_get_device_pcie_info(card_id, device_id, reinterpret_cast<dcmi_pcie_info*>(pcie_idinfo));
}

Status dcmi_get_device_system_time(int card_id, int device_id, unsigned int* time) {
  NPU_TRY(NeedPointers("dcmi_get_device_system_time", {time}));
  NPU_TRY(AskChip("dcmi_get_device_system_time", card_id, device_id).status());
  *time = static_cast<unsigned>(std::time(nullptr));
  return {};
}

Status dcmi_get_device_outband_channel_state(int card_id, int device_id, int* channel_state) {
  NPU_TRY(NeedPointers("dcmi_get_device_outband_channel_state", {channel_state}));
  NPU_TRY(FindChip("dcmi_get_device_outband_channel_state", card_id, device_id).status());
  *channel_state = 1;
  return {};
}

Status dcmi_get_device_p2p_enable(int card_id, int device_id, int* enable_flag) {
  NPU_TRY(NeedPointers("dcmi_get_device_p2p_enable", {enable_flag}));
  NPU_TRY(FindChip("dcmi_get_device_p2p_enable", card_id, device_id).status());
  *enable_flag = 1;
  return {};
}

Status dcmi_get_device_share_enable(int card_id, int device_id, int* enable_flag) {
  NPU_TRY(NeedPointers("dcmi_get_device_share_enable", {enable_flag}));
  NPU_ASSIGN(const Chip chip, FindChip("dcmi_get_device_share_enable", card_id, device_id));
  *enable_flag = chip.state().shared ? 1 : 0;
  return {};
}

Status dcmi_set_device_share_enable(int card_id, int device_id, int enable_flag) {
  NPU_TRY(NeedRoot("dcmi_set_device_share_enable"));
  NPU_ASSIGN(const Chip chip, FindChip("dcmi_set_device_share_enable", card_id, device_id));
  if (enable_flag != 0 && enable_flag != 1) {
    return Error(Code::kInvalidParam, "dcmi_set_device_share_enable: enable_flag is {}; 0 and 1 exist.", enable_flag);
  }
  Forget();
  return device::SetSharing(chip.world->name, chip.logic, enable_flag == 1 ? device::kShared : device::kExclusive);
}

Status dcmi_set_device_clear_ecc_statistics_info(int card_id, int device_id) {
  NPU_TRY(NeedRoot("dcmi_set_device_clear_ecc_statistics_info"));
  NPU_ASSIGN(const Chip chip, FindChip("dcmi_set_device_clear_ecc_statistics_info", card_id, device_id));
  Forget();
  return device::ClearEcc(chip.world->name, chip.logic);
}

Status dcmi_set_device_reset(int card_id, int device_id, dcmi_reset_channel channel_type) {
  constexpr const char* kName = "dcmi_set_device_reset";
  if (static_cast<int>(channel_type) != 0 && static_cast<int>(channel_type) != 1) {
    return Error(Code::kInvalidParam, "{}: channel_type is {}; 0 (out of band) and 1 (in band) exist.", kName,
                 static_cast<int>(channel_type));
  }
  NPU_ASSIGN(const Chip chip, Unused(kName, card_id, device_id));
  Forget();
  return device::ResetCard(chip.world->name, chip.logic);
}

Status dcmi_pre_reset_soc(int card_id, int device_id) {
  return Unused("dcmi_pre_reset_soc", card_id, device_id).status();
}

Status dcmi_rescan_soc(int card_id, int device_id) {
  NPU_TRY(NeedRoot("dcmi_rescan_soc"));
  return FindChip("dcmi_rescan_soc", card_id, device_id).status();
}

Status dcmi_get_device_errorcode_string(int card_id, int device_id, unsigned int error_code, unsigned char* error_info,
                                        int buf_size) {
  constexpr const char* kName = "dcmi_get_device_errorcode_string";
  NPU_TRY(NeedPointers(kName, {error_info}));
  NPU_TRY(FindChip(kName, card_id, device_id).status());
  std::string_view text = "device fault";
  for (const device::FaultFacts& facts : device::AllFaultFacts()) {
    if (facts.dcmi_code == error_code && error_code != 0) text = facts.event;
  }
  return CopyText(kName, text, reinterpret_cast<char*>(error_info), buf_size < 0 ? 0 : static_cast<size_t>(buf_size));
}

}  // namespace npu::calls
