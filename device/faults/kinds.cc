// The table of faults: one line each. Codes are those of the public fault list (card lost, ECC, link, kernel time-out);
// kinds without one show by their health alone.
#include <algorithm>
#include <array>

#include "device/faults/faults.h"

namespace npu::device {
namespace {

using K = FaultKind;
constexpr std::array kFacts = {
    FaultFacts{K::kCardLost, "card-lost", 3, 0x40F84E00, "", 0, "device lost",
               "work fails with 507010; the driver knows the card but gets no answer"},
    FaultFacts{K::kHang, "hang", 2, 0x80CB800A, "", 0, "AIV operator timeout",
               "work stands still until the fault ends, the stream is aborted or its execute limit passes (507014)"},
    FaultFacts{K::kEccSingle, "ecc-single", 1, 0, "", 0, "HBM single-bit ECC",
               "counts a corrected error in memory; nothing fails"},
    FaultFacts{K::kEccDouble, "ecc-double", 3, 0x80E01801, "", 0, "HBM multi-bit ECC",
               "counts an uncorrectable error in memory; the next work on the card fails with 507054"},
    FaultFacts{K::kOverTemperature, "over-temperature", 2, 0, "degrees C", 110, "over temperature",
               "the chip heats up to the amount in a few seconds; above 95 C its clock falls and work slows down"},
    FaultFacts{K::kLinkDown, "link-down", 2, 0x81078603, "", 0, "link down",
               "collectives of the card fail with a link error"},
    FaultFacts{K::kLinkFlapping, "link-flapping", 1, 0x81078603, "", 0, "link down",
               "the link goes down and comes back with the period; collectives wait for it"},
    FaultFacts{K::kPacketLoss, "packet-loss", 1, 0, "ms a lost packet costs", 5, "packet loss",
               "collectives lose packets with the chance given and wait for the repetition"},
    FaultFacts{K::kPcieDegraded, "pcie-degraded", 1, 0, "lanes left of 16", 4, "PCIe lanes lost",
               "copies between host and card slow down by 16 over the lanes left"},
    FaultFacts{K::kSlow, "slow", 0, 0, "", 0, "", "kernels and copies take the factor longer; no health sign"},
    FaultFacts{K::kHbmLeak, "hbm-leak", 1, 0, "bytes a second", 64 << 20, "memory leak",
               "memory of the card disappears, nobody holds it"},
    FaultFacts{K::kHbmFragmentation, "hbm-fragmentation", 0, 0, "percent", 50, "",
               "of the free memory no block larger than the rest of 100 percent is left"},
    FaultFacts{K::kDriverTimeout, "driver-timeout", 2, 0, "ms until the driver gives up", 1000, "driver time-out",
               "opening a card, memory and DCMI queries end with a time-out"},
    FaultFacts{K::kCallFails, "call", 0, 0, "", 0, "",
               "the n-th call of a function returns a code without doing anything"},
    FaultFacts{K::kErrorCode, "error-code", 2, 0, "", 0, "device fault",
               "a code of the public fault list is reported; nothing else happens"},
};

}  // namespace

std::span<const FaultFacts> AllFaultFacts() { return kFacts; }

const FaultFacts* FactsOf(FaultKind kind) {
  const auto* found = std::find_if(kFacts.begin(), kFacts.end(), [&](const FaultFacts& f) { return f.kind == kind; });
  return found == kFacts.end() ? nullptr : found;
}

const FaultFacts* FaultByName(std::string_view name) {
  const auto* found = std::find_if(kFacts.begin(), kFacts.end(), [&](const FaultFacts& f) { return f.name == name; });
  return found == kFacts.end() ? nullptr : found;
}

}  // namespace npu::device
