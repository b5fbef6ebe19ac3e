// A program's output, with a time limit and a bound.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "base/status/status.h"

namespace npu::monitor {

// What it wrote to stdout, when it ended with 0 in time; it is killed otherwise. LC_ALL is C. Another exit status is
// kNotSupported: the program refuses.
Result<std::string> Output(const std::vector<std::string>& command, std::chrono::milliseconds limit, size_t most);

}  // namespace npu::monitor
