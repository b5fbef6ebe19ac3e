#pragma once

#include <string>
#include <vector>

namespace npu::doctor {

// `anynpu explain`: words are what stands behind it. 0: explained; 1: nothing known; 64: wrong usage.
int Explain(const std::vector<std::string>& words);

}  // namespace npu::doctor
