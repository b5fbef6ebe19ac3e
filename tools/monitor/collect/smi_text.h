// What npu-smi prints, read back. Half a text gives what its whole lines say and a problem that names the rest.
#pragma once

#include <string>

#include "tools/monitor/reading.h"

namespace npu::monitor {

// The box of `npu-smi info`, of any driver's width, with or without Phy-ID.
Reading ParseInfo(const std::string& text);
// The JSON of `npu-smi -q -d N --showmem`: power_usage in mW, Used in MB, Total in bytes, Fragmentation in percent.
Reading ParseQuery(const std::string& text);

}  // namespace npu::monitor
