// Recorded calls made again through the C interface, as a client that knows the libraries by path only.
//
// Tensors have the recorded types, shapes and strides; their values are made anew (floats in (0, 1), bools at random,
// integers 0, since they may be indices), so a replay shows time, refusals and crashes, and no values.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tools/trace/record.h"

namespace npu::trace {

struct ReplayOptions {
  std::string only;  // an operator's name; empty: all
  int times = 20;    // runs of each call
};

// Replays every different call of `records` once and returns the table; a call that cannot be made is a row that says
// why.
Result<std::string> Replay(const std::filesystem::path& tree, const std::vector<Record>& records,
                           const ReplayOptions& options);

}  // namespace npu::trace
