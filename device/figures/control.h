// What may be changed of a card from outside: counters cleared, sharing, a reset. The machine must exist.
#pragma once

#include <string>

#include "base/status/status.h"
#include "device/machine/machine.h"

namespace npu::device {

Status SetSharing(const std::string& machine, int card, Sharing sharing);
Status ClearEcc(const std::string& machine, int card);
// Counters of the running life begin anew; those of the card's whole life stay.
Status ResetCard(const std::string& machine, int card);

}  // namespace npu::device
