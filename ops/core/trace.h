// What ran, call by call: one JSON line for each operator, for `anynpu trace` and `anynpu replay`.
//
// On when ANYNPU_TRACE names a folder at the first call; each process writes its own trace-PID.jsonl there. A line
// holds the call's arguments without the tensors' values, when it ran, how long and on which thread, and the kernel:
//
//   {"op": "aclnnAdd", "ts_us": 12.5, "us": 0.8, "tid": 7, "kernel": "pointwise add", "args": [
//    {"name": "self", "kind": "tensor", "role": "in", "dtype": "float32", "shape": [2, 3]}, …]}
//
// Strides stand there when they are not row-major. A call that phase one refused has "refused" (the text) instead of
// times. Off, a call pays one load.
//
// PROFILING_MODE=true writes the time of each operator to the log instead or as well, as an event of module PROFILING:
//
//   [EVENT] PROFILING(4711,python):2026-11-30-17:05:11.123.456 [trace.cc:180]4712 aclnnAdd 12.3 us float32[2, 3] float32[2, 3]
#pragma once

#include <atomic>
#include <chrono>
#include <string>

#include "base/status/status.h"
#include "ops/core/op_def.h"

namespace npu::ops {

class Trace {
 public:
  using Clock = std::chrono::steady_clock;

  static bool On() { return on_.load(std::memory_order_relaxed); }
  static void Ran(const OpDef& op, const Args& args, Clock::time_point start, Clock::time_point end,
                  const Status& status);
  static void Refused(const OpDef& op, const Status& why);
  // The line of a call, without its end of line.
  static std::string Line(const OpDef& op, const Args& args, double ts_us, double us, int tid, const Status& status);
  // Reads the environment again; for tests.
  static void Reload();

 private:
  static std::atomic<bool> on_;
};

}  // namespace npu::ops
