// The command line of anynpu.
#pragma once

#include <string>
#include <vector>

namespace npu::launch {

// A command that another room brings: `anynpu NAME words...`.
struct Command {
  const char* name;
  const char* help;
  int (*run)(const std::vector<std::string>& words);
};

int Main(int argc, char** argv, const std::vector<Command>& commands = {});

}  // namespace npu::launch
