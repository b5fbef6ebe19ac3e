// What the machine is said to be, for calls that must not open a device: the machine this process has joined, else the
// one its environment asks for.
#pragma once

#include <string>

#include "base/status/status.h"
#include "device/profile/profile.h"

namespace npu {

struct MachineFacts {
  const device::Profile* profile = nullptr;
  std::string cann;    // "9.1.0"
  std::string driver;  // "25.5.2"
};
Result<MachineFacts> FactsOfMachine();

}  // namespace npu
