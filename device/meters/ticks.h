// A clock for short spans: a few ns a reading where the processor has a steady counter.
#pragma once

#include <chrono>
#include <cstdint>

namespace npu::device {

inline uint64_t Ticks() {
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
  uint64_t ticks;
  asm volatile("mrs %0, cntvct_el0" : "=r"(ticks));
  return ticks;
#else
  return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
#endif
}

// Measured at the first call, which takes some 200 µs.
double NsPerTick();
inline uint64_t TicksToNs(uint64_t ticks) { return static_cast<uint64_t>(static_cast<double>(ticks) * NsPerTick()); }

}  // namespace npu::device
