// The command line of anynpu; bin/anynpu.cc calls it.
#pragma once

namespace npu::launch {

int Main(int argc, char** argv);

}  // namespace npu::launch
