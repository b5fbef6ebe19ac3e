// What the cards are doing: memory, processes, load, health; and how they are joined.
#include <algorithm>
#include <cmath>
#include <fstream>

#include "base/os/process.h"
#include "gen/calls/dcmi.h"
#include "gen/fault_errors.h"
#include "shim/dcmi/chips.h"

namespace npu::calls {

using namespace npu::dcmi;  // NOLINT: the adapters of this library

namespace {

constexpr uint64_t kMb = 1 << 20;
constexpr unsigned kControlCpuMhz = 1900;
constexpr int kMostProcesses = 32;  // the driver's own limit

unsigned HbmPercent(const device::CardFigures& state) {
  return state.total_bytes ? static_cast<unsigned>(state.used_bytes * 100 / state.total_bytes) : 0;
}

unsigned Percent(double share) { return static_cast<unsigned>(std::lround(share * 100)); }

Status NoSuchKind(const char* function, int kind) {
  return Unsupported(function, fmt::format("kind {} is not measured on this chip", kind));
}

// Codes into the caller's list; the count also when the list is too short.
Status FaultCodes(const char* function, int card, int chip, int* error_count, unsigned* list, unsigned list_len) {
  NPU_TRY(NeedPointers(function, {error_count, list}));
  NPU_ASSIGN(const Chip found, FindChip(function, card, chip));
  const std::vector<uint32_t>& codes = found.state().fault_codes;
  *error_count = static_cast<int>(codes.size());
  if (list_len < codes.size() || list_len == 0) {
    return Error(Code::kInvalidParam, "{}: list_len is {}, but there are {} codes.", function, list_len, codes.size())
        .Remedy("Pass 128 entries.");
  }
  std::copy(codes.begin(), codes.end(), list);
  return {};
}

Status Load(const char* function, int card, int chip, dcmi_multi_utilization_info* util_info) {
  NPU_TRY(NeedPointers(function, {util_info}));
  NPU_ASSIGN(const Chip found, AskChip(function, card, chip));
  const device::CardFigures& state = found.state();
  *util_info = {.aic_util = Percent(state.use_cube),
                .aiv_util = Percent(state.use_vector),
                .aicore_util = Percent(state.use_core),
                .npu_util = Percent(state.use_any)};
  return {};
}

}  // namespace

Status dcmi_get_device_health(int card_id, int device_id, unsigned int* health) {
  NPU_TRY(NeedPointers("dcmi_get_device_health", {health}));
  NPU_ASSIGN(const Chip chip, FindChip("dcmi_get_device_health", card_id, device_id));
  if (DriverMismatched()) {
    *health = 4;
    return Error(fault::kSendFailed,
                 "dcmi_get_device_health: the driver is of another chip type than {} (ANYNPU_DRIVER=mismatched).",
                 chip.profile().chip)
        .Remedy("Install the driver of this chip: unset ANYNPU_DRIVER.");
  }
  *health = chip.state().present ? chip.state().health : 0xFFFFFFFFu;
  return {};
}

Status dcmi_get_device_errorcode(int card_id, int device_id, int* error_count, unsigned int* error_code,
                                 int* error_width) {
  NPU_TRY(NeedPointers("dcmi_get_device_errorcode", {error_width}));
  *error_width = static_cast<int>(sizeof(unsigned));
  return FaultCodes("dcmi_get_device_errorcode", card_id, device_id, error_count, error_code, 128);
}

Status dcmi_get_device_errorcode_v2(int card_id, int device_id, int* error_count, unsigned int* error_code_list,
                                    unsigned int list_len) {
  return FaultCodes("dcmi_get_device_errorcode_v2", card_id, device_id, error_count, error_code_list, list_len);
}

Status dcmi_get_device_power_info(int card_id, int device_id, int* power) {
  NPU_TRY(NeedPointers("dcmi_get_device_power_info", {power}));
  NPU_ASSIGN(const Chip chip, AskChip("dcmi_get_device_power_info", card_id, device_id));
  *power = static_cast<int>(std::lround(chip.state().power_w * 10));
  return {};
}

Status dcmi_get_device_temperature(int card_id, int device_id, int* temperature) {
  NPU_TRY(NeedPointers("dcmi_get_device_temperature", {temperature}));
  NPU_ASSIGN(const Chip chip, AskChip("dcmi_get_device_temperature", card_id, device_id));
  *temperature = static_cast<int>(std::lround(chip.state().chip_c));
  return {};
}

Status dcmi_get_device_hbm_info(int card_id, int device_id, dcmi_hbm_info* hbm_info) {
  NPU_TRY(NeedPointers("dcmi_get_device_hbm_info", {hbm_info}));
  NPU_ASSIGN(const Chip chip, AskChip("dcmi_get_device_hbm_info", card_id, device_id));
  if (chip.profile().ddr)
    return npu::Unsupported("dcmi_get_device_hbm_info", "the chip has DDR; ask dcmi_get_device_memory_info_v3");
  const device::CardFigures& state = chip.state();
  *hbm_info = {.memory_size = state.total_bytes / kMb,
               .freq = static_cast<unsigned>(chip.profile().hbm_mhz),
               .memory_usage = state.used_bytes / kMb,
               .temp = static_cast<int>(std::lround(state.hbm_c)),
               .bandwith_util_rate = Percent(state.use_bandwidth)};
  return {};
}

Status dcmi_get_device_resource_info(int card_id, int device_id, dcmi_proc_mem_info* proc_info, int* proc_num) {
  NPU_TRY(NeedPointers("dcmi_get_device_resource_info", {proc_info, proc_num}));
  NPU_ASSIGN(const Chip chip, AskChip("dcmi_get_device_resource_info", card_id, device_id));
  *proc_num = 0;
  // In a container only its own processes: their pids mean something there.
  const uint64_t here = os::Self().pid_namespace;
  for (const device::CardProcess& process : chip.state().processes) {
    if (process.pid_namespace != here || *proc_num == kMostProcesses) continue;
    proc_info[(*proc_num)++] = {.proc_id = process.pid,
                                .proc_mem_usage = static_cast<unsigned long>(process.used_bytes)};
  }
  return {};
}

Status dcmi_get_device_utilization_rate(int card_id, int device_id, int input_type, unsigned int* utilization_rate) {
  NPU_TRY(NeedPointers("dcmi_get_device_utilization_rate", {utilization_rate}));
  NPU_ASSIGN(const Chip chip, AskChip("dcmi_get_device_utilization_rate", card_id, device_id));
  enum {
    kMemory = 1,
    kAiCore = 2,
    kAiCpu = 3,
    kControlCpu = 4,
    kHbm = 6,
    kHbmBandwidth = 10,
    kVector = 12,
    kNpu = 13,
    kCube = 14
  };
  switch (input_type) {
    case kAiCore:
      *utilization_rate = Percent(chip.state().use_core);
      return {};
    case kVector:
      *utilization_rate = Percent(chip.state().use_vector);
      return {};
    case kCube:
      *utilization_rate = Percent(chip.state().use_cube);
      return {};
    case kNpu:
      *utilization_rate = Percent(chip.state().use_any);
      return {};
    case kMemory:
    case kHbm:
      if ((input_type == kMemory) != chip.profile().ddr)
        return NoSuchKind("dcmi_get_device_utilization_rate", input_type);
      *utilization_rate = HbmPercent(chip.state());
      return {};
    case kHbmBandwidth:
      *utilization_rate = Percent(chip.state().use_bandwidth);
      return {};
    case kAiCpu:
    case kControlCpu:
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
  NPU_ASSIGN(const Chip chip, AskChip("dcmi_get_device_frequency", card_id, device_id));
  switch (int{input_type}) {
    case DCMI_FREQ_HBM:
      *frequency = static_cast<unsigned>(chip.profile().hbm_mhz);
      return {};
    case DCMI_FREQ_AICORE_CURRENT_:
      *frequency = static_cast<unsigned>(chip.state().core_mhz);
      return {};
    case DCMI_FREQ_CTRLCPU:
      *frequency = kControlCpuMhz;
      return {};
    case DCMI_FREQ_AICORE_MAX:
      *frequency = static_cast<unsigned>(chip.profile().cube_mhz);
      return {};
    default:
      return NoSuchKind("dcmi_get_device_frequency", input_type);
  }
}

Status dcmi_get_device_aicore_info(int card_id, int device_id, dcmi_aicore_info* aicore_info) {
  NPU_TRY(NeedPointers("dcmi_get_device_aicore_info", {aicore_info}));
  NPU_ASSIGN(const Chip chip, AskChip("dcmi_get_device_aicore_info", card_id, device_id));
  aicore_info->freq = static_cast<unsigned>(chip.profile().cube_mhz);
  aicore_info->cur_freq = static_cast<unsigned>(chip.state().core_mhz);
  return {};
}

Status dcmi_get_device_ecc_info(int card_id, int device_id, dcmi_device_type input_type,
                                dcmi_ecc_info* device_ecc_info) {
  NPU_TRY(NeedPointers("dcmi_get_device_ecc_info", {device_ecc_info}));
  NPU_ASSIGN(const Chip chip, AskChip("dcmi_get_device_ecc_info", card_id, device_id));
  if (input_type != DCMI_DEVICE_TYPE_HBM) return NoSuchKind("dcmi_get_device_ecc_info", input_type);
  const device::CardFigures& state = chip.state();
  const auto count = [](uint64_t n) { return static_cast<unsigned>(std::min<uint64_t>(n, UINT32_MAX)); };
  *device_ecc_info = {.enable_flag = state.ecc_enabled ? 1 : 0,
                      .single_bit_error_cnt = count(state.ecc_single),
                      .double_bit_error_cnt = count(state.ecc_double),
                      .total_single_bit_error_cnt = count(state.ecc_single_life),
                      .total_double_bit_error_cnt = count(state.ecc_double_life),
                      .single_bit_isolated_pages_cnt = count(state.isolated_single),
                      .double_bit_isolated_pages_cnt = count(state.isolated_double)};
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
