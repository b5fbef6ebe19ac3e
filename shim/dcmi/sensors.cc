// Voltages, sensors and units that a software card has by its model or not at all.
#include <fmt/format.h>

#include <cmath>
#include <cstring>

#include "base/extras/card_extras.h"
#include "gen/calls/dcmi.h"
#include "shim/dcmi/chips.h"

namespace npu::calls {

using namespace npu::dcmi;  // NOLINT: the adapters of this library

namespace {

Status Extras(const char* function, const Chip& chip, void* buf, unsigned* size) {
  if (*size < sizeof(CardExtras)) {
    return Error(Code::kInvalidParam, "{}: size is {}, {} bytes are needed.", function, *size, sizeof(CardExtras));
  }
  const device::CardFigures& state = chip.state();
  CardExtras extras;
  extras.link_up = state.link_up ? 1 : 0;
  extras.fragmentation_ppm = static_cast<uint64_t>(std::llround(state.fragmentation_ratio * 1e6));
  extras.link_ups = state.link_ups;
  extras.link_downs = state.link_downs;
  extras.packets_lost = state.packets_lost;
  extras.sent_bytes = state.bytes[static_cast<size_t>(device::Flow::kLinkSend)];
  extras.received_bytes = state.bytes[static_cast<size_t>(device::Flow::kLinkReceive)];
  extras.collectives = state.tasks[static_cast<size_t>(device::Unit::kLink)];
  extras.pcie_errors = state.pcie_errors;
  extras.pcie_lanes = static_cast<uint64_t>(state.pcie_lanes);
  std::memcpy(buf, &extras, sizeof extras);
  *size = sizeof extras;
  return {};
}

}  // namespace

Status dcmi_get_device_voltage(int card_id, int device_id, unsigned int* voltage) {
  NPU_TRY(NeedPointers("dcmi_get_device_voltage", {voltage}));
  NPU_ASSIGN(const Chip chip, AskChip("dcmi_get_device_voltage", card_id, device_id));
  *voltage = static_cast<unsigned>(std::lround(chip.state().voltage_v * 100));
  return {};
}

Status dcmi_get_device_sensor_info(int card_id, int device_id, dcmi_manager_sensor_id sensor_id,
                                   union dcmi_sensor_info* sensor_info) {
  constexpr const char* kName = "dcmi_get_device_sensor_info";
  NPU_TRY(NeedPointers(kName, {sensor_info}));
  NPU_ASSIGN(const Chip chip, AskChip(kName, card_id, device_id));
  *sensor_info = {};
  const int chip_c = static_cast<int>(std::lround(chip.state().chip_c)),
            hbm_c = static_cast<int>(std::lround(chip.state().hbm_c));
  switch (static_cast<int>(sensor_id)) {
    case DCMI_CLUSTER_TEMP_ID:
    case DCMI_PERI_TEMP_ID:
    case DCMI_AICORE0_TEMP_ID:
    case DCMI_AICORE1_TEMP_ID:
    case DCMI_SOC_TEMP_ID:
    case DCMI_N_DIE_TEMP_ID:
      sensor_info->iint = chip_c;
      return {};
    case DCMI_HBM_TEMP_ID:
      sensor_info->iint = hbm_c;
      return {};
    case DCMI_AICORE_TOTAL_PER_ID:
      sensor_info->uint = static_cast<unsigned>(std::lround(chip.state().use_core * 100));
      return {};
    case DCMI_AICORE_BASE_FREQ_ID:
      sensor_info->uint = static_cast<unsigned>(chip.profile().cube_mhz);
      return {};
    case DCMI_NTC_TEMP_ID:
      for (int& thermistor : sensor_info->ntc_tmp) thermistor = chip_c;
      return {};
    default:
      return npu::Unsupported(kName, fmt::format("the chip has no sensor {}", static_cast<int>(sensor_id)));
  }
}

Status dcmi_get_device_aicpu_info(int card_id, int device_id, dcmi_aicpu_info* aicpu_info) {
  constexpr const char* kName = "dcmi_get_device_aicpu_info";
  constexpr unsigned kMhz = 1900;
  NPU_TRY(NeedPointers(kName, {aicpu_info}));
  NPU_ASSIGN(const Chip chip, AskChip(kName, card_id, device_id));
  *aicpu_info = {.max_freq = kMhz, .cur_freq = kMhz, .aicpu_num = static_cast<unsigned>(chip.profile().ai_cpus)};
  return {};  // nothing of ours runs on them
}

Status dcmi_get_device_dvpp_ratio_info(int card_id, int device_id, dcmi_dvpp_ratio* usage) {
  NPU_TRY(NeedPointers("dcmi_get_device_dvpp_ratio_info", {usage}));
  NPU_TRY(AskChip("dcmi_get_device_dvpp_ratio_info", card_id, device_id).status());
  *usage = {};  // no media unit works here
  return {};
}

Status dcmi_get_device_memory_info_v3(int card_id, int device_id, dcmi_get_memory_info_stru* memory_info) {
  constexpr const char* kName = "dcmi_get_device_memory_info_v3";
  NPU_TRY(NeedPointers(kName, {memory_info}));
  NPU_ASSIGN(const Chip chip, AskChip(kName, card_id, device_id));
  if (!chip.profile().ddr) return npu::Unsupported(kName, "the card has no DDR; ask dcmi_get_device_hbm_info");
  const device::CardFigures& state = chip.state();
  *memory_info = {
      .memory_size = state.total_bytes >> 20,
      .memory_available = state.free_bytes >> 20,
      .freq = 0,
      .hugepagesize = 2048,
      .utiliza = state.total_bytes == 0 ? 0 : static_cast<unsigned>(state.used_bytes * 100 / state.total_bytes)};
  return {};
}

Status dcmi_get_memory_info(int card_id, int device_id, dcmi_memory_info_stru* device_memory_info) {
  constexpr const char* kName = "dcmi_get_memory_info";
  NPU_TRY(NeedPointers(kName, {device_memory_info}));
  NPU_ASSIGN(const Chip chip, AskChip(kName, card_id, device_id));
  if (!chip.profile().ddr) return npu::Unsupported(kName, "the card has no DDR; ask dcmi_get_device_hbm_info");
  const device::CardFigures& state = chip.state();
  // Clients of the old name pass the struct of dcmi_memory_info.
  *reinterpret_cast<dcmi_memory_info*>(device_memory_info) = {
      .memory_size = state.total_bytes >> 20,
      .utiliza = state.total_bytes == 0 ? 0 : static_cast<unsigned>(state.used_bytes * 100 / state.total_bytes)};
  return {};
}

Status dcmi_get_hbm_info(int card_id, int device_id, dsmi_hbm_info_stru* device_hbm_info) {
  return calls::dcmi_get_device_hbm_info(card_id, device_id, reinterpret_cast<dcmi_hbm_info*>(device_hbm_info));
}

Status dcmi_get_device_info(int card_id, int device_id, dcmi_main_cmd main_cmd, unsigned int sub_cmd, void* buf,
                            unsigned int* size) {
  constexpr const char* kName = "dcmi_get_device_info";
  NPU_TRY(NeedPointers(kName, {buf, size}));
  NPU_ASSIGN(const Chip chip, FindChip(kName, card_id, device_id));
  if (static_cast<unsigned>(main_cmd) == kExtrasMainCommand && sub_cmd == kExtrasSubCommand)
    return Extras(kName, chip, buf, size);
  return npu::Unsupported(kName, fmt::format("command {} with {} asks about parts that the card does not have",
                                             static_cast<int>(main_cmd), sub_cmd));
}

}  // namespace npu::calls
