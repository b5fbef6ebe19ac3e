// hccn_tool: the network port of a card, by physical id, as text. Questions only; it reads what libdcmi.so says.
#pragma once

#include <string>
#include <vector>

namespace npu::hccn {

int Main(int argc, char** argv);

}  // namespace npu::hccn
