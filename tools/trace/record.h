// What a traced process wrote (ops/core/trace.h), read back: the lines of trace-PID.jsonl files.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/status/status.h"

namespace npu::trace {

struct Record {
  std::string op;
  std::string kernel;
  std::string refused;  // why phase one refused the call; such a record has neither time nor arguments
  std::string failed;   // why the kernel failed
  double start_us = 0, us = 0;
  int pid = 0, tid = 0;
  nlohmann::json args;  // as written: name, kind, role, and what the kind has

  // Tensors as "float32[2,3]", lists by their first element and length, numbers by value; null arguments are left out.
  std::string Text() const;
  // What calls of the same work share: as Text, without the numbers that change from step to step (scalars, seeds,
  // offsets).
  std::string Key() const;
};

// A file, or every trace file of a folder, in the order in which the calls began. Lines that are cut off (a killed
// process) are left out; a file that is no trace is an error.
Result<std::vector<Record>> Read(const std::filesystem::path& from);

}  // namespace npu::trace
