// `anynpu bench`: the programs of the install tree that compare us with others.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/status/status.h"

namespace npu::launch {

// The command that runs the benchmark of `tree` with `words` behind it. An empty `python` means the one on PATH: the
// benchmark itself needs no torch there, most of what it measures does.
Result<std::vector<std::string>> BenchCommand(const std::filesystem::path& tree, const std::string& python,
                                              const std::vector<std::string>& words);

}  // namespace npu::launch
