// The commands `anynpu exporter`, `anynpu top` and `anynpu web`.
#pragma once

namespace npu::monitor {

int Main(int argc, char** argv);

}  // namespace npu::monitor
