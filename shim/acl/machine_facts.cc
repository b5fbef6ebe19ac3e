#include "shim/acl/machine_facts.h"

#include "device/figures/read.h"

namespace npu {

Result<MachineFacts> FactsOfMachine() {
  if (const device::Machine* machine = device::Joined()) {
    return MachineFacts{&machine->profile(), std::string(machine->cann()), std::string(machine->driver())};
  }
  NPU_ASSIGN(const device::MachineConfig config, device::ConfigFromEnvironment());
  NPU_ASSIGN(const device::MachineFigures machine, device::ReadFigures(config));
  return MachineFacts{machine.profile, machine.cann, machine.driver};
}

}  // namespace npu
