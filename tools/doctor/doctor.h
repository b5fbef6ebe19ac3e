#pragma once

#include <string>
#include <vector>

namespace npu::doctor {

// `anynpu doctor`: words are what stands behind it. 0: nothing found; 1: warnings; 2: errors; 64: wrong usage.
int Doctor(const std::vector<std::string>& words);

}  // namespace npu::doctor
