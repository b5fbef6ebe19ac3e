// Programs and functions that may hang or crash, run in a child with a limit.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace npu::doctor {

struct Ran {
  bool started = false, timed_out = false;
  int code = -1, signal = 0;
  std::string out;  // at most 1 MiB
};

Ran RunProgram(const std::vector<std::string>& command, int limit_ms);
// The function runs in the child and returns what is to be read here.
Ran RunInChild(const std::function<std::string()>& function, int limit_ms);

}  // namespace npu::doctor
