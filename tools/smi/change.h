// `npu-smi set -t`, `clear -t` and `upgrade`: changes, for root only.
#pragma once

#include <string>
#include <vector>

#include "tools/smi/query.h"

namespace npu::smi {

// Each prints what it did or why not and gives the code that Exit turns into the status.
int Set(const Dcmi& dcmi, const std::vector<std::string>& words);
int Clear(const Dcmi& dcmi, const std::vector<std::string>& words);
int Upgrade(const std::vector<std::string>& words);

}  // namespace npu::smi
