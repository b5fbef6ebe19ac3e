// Where the program in this process is that calls us: the line of Python code, when there is an interpreter.
//
//   ScriptLine()     // "train.py:41 in step"; empty when the calling thread runs no Python or nothing is known
//
// Nothing of Python is linked or imported. Two functions that interpreters export for fault handlers are looked up at
// run time; they read the calling thread's own frames without the interpreter's lock (docs/decisions/parity.md). Costs
// some 20 µs; meant for reports, not for every call. Never throws.
#pragma once

#include <string>

namespace npu::os {

std::string ScriptLine() noexcept;

// The line of interest in a listing of frames, innermost first, as the interpreter writes it: the first that belongs to
// neither an installed package nor the interpreter itself, else the first.
std::string LineOfInterest(const std::string& listing);

}  // namespace npu::os
