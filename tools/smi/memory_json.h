// `npu-smi -q -d N --showmem`: a card's memory as JSON, in the units that its readers expect: Used in MB, Total in
// bytes, Fragmentation in percent, power in mW.
#pragma once

#include <string>

#include "tools/smi/query.h"

namespace npu::smi {

// `device` is a logic id; a DCMI code when there is no such chip.
int MemoryJson(const Dcmi& dcmi, int device, std::string& out);

}  // namespace npu::smi
