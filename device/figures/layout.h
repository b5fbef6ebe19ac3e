// What real work leaves behind in the state file of a machine (machine/layout.h): counters of each process on each
// card, what each card is like, faults that were asked for. One writer each; every reader (DCMI, npu-smi, exporter)
// takes what it finds for hostile and gets it as values from figures/read.h.
//
// Counters only grow. Those of a process are its own (meter.h writes them); when it ends, whoever frees its slot adds
// them to the card's, so that a card's sums never fall.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "device/profile/profile.h"

namespace npu::device {

// The part of a card that a task keeps busy.
enum class Unit : uint8_t { kCube, kVector, kMemory, kLink };
inline constexpr size_t kUnits = 4;
// Where bytes go: what kernels read and write, copies by direction, collectives.
enum class Flow : uint8_t { kKernel, kToDevice, kToHost, kOnDevice, kToPeer, kLinkSend, kLinkReceive };
inline constexpr size_t kFlows = 7;

struct alignas(64) WorkCounters {
  std::atomic<uint64_t> busy_ns[kUnits];
  std::atomic<uint64_t> tasks[kUnits];
  std::atomic<uint64_t> bytes[kFlows];
  std::atomic<uint64_t> any_ns;  // time in which at least one task ran
  std::atomic<uint64_t> failed;  // tasks that ended with an error
};

inline constexpr uint64_t kOneOwn = uint64_t{1} << 32;

// What one process does on one card now.
struct alignas(64) WorkNow {
  std::atomic<uint64_t> running;           // tasks at this moment, and kOneOwn for each of them that is no collective
  std::atomic<uint32_t> running_unit;      // of the last one that began
  std::atomic<uint64_t> running_since_ns;  // when `running` left 0, on the monotonic clock
  std::atomic<uint64_t> free_bytes;        // of this process's address range of the card
  std::atomic<uint64_t> largest_free_bytes;
};

struct ProcessWork {
  WorkCounters done;
  WorkNow now;
};

// Whether containers share a chip. By default nobody asks.
enum Sharing : uint32_t { kSharingUnset = 0, kShared = 1, kExclusive = 2 };

// What a card is like, whoever uses it. The model (model.h) moves power, temperature and use on; faults and commands
// set the rest.
struct alignas(4096) CardBoard {
  WorkCounters ended;  // of processes that are gone
  // The model: who moves it holds `turn`, which a dead holder loses after a while.
  alignas(64) std::atomic<uint64_t> turn;
  std::atomic<uint64_t> moved_ns;  // up to when, on the monotonic clock; 0: never
  std::atomic<uint64_t> seen_ns[kUnits], seen_any_ns, seen_bytes[kFlows];
  std::atomic<uint32_t> use_permille[kUnits], use_any_permille, use_core_permille, use_bandwidth_permille;
  std::atomic<uint64_t> rate_bytes[kFlows];         // per second, in the last window
  std::atomic<uint64_t> power_uw, chip_uc, hbm_uc;  // µW, µ°C above 0
  std::atomic<uint32_t> modelled;                   // the three above were set
  // Counters of the board.
  alignas(64) std::atomic<uint64_t> ecc_single, ecc_double;  // since the machine was made or they were cleared
  std::atomic<uint64_t> ecc_single_life, ecc_double_life;
  std::atomic<uint64_t> isolated_single, isolated_double;
  std::atomic<uint64_t> link_downs, link_ups, packets_lost, pcie_errors, resets;
  // Settings that npu-smi may change: 0 is the default of each.
  std::atomic<uint32_t> shared;  // Sharing
  std::atomic<uint32_t> ecc_off;
};

// One fault that was asked for (faults/faults.h). `state` is published last.
enum FaultState : uint32_t { kFaultFree = 0, kFaultWriting = 1, kFaultArmed = 2 };
struct alignas(64) FaultRecord {
  std::atomic<uint32_t> state;
  std::atomic<uint32_t> id;
  std::atomic<uint32_t> kind;  // FaultKind
  std::atomic<int32_t> card;   // device number; -1: every one
  std::atomic<int32_t> rank;   // -1: whatever rank
  std::atomic<int32_t> code;   // for failing calls: what they return
  std::atomic<uint32_t> chance_ppm;
  std::atomic<uint32_t> factor_permille;
  std::atomic<uint64_t> seed, amount;
  std::atomic<uint64_t> after;  // matches that pass before it acts
  std::atomic<uint64_t> times;  // how often it acts; 0: until it is cleared
  std::atomic<uint64_t> period_ms;
  std::atomic<uint64_t> seen, acted;  // matches and hits so far, in all processes
  std::atomic<uint64_t> since_unix_ms, since_ns;
  std::atomic<uint64_t> met;   // of a rank: bit n is set once its process has worked on card n
  std::atomic<uint64_t> told;  // of an error in the memory of every card: bit n is set once work on card n has failed
  char call[72];
};
inline constexpr uint32_t kMaxFaults = 64;

struct FaultTable {
  std::atomic<uint32_t> epoch;        // moves with every change
  std::atomic<uint32_t> armed;        // how many are armed
  std::atomic<uint32_t> armed_calls;  // of them, those that make calls fail
  std::atomic<uint32_t> next_id;
  FaultRecord faults[kMaxFaults];
};

// Deterministic mode: the model's clock stands at `ns` and is moved by hand; tasks count with the time they were
// planned to take, not with what they took.
struct alignas(64) Clock {
  std::atomic<uint32_t> held;
  std::atomic<uint64_t> ns;
};

struct alignas(4096) Figures {
  Clock clock;
  FaultTable faults;
  CardBoard boards[kMaxCards];
};

}  // namespace npu::device
