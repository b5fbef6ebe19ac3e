// anynpu inject, clear, faults and clock: what is only of software machines. Exit status: 0, 1 when the machine
// refuses, 2 for a wrong command line.
#pragma once

#include <string>
#include <vector>

namespace npu::inject {

int Inject(const std::vector<std::string>& words);
int Clear(const std::vector<std::string>& words);
int Faults(const std::vector<std::string>& words);
int Clock(const std::vector<std::string>& words);

}  // namespace npu::inject
