// How a card's use, power, temperature and clocks follow the work that was counted.
//
// Nothing runs in the background: whoever counts work (every few ms) or looks moves the card's model up to now, one at a
// time. Use is the share of the last window in which a unit ran. Power follows use and temperature follows power, each
// like a body with inertia, so both rise and fall over seconds; gaps are stepped over exactly.
#pragma once

#include <cstdint>

#include "device/machine/layout.h"

namespace npu::device {

inline constexpr uint64_t kWindowNs = 100'000'000;  // shortest window of a use figure

// Full use of a card's memory in this model: what a few channels of a host's memory carry.
inline constexpr double kBandwidthBytesPerS = 25.6e9;
inline constexpr double kThrottleFromC = 95, kHottestC = 125;

// The machine's clock: the host's monotonic one, or the one that is moved by hand (deterministic mode).
uint64_t NowNs(const StateLayout& layout);
uint64_t MonotonicNs();

// Moves the model of a card if a window has passed.
void MoveModel(StateLayout& layout, uint32_t card, uint64_t now_ns);

// Everything a card ever did, work that runs now included.
struct WorkSum {
  uint64_t busy_ns[kUnits] = {};
  uint64_t tasks[kUnits] = {};
  uint64_t bytes[kFlows] = {};
  uint64_t any_ns = 0, failed = 0;
};
WorkSum SumOf(const StateLayout& layout, uint32_t card, uint64_t now_ns);
// One process's share of it.
WorkSum SumOf(const ProcessWork& work, uint64_t now_ns);

// What the model says about clocks: rated, as far as heat allows; lower when nothing runs.
int CoreMhz(const CardBoard& board, const Profile& profile);
// By how much work takes longer at that heat: 1 and above.
double ThrottleFactor(const CardBoard& board);

// The slot's counters become the card's; called with the file's lock when a process is gone.
void KeepWorkOf(StateLayout& layout, uint32_t slot);
// A machine that is made anew has done nothing yet. Faults stay: they were asked for from outside.
void ForgetFigures(StateLayout& layout);

}  // namespace npu::device
