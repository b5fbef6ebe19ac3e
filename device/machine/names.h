// Which machines there are, for commands that are given a name: a mistyped one must not pass for an idle machine.
#pragma once

#include <string>
#include <vector>

#include "base/status/status.h"

namespace npu::device {

// Of this user's machines that exist, in use or kept; sorted.
Result<std::vector<std::string>> MachineNames();
// kInvalidParam, with the names that there are, for one that does not exist.
Status MustExist(const std::string& name);

}  // namespace npu::device
