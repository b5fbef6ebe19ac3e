// Where figures come from. A collector never throws and never ends the program: what it cannot read is absent and named
// in Reading::problems.
#pragma once

#include <memory>
#include <string>

#include "base/status/status.h"
#include "tools/monitor/reading.h"

namespace npu::monitor {

class Collector {
 public:
  virtual ~Collector() = default;
  virtual Reading Read() = 0;
};

struct CollectorOptions {
  std::string name;                      // auto, software, dcmi, npu-smi, sysfs
  std::string sysfs = "/sys/class/npu";  // root of the sysfs collector
  std::string proc = "/proc";            // where processes' names and containers are looked up
  std::string hccn_tool;                 // of the dcmi collector; empty: the driver's or one on PATH; off: none
  std::string npu_smi;                   // a command to run, or a file of its output; empty: npu-smi
};

// The software machine of this user, through its state.
std::unique_ptr<Collector> SoftwareCollector(const CollectorOptions& options);
// libdcmi.so, opened at run time: real cards.
std::unique_ptr<Collector> DcmiCollector(const CollectorOptions& options);
// The text of `npu-smi info`, or the JSON of `npu-smi -q -d N --showmem`, whichever the source gives.
std::unique_ptr<Collector> SmiTextCollector(const CollectorOptions& options);
// RK3588 and its like: <root>/npu*/device/{power_usage,memory_usage,frequency}.
std::unique_ptr<Collector> SysfsCollector(const CollectorOptions& options);

// The collector of that name. `auto`: DCMI where a driver has made its device nodes, else sysfs where a board is, else
// the software machine.
Result<std::unique_ptr<Collector>> MakeCollector(const CollectorOptions& options);

}  // namespace npu::monitor
