// The writing side of a process's meters. Everything here is cheap, never fails, and does nothing in a process that has
// joined no machine. Any thread may call anything.
//
// Tasks come here from the card's Meter (device/figures/meter.h), collectives by an object of their own, threads that
// wait for a card by HostWait. What a step is and what of it is own work: steps.h.
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

#include "device/meters/steps.h"

namespace npu::device::meters {

// The card has work of its own, any but collectives; it has none any more. Times are TicksNs().
void WorkBegins(int card, uint64_t now);
// `since` is what WorkingSince said while the work still counted as running: by now another stream's may have begun.
uint64_t WorkingSince(int card);
void WorkEnds(int card, uint64_t since, uint64_t now);
// Small work of `ns` ran beside its caller, which had no time to do it because the stream was not idle.
void WorkedOffCaller(int card, uint64_t ns);
// Operators of optimisers and products (figures/meter.h) have run: they mark the steps of a card without collectives.
void Updated(int card);
void Multiplied(int card, uint64_t now);
// A run of `ns`. `key` is one address for each operator name; `name` is read at the first call with a key.
void CountKernel(const void* key, std::string_view name, uint64_t ns);

// For as long as this lives its thread waits for the card and does nothing of its own.
class HostWait {
 public:
  explicit HostWait(int card);
  ~HostWait();
  HostWait(const HostWait&) = delete;
  HostWait& operator=(const HostWait&) = delete;

 private:
  const int card_;
};

// A collective of this process, from its call to its end.
class Collective {
 public:
  // `key` tells apart the buffers and kinds of collectives; 0 marks no step.
  Collective(int card, uint32_t rank, uint32_t ranks, uint64_t key);
  ~Collective();
  Collective(const Collective&) = delete;
  Collective& operator=(const Collective&) = delete;
  void Begins();    // its stream has come to it; further calls do nothing
  void Received();  // all peers have given what this rank needs; further calls do nothing
 private:
  const int card_;
  const uint64_t key_;
  const uint32_t slot_;  // 0: nothing is counted
  const HostStamp called_;
  bool received_ = false, began_ = false;
};

}  // namespace npu::device::meters
