// Waiting on a word of memory, also across processes when the word lies in shared memory.
//
//   const uint32_t seen = bell.load(std::memory_order_acquire);
//   if (!Ready()) FutexWait(bell, seen, deadline);      // returns at once if bell has changed meanwhile
//
// The waker stores with release and then calls FutexWake. Wake-ups may be spurious.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/time/deadline.h"

namespace npu::os {

// False only when the deadline passed while the word still held `seen`.
bool FutexWait(std::atomic<uint32_t>& word, uint32_t seen, Deadline deadline);
void FutexWake(std::atomic<uint32_t>& word, int waiters = INT32_MAX);

}  // namespace npu::os
