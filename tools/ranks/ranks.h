// `anynpu ranks`: the communicators of this computer as their processes show them (device/ranks/board.h).
#pragma once

#include <string>
#include <vector>

#include "device/ranks/board.h"

namespace npu::ranks {

// The text of one look. `machine` empty: all.
std::string Table(const std::vector<device::ranks::Seen>& seen, const std::string& machine);
std::string Json(const std::vector<device::ranks::Seen>& seen, const std::string& machine);
int Main(const std::vector<std::string>& words);

}  // namespace npu::ranks
