#include "tools/smi/memory_json.h"

#include <fmt/format.h>

namespace npu::smi {

int MemoryJson(const Dcmi& dcmi, int device, std::string& out) {
  ChipId id;
  if (int code =
          NPU_DCMI(dcmi, dcmi_get_card_id_device_id_from_logicid, &id.card, &id.chip, static_cast<unsigned>(device)))
    return code;
  const Chip chip = ReadChip(dcmi, id);
  CardExtras extras;
  const bool known = ReadExtras(dcmi, id, &extras);
  const auto number = [](const auto& value) { return value ? fmt::format("{}", *value) : std::string("null"); };
  std::optional<uint64_t> total, milliwatts;
  if (chip.hbm_total_mb) total = *chip.hbm_total_mb << 20;
  if (chip.power_dw) milliwatts = static_cast<uint64_t>(*chip.power_dw) * 100;
  out += fmt::format(
      "{{\"npu\": [{{\"id\": {}, \"name\": \"{}\", \"power_usage\": {}, \"memory\": {{\"Used\": {}, \"Total\": {}, "
      "\"Fragmentation\": {}}}}}]}}\n",
      device, chip.name, number(milliwatts), number(chip.hbm_used_mb), number(total),
      known ? fmt::format("{:.2f}", static_cast<double>(extras.fragmentation_ppm) / 1e4) : "null");
  return 0;
}

}  // namespace npu::smi
