// The writing side of a process's meters. Everything here is cheap, never fails, and does nothing in a process that has
// joined no machine. Any thread may call anything.
//
// Kernels come here from the card's Meter (device/figures/meter.h), collectives by an object of their own.
//
// **Steps.** A training step has no call of its own. Programs that train on several cards give the same buffers to the
// same collectives once a step, so a step is what lies between two runs of one collective on one buffer: the first that
// is seen, and another one once that one comes no more. Own work is a step's time without the time its collectives
// took while no kernel of this card ran.
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

namespace npu::device::meters {

void KernelEnded(int card, uint64_t now);  // TicksNs()
// A run of `ns`. `key` is one address for each operator name; `name` is read at the first call with a key.
void CountKernel(const void* key, std::string_view name, uint64_t ns);

// A collective of this process, from its call to its end. Times are TicksNs().
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
  bool received_ = false;
  uint64_t began_ = 0;
};

}  // namespace npu::device::meters
