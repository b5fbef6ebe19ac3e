// The command line of npu-smi; bin/npu_smi.cc calls it.
#pragma once

namespace npu::smi {

int Main(int argc, char** argv);

}  // namespace npu::smi
