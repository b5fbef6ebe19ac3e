// What a process tells about its own work, as it lies in the state file: operators by name, collectives under way,
// steps.
//
// Written by the slot's owner alone, read by monitors (read.h), cleared when the slot is released. Readers take the
// content for hostile like the rest of the file.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "device/profile/profile.h"

namespace npu::device {

// Upper bounds of the run-time histogram; the last bucket, behind them, has no bound.
inline constexpr std::array<uint64_t, 19> kMeterBoundsNs = {
    1'000,      2'000,      5'000,       10'000,      20'000,       50'000,    100'000,
    200'000,    400'000,    800'000,     1'600'000,   3'200'000,    6'400'000, 12'800'000,
    25'600'000, 51'200'000, 102'400'000, 409'600'000, 1'638'400'000};
inline constexpr uint32_t kMeterBuckets = kMeterBoundsNs.size() + 1;
inline constexpr uint32_t kMaxOpMeters = 256;  // the last one collects what finds no place
inline constexpr uint32_t kRecentSteps = 128;

struct alignas(64) OpMeter {
  char name[56];  // ends with a zero; written before op_high passes it
  std::atomic<uint64_t> sum_ns;
  std::atomic<uint64_t> buckets[kMeterBuckets];
};

// One card of a process, as a rank of its largest communicator, or alone.
struct alignas(64) RankMeter {
  std::atomic<uint32_t> rank, ranks;                  // ranks is 0 without a communicator
  std::atomic<uint64_t> issued, received, completed;  // collectives: called; data of all peers has come; over
  std::atomic<uint64_t> steps, own_ns, wall_ns;
  std::atomic<uint32_t> recent_own_us[kRecentSteps], recent_wall_us[kRecentSteps];  // a ring: step n at n % size
};

struct Meters {
  std::atomic<uint32_t> used;  // anything was written: the pages are worth reading and clearing
  std::atomic<uint32_t> op_high;
  OpMeter ops[kMaxOpMeters];
  RankMeter ranks[kMaxCards];
};

void ClearMeters(Meters& meters);

}  // namespace npu::device
