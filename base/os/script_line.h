// Where the program in this process is that calls us: the line of Python code, when there is an interpreter.
//
//   ScriptLine()     // "train.py:41 in step"; empty when the calling thread runs no Python or nothing is known
//   ScriptFrames(3)  // that many frames, innermost first, packages among them
//
// Nothing of Python is linked or imported. Two functions that interpreters export for fault handlers are looked up at
// run time; they read the calling thread's own frames without the interpreter's lock (docs/decisions/parity.md). Costs
// some 20 µs; meant for reports, not for every call. Never throws.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace npu::os {

// A thread of torch's backward pass has no frames of its own: it is given the line of the main thread that waits for
// it, when that has been here before (RememberMainThread) and sleeps, or falls asleep within 0.2 s.
std::string ScriptLine() noexcept;
// Called by the main thread at any time, so that threads which work for it can name its line. Cheap after the first
// time.
void RememberMainThread() noexcept;
std::vector<std::string> ScriptFrames(size_t most) noexcept;

// The line of interest in a listing of frames, innermost first, as the interpreter writes it: the first that belongs to
// neither an installed package nor the interpreter itself, else the first.
std::string LineOfInterest(const std::string& listing);
// The first `most` frames of such a listing.
std::vector<std::string> FramesOf(const std::string& listing, size_t most);

}  // namespace npu::os
