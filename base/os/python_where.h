// Where the calling thread stands in Python, for reports: the interpreter is asked through its C interface when this
// process has one; nothing of it is linked.
//
//   os::PythonWhere(3)  →  {"train.py:12 in step", "train.py:40 in <module>"}
//
// Empty in other programs, on threads that Python does not know, and while the interpreter ends. Takes the interpreter's
// lock for a moment: call it with no lock of ours held.
#pragma once

#include <string>
#include <vector>

namespace npu::os {

// `only_if_held`: nothing unless this thread has the interpreter's lock already; never waits then.
std::vector<std::string> PythonWhere(int frames, bool only_if_held = false);

}  // namespace npu::os
