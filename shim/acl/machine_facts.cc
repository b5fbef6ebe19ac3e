#include "shim/acl/machine_facts.h"

#include <cstdlib>

namespace npu {

Result<MachineFacts> FactsOfMachine() {
  const char* soc = std::getenv("ANYNPU_SOC");
  const char* cann = std::getenv("ANYNPU_CANN");
  MachineFacts facts;
  facts.profile = device::FindProfile(soc != nullptr && *soc != '\0' ? std::string_view(soc) : device::kDefaultSoc);
  if (facts.profile == nullptr) {
    return Error(Code::kInvalidDevice, "ANYNPU_SOC={}: there is no such card.", soc)
        .Remedy("Use a name such as {}.", device::kDefaultSoc);
  }
  facts.cann = cann != nullptr && *cann != '\0' ? cann : device::kDefaultCann;
  facts.driver = device::kDefaultDriver;
  return facts;
}

}  // namespace npu
