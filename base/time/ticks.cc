#include "base/time/ticks.h"

#include <chrono>

#if defined(__x86_64__)
#include <cpuid.h>
#include <x86intrin.h>
#endif

namespace npu {
namespace {

uint64_t SystemNs() {
  return static_cast<uint64_t>(std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count());
}

#if defined(__x86_64__)

// Counts of the time-stamp counter for one ns, as a fraction of 2^32; 0: not to be used.
uint64_t Calibrate() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  const bool steady = __get_cpuid(0x80000007, &a, &b, &c, &d) != 0 && (d & (1u << 8)) != 0;
  if (!steady) return 0;
  const uint64_t ns0 = SystemNs(), t0 = __rdtsc();
  uint64_t ns1 = ns0, t1 = t0;
  while (ns1 - ns0 < 300'000) ns1 = SystemNs(), t1 = __rdtsc();
  if (t1 <= t0) return 0;
  return static_cast<uint64_t>(static_cast<double>(ns1 - ns0) / static_cast<double>(t1 - t0) * 4294967296.0);
}

#elif defined(__aarch64__)

uint64_t Calibrate() {
  uint64_t hz = 0;
  asm volatile("mrs %0, cntfrq_el0" : "=r"(hz));
  return hz == 0 ? 0 : static_cast<uint64_t>(1e9 / static_cast<double>(hz) * 4294967296.0);
}

#endif

}  // namespace

uint64_t TicksNs() {
#if defined(__x86_64__) || defined(__aarch64__)
  static const uint64_t factor = Calibrate();
  if (factor == 0) return SystemNs();
#if defined(__x86_64__)
  const uint64_t count = __rdtsc();
#else
  uint64_t count = 0;
  asm volatile("mrs %0, cntvct_el0" : "=r"(count));
#endif
  return static_cast<uint64_t>(static_cast<unsigned __int128>(count) * factor >> 32);
#else
  return SystemNs();
#endif
}

}  // namespace npu
