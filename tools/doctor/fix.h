// What `anynpu doctor --fix` does: makes folders, and writes the variables to be set into a file that the user sources.
// Nothing else.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tools/doctor/checks/check.h"

namespace npu::doctor {

inline constexpr const char* kFixFile = "anynpu-doctor-fix.sh";

// The text of the file; empty when no variable has to change.
std::string FixScript(const std::vector<Found>& found);
// Shows each step on stdout, then does it. False when one failed; the reason was printed.
bool ApplyFixes(const std::vector<Found>& found, const std::filesystem::path& folder);

}  // namespace npu::doctor
