// What the cards are doing: memory, processes, load, health; and how they are joined.
#include <algorithm>
#include <fstream>

#include "gen/calls/dcmi.h"
#include "shim/dcmi/chips.h"

namespace npu::calls {

using namespace npu::dcmi;  // NOLINT: the adapters of this library

namespace {

constexpr uint64_t kMb = 1 << 20;
constexpr int kMostProcesses = 32;  // the driver's own limit

unsigned HbmPercent(const device::CardSnapshot& state) {
  return state.total_bytes ? static_cast<unsigned>(state.used_bytes * 100 / state.total_bytes) : 0;
}

Status NoSuchKind(const char* function, int kind) {
  return Unsupported(function, fmt::format("kind {} is not measured on this chip", kind));
}

Status NoErrors(const char* function, int card, int chip, int* error_count) {
  NPU_TRY(NeedPointers(function, {error_count}));
  NPU_ASSIGN(const Chip found, FindChip(function, card, chip));
  *error_count = 0;
  return {};
}

Status Load(const char* function, int card, int chip, dcmi_multi_utilization_info* util_info) {
  NPU_TRY(NeedPointers(function, {util_info}));
  NPU_ASSIGN(const Chip found, FindChip(function, card, chip));
  const auto percent = static_cast<unsigned>(found.state().percent);
  *util_info = {.aic_util = percent, .aiv_util = percent, .aicore_util = percent, .npu_util = percent};
  return {};
}

}  // namespace

Status dcmi_get_device_health(int card_id, int device_id, unsigned int* health) {
  NPU_TRY(NeedPointers("dcmi_get_device_health", {health}));
  NPU_ASSIGN(const Chip chip, FindChip("dcmi_get_device_health", card_id, device_id));
  *health = 0;
  return {};
}

Status dcmi_get_device_errorcode(int card_id, int device_id, int* error_count, unsigned int* error_code,
                                 int* error_width) {
  NPU_TRY(NeedPointers("dcmi_get_device_errorcode", {error_code, error_width}));
  *error_width = 0;
  return NoErrors("dcmi_get_device_errorcode", card_id, device_id, error_count);
}

Status dcmi_get_device_errorcode_v2(int card_id, int device_id, int* error_count, unsigned int* error_code_list,
                                    unsigned int list_len) {
  NPU_TRY(NeedPointers("dcmi_get_device_errorcode_v2", {error_code_list}));
  if (list_len == 0)
    return Error(Code::kInvalidParam, "dcmi_get_device_errorcode_v2: list_len is 0.").Remedy("Pass 128 entries.");
  return NoErrors("dcmi_get_device_errorcode_v2", card_id, device_id, error_count);
}

Status dcmi_get_device_power_info(int card_id, int device_id, int* power) {
  NPU_TRY(NeedPointers("dcmi_get_device_power_info", {power}));
  NPU_ASSIGN(const Chip chip, FindChip("dcmi_get_device_power_info", card_id, device_id));
  *power = chip.state().power_dw;
  return {};
}

Status dcmi_get_device_temperature(int card_id, int device_id, int* temperature) {
  NPU_TRY(NeedPointers("dcmi_get_device_temperature", {temperature}));
  NPU_ASSIGN(const Chip chip, FindChip("dcmi_get_device_temperature", card_id, device_id));
  *temperature = chip.state().temp_c;
  return {};
}

Status dcmi_get_device_hbm_info(int card_id, int device_id, dcmi_hbm_info* hbm_info) {
  NPU_TRY(NeedPointers("dcmi_get_device_hbm_info", {hbm_info}));
  NPU_ASSIGN(const Chip chip, FindChip("dcmi_get_device_hbm_info", card_id, device_id));
  const device::CardSnapshot& state = chip.state();
  *hbm_info = {.memory_size = state.total_bytes / kMb,
               .freq = static_cast<unsigned>(chip.profile().hbm_mhz),
               .memory_usage = state.used_bytes / kMb,
               .temp = state.temp_c,
               .bandwith_util_rate = 0};
  return {};
}

Status dcmi_get_device_resource_info(int card_id, int device_id, dcmi_proc_mem_info* proc_info, int* proc_num) {
  NPU_TRY(NeedPointers("dcmi_get_device_resource_info", {proc_info, proc_num}));
  NPU_ASSIGN(const Chip chip, FindChip("dcmi_get_device_resource_info", card_id, device_id));
  const auto& processes = chip.state().processes;
  *proc_num = std::min(static_cast<int>(processes.size()), kMostProcesses);
  for (int i = 0; i < *proc_num; ++i) {
    proc_info[i] = {.proc_id = processes[i].pid, .proc_mem_usage = static_cast<unsigned long>(processes[i].used_bytes)};
  }
  return {};
}

Status dcmi_get_device_utilization_rate(int card_id, int device_id, int input_type, unsigned int* utilization_rate) {
  NPU_TRY(NeedPointers("dcmi_get_device_utilization_rate", {utilization_rate}));
  NPU_ASSIGN(const Chip chip, FindChip("dcmi_get_device_utilization_rate", card_id, device_id));
  enum { kAiCore = 2, kAiCpu = 3, kControlCpu = 4, kHbm = 6, kHbmBandwidth = 10, kVector = 12, kNpu = 13 };
  switch (input_type) {
    case kAiCore:
    case kVector:
    case kNpu:
      *utilization_rate = static_cast<unsigned>(chip.state().percent);
      return {};
    case kHbm:
      *utilization_rate = HbmPercent(chip.state());
      return {};
    case kAiCpu:
    case kControlCpu:
    case kHbmBandwidth:
      *utilization_rate = 0;  // these units do not exist here, so nothing uses them
      return {};
    default:
      return NoSuchKind("dcmi_get_device_utilization_rate", input_type);
  }
}

Status dcmi_get_device_multi_utilization_rate(int card_id, int device_id, dcmi_multi_utilization_info* util_info) {
  return Load("dcmi_get_device_multi_utilization_rate", card_id, device_id, util_info);
}

Status dcmi_get_device_frequency(int card_id, int device_id, dcmi_freq_type input_type, unsigned int* frequency) {
  NPU_TRY(NeedPointers("dcmi_get_device_frequency", {frequency}));
  NPU_ASSIGN(const Chip chip, FindChip("dcmi_get_device_frequency", card_id, device_id));
  switch (int{input_type}) {
    case DCMI_FREQ_HBM:
      *frequency = static_cast<unsigned>(chip.profile().hbm_mhz);
      return {};
    case DCMI_FREQ_AICORE_CURRENT_:
    case DCMI_FREQ_AICORE_MAX:
      *frequency = static_cast<unsigned>(chip.profile().cube_mhz);
      return {};
    default:
      return NoSuchKind("dcmi_get_device_frequency", input_type);
  }
}

Status dcmi_get_device_aicore_info(int card_id, int device_id, dcmi_aicore_info* aicore_info) {
  NPU_TRY(NeedPointers("dcmi_get_device_aicore_info", {aicore_info}));
  NPU_ASSIGN(const Chip chip, FindChip("dcmi_get_device_aicore_info", card_id, device_id));
  aicore_info->freq = aicore_info->cur_freq = static_cast<unsigned>(chip.profile().cube_mhz);
  return {};
}

Status dcmi_get_device_ecc_info(int card_id, int device_id, dcmi_device_type input_type,
                                dcmi_ecc_info* device_ecc_info) {
  NPU_TRY(NeedPointers("dcmi_get_device_ecc_info", {device_ecc_info}));
  NPU_ASSIGN(const Chip chip, FindChip("dcmi_get_device_ecc_info", card_id, device_id));
  if (input_type != DCMI_DEVICE_TYPE_HBM) return NoSuchKind("dcmi_get_device_ecc_info", input_type);
  *device_ecc_info = {.enable_flag = 1};
  return {};
}

Status dcmi_get_topo_info_by_device_id(int card_id1, int device_id1, int card_id2, int device_id2, int* topo_type) {
  NPU_TRY(NeedPointers("dcmi_get_topo_info_by_device_id", {topo_type}));
  NPU_ASSIGN(const Chip first, FindChip("dcmi_get_topo_info_by_device_id", card_id1, device_id1));
  NPU_ASSIGN(const Chip second, FindChip("dcmi_get_topo_info_by_device_id", card_id2, device_id2));
  enum { kSelf = 0, kHccs = 3, kSio = 6 };
  *topo_type = first.logic == second.logic ? kSelf : card_id1 == card_id2 ? kSio : kHccs;
  return {};
}

Status dcmi_get_affinity_cpu_info_by_device_id(int card_id, int device_id, char* affinity_cpu, int* length) {
  constexpr const char* kName = "dcmi_get_affinity_cpu_info_by_device_id";
  NPU_TRY(NeedPointers(kName, {affinity_cpu, length}));
  NPU_ASSIGN(const Chip chip, FindChip(kName, card_id, device_id));
  // The card computes on the host's processors, so all of them are near.
  std::string cpus = "0";
  std::ifstream("/sys/devices/system/cpu/online") >> cpus;
  constexpr size_t kBuffer = 32;  // TOPO_INFO_MAX_LENTH: what clients bring
  NPU_TRY(CopyText(kName, cpus, affinity_cpu, kBuffer));
  *length = static_cast<int>(cpus.size());
  return {};
}

}  // namespace npu::calls
