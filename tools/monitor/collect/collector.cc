#include "tools/monitor/collect/collector.h"

#include <cstdlib>
#include <filesystem>

#include "tools/monitor/collect/command.h"

namespace npu::monitor {

Result<std::unique_ptr<Collector>> MakeCollector(const CollectorOptions& options) {
  if (options.name == "software") return SoftwareCollector(options);
  if (options.name == "dcmi") return DcmiCollector(options);
  if (options.name == "npu-smi") return SmiTextCollector(options);
  if (options.name == "sysfs") return SysfsCollector(options);
  if (options.name != "auto") {
    return Error(Code::kInvalidParam, "There is no collector {}.", options.name)
        .Remedy("Use auto, software, dcmi, npu-smi or sysfs.");
  }
  // A real driver is no file of ours: its library says so by its place.
  std::error_code error;
  const bool driver = std::filesystem::exists("/dev/davinci_manager", error);
  if (driver) return DcmiCollector(options);
  if (std::filesystem::exists(options.sysfs, error)) return SysfsCollector(options);
  return SoftwareCollector(options);
}

}  // namespace npu::monitor
