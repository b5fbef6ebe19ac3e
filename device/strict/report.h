// How a finding is told: on the standard error, each place once, with the calls that led to it; the last line and the
// process's exit code when it ends (docs/guide/strict.md).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "device/strict/stack.h"

namespace npu::strict {

struct Finding {
  std::string_view kind;  // "use before write", …
  std::string_view call;  // part of what makes a place
  std::string what;       // sentences
  std::string remedy;
  std::string more;       // lines: the allocation, its stack
};

// From the thread that gave the work: with its stack and its place in Python.
void Tell(const Finding& finding);
// From a thread where the stack says nothing (a worker), or inside a signal handler.
void TellBare(const Finding& finding);
// At the end of the process: each one is told.
void TellLast(const Finding& finding);
uint64_t Told();
bool WarnOnly();
void SetWarnOnly(bool warn);
// Of a process with findings that would have ended well.
inline constexpr int kExitCode = 86;

}  // namespace npu::strict
