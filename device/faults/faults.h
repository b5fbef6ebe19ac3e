// Faults on demand. They live in the machine's state file, so every process that uses the machine meets the same ones,
// however often it starts; a machine with faults stays when its last process leaves.
//
//   anynpu inject ecc-double --card 1          →  AddFault(config, spec)
//   ActiveFault(layout, FaultKind::kCardLost, card)   // null: none
//
// A fault has a kind, a card (or all), and says when it begins: at once, after a number of matches (tasks of the card;
// calls, for kCallFails), with a probability. Looking costs one relaxed load as long as none is armed.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status/status.h"
#include "device/machine/machine.h"
#include "device/machine/repair.h"

namespace npu::device {

enum class FaultKind : uint32_t {
  kNone,
  kCardLost,
  kHang,
  kEccSingle,
  kEccDouble,
  kOverTemperature,
  kLinkDown,
  kLinkFlapping,
  kPacketLoss,
  kPcieDegraded,
  kSlow,
  kHbmLeak,
  kHbmFragmentation,
  kDriverTimeout,
  kCallFails,
  kErrorCode,
};
inline constexpr size_t kFaultKinds = 16;

// What a kind is, for tools and views.
struct FaultFacts {
  FaultKind kind;
  std::string_view name;    // "card-lost"
  uint32_t health;          // 0 good, 1 minor, 2 major, 3 critical
  uint32_t dcmi_code;       // of the public fault list; 0: none
  std::string_view amount;  // what `amount` means; empty: the kind takes none
  uint64_t usual_amount;
  std::string_view event;  // as fault events name it
  std::string_view help;
};
std::span<const FaultFacts> AllFaultFacts();
const FaultFacts* FactsOf(FaultKind kind);
// By name; null for a name that no fault has.
const FaultFacts* FaultByName(std::string_view name);

struct FaultSpec {
  FaultKind kind = FaultKind::kNone;
  int card = -1;  // device number; -1: all
  int rank = -1;  // only processes of this rank (RANK); -1: any
  std::string call;
  int32_t code = 0;  // what a failing call returns, or the code to report
  double chance = 1, factor = 2;
  uint64_t seed = 1, amount = 0, after = 0, times = 0, period_ms = 2000;
};

// Number of the new fault. Makes and keeps the machine when nobody uses it.
Result<uint32_t> AddFault(const MachineConfig& config, const FaultSpec& spec);
// What ends: one number, or all of a kind, a card, or everything. Says how many.
struct FaultChoice {
  std::optional<uint32_t> id;
  std::optional<FaultKind> kind;
  std::optional<int> card;
};
Result<int> ClearFaults(const MachineConfig& config, const FaultChoice& choice);

// The fault that a device shows now, the worst of several; null when none. One of a rank shows on the cards that the
// rank's process has worked on since.
const FaultRecord* ActiveFault(const StateLayout& layout, FaultKind kind, int card);
// The same for what this process meets on the device: its own rank's, and those of no rank.
const FaultRecord* FaultHere(const StateLayout& layout, FaultKind kind, int card);
bool IsActive(const FaultRecord& fault);
bool Shows(const FaultRecord& fault, int card);
// Whether its rank is this process's.
bool IsForThisProcess(const FaultRecord& fault);
// One match of a fault: counts it and says whether the fault acts on it. The n-th match of a seed always goes the same way.
bool Matches(FaultRecord& fault);

// This process uses the card: the faults of its rank show there from now on.
void MeetFaults(StateLayout& layout, int card);
// Counts one piece of work of a card for the faults that wait for their time.
void CountWork(StateLayout& layout, int card);

// Health word and codes that a card shows, and what it has been through.
struct CardHealth {
  uint32_t health = 0;
  std::vector<uint32_t> codes;
};
CardHealth HealthOf(const StateLayout& layout, int card);

// Calls of this process are looked at from now on: it has joined a machine.
void WatchCalls(StateLayout& layout);

// Flapping: whether the link is up now, and how often it has gone down since the fault began.
bool FlapIsUp(const StateLayout& layout, const FaultRecord& fault);
uint64_t FlapDowns(const StateLayout& layout, const FaultRecord& fault);

}  // namespace npu::device
