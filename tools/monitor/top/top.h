// `anynpu top`: cards, processes, collectives and operators in a terminal.
#pragma once

#include <string>

#include "tools/monitor/expose/source.h"
#include "tools/monitor/top/screen.h"

namespace npu::monitor {

struct TopOptions {
  double interval_s = 1;
  bool once = false;  // one picture without control codes, for files and pipes
};
int Top(Source& source, const TopOptions& options);

}  // namespace npu::monitor
