// `anynpu check`: a short self-test of the whole installation, on software cards and on real ones, through public
// interfaces only. Parts: devices, memory, operators, collectives, monitor, exporter.
#pragma once

#include <string>
#include <vector>

#include "tools/check/client.h"
#include "tools/check/report.h"

namespace npu::check {

// The command's words without `anynpu check`; the libraries are those of the environment. 0 when all that was tried
// passed, 1 when something failed, 2 for wrong words.
int SelfCheck(const std::vector<std::string>& words);

// The parts. Each is alone in its process.
void CheckDevices(Sink& sink);
void CheckMemory(Sink& sink);
void CheckOperators(Sink& sink, unsigned seed);
void CheckCollectives(Sink& sink, unsigned seed);
void CheckMonitor(Sink& sink);
void CheckExporter(Sink& sink, int port);

}  // namespace npu::check
