// What this computer can do at most, for shares in tables: float32 multiply-adds in registers, and copies of given
// sizes.
//
//   bench_peak [BYTES...]     prints {"threads": 2, "gflops": 310.0, "copy_gbs": {"1048576": 80.1}}
//
// All cores this process may use; best of several rounds. The copy counts bytes read and bytes written, as STREAM does,
// with plain and with streaming stores: the better one stands. BYTES is the size of both arrays together.
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <new>
#include <thread>
#include <vector>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "bench/cli/native/peak.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After it.
#include "hwy/cache_control.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace npu::bench {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// 12 chains keep two units of latency 4 or 5 busy and fit, with factor and summand, the 16 registers of AVX2.
double MultiplyAdds(int64_t times, float* sink) {
  const hn::ScalableTag<float> d;
  auto a0 = hn::Set(d, 1.0f), a1 = a0, a2 = a0, a3 = a0, a4 = a0, a5 = a0, a6 = a0, a7 = a0, a8 = a0, a9 = a0, a10 = a0,
       a11 = a0;
  const auto m = hn::Set(d, 0.9999f), b = hn::Set(d, 1e-4f);
  for (int64_t i = 0; i < times; ++i) {
    a0 = hn::MulAdd(a0, m, b), a1 = hn::MulAdd(a1, m, b), a2 = hn::MulAdd(a2, m, b), a3 = hn::MulAdd(a3, m, b);
    a4 = hn::MulAdd(a4, m, b), a5 = hn::MulAdd(a5, m, b), a6 = hn::MulAdd(a6, m, b), a7 = hn::MulAdd(a7, m, b);
    a8 = hn::MulAdd(a8, m, b), a9 = hn::MulAdd(a9, m, b), a10 = hn::MulAdd(a10, m, b), a11 = hn::MulAdd(a11, m, b);
  }
  const auto sum = hn::Add(hn::Add(hn::Add(a0, a1), hn::Add(a2, a3)), hn::Add(hn::Add(a4, a5), hn::Add(a6, a7)));
  *sink = hn::GetLane(hn::Add(sum, hn::Add(hn::Add(a8, a9), hn::Add(a10, a11))));
  return 2.0 * 12.0 * static_cast<double>(hn::Lanes(d)) * static_cast<double>(times);
}

void Copy(const float* from, float* to, size_t n, bool streaming) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  if (streaming) {
    for (size_t i = 0; i + lanes <= n; i += lanes) hn::Stream(hn::Load(d, from + i), d, to + i);
    hwy::FlushStream();
  } else {
    for (size_t i = 0; i + lanes <= n; i += lanes) hn::Store(hn::Load(d, from + i), d, to + i);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace npu::bench
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace npu::bench {
namespace {

HWY_EXPORT(MultiplyAdds);
HWY_EXPORT(Copy);

using Clock = std::chrono::steady_clock;
constexpr int kRounds = 12;       // at least
constexpr double kSeconds = 0.4;  // and so long: on a busy machine some rounds are then undisturbed
constexpr int64_t kTimes = 1'000'000;
constexpr double kLeastSeconds = 2e-3;

int Cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
  return static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
}

// Seconds from the common start to the end of the last of `threads` calls of body(thread).
double Together(int threads, const std::function<void(int)>& body) {
  std::atomic<int> waiting{0};
  std::atomic<bool> go{false};
  std::vector<std::thread> team;
  for (int t = 0; t < threads; ++t) {
    team.emplace_back([&, t] {
      waiting.fetch_add(1);
      while (!go.load(std::memory_order_acquire)) std::this_thread::yield();
      body(t);
    });
  }
  while (waiting.load() < threads) std::this_thread::yield();
  const auto start = Clock::now();
  go.store(true, std::memory_order_release);
  for (std::thread& thread : team) thread.join();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

bool MoreRounds(int done, Clock::time_point start) {
  return done < kRounds || std::chrono::duration<double>(Clock::now() - start).count() < kSeconds;
}

double Gflops(int threads) {
  std::vector<float> sinks(static_cast<size_t>(threads) * 16);
  std::vector<double> flops(static_cast<size_t>(threads));
  double best = 0;
  const auto start = Clock::now();
  for (int round = 0; MoreRounds(round, start); ++round) {
    const double seconds = Together(threads, [&](int t) {
      flops[static_cast<size_t>(t)] = HWY_DYNAMIC_DISPATCH(MultiplyAdds)(kTimes, &sinks[static_cast<size_t>(t) * 16]);
    });
    best = std::max(best, flops[0] * threads / seconds / 1e9);
  }
  return best;
}

struct Freed {
  void operator()(float* p) const { std::free(p); }
};

double CopyGbs(int threads, size_t bytes) {
  const size_t each = std::max<size_t>(bytes / 2 / sizeof(float) / static_cast<size_t>(threads) / 64 * 64, 64);
  std::vector<std::unique_ptr<float, Freed>> memory;
  for (int i = 0; i < 2 * threads; ++i) {
    auto* p = static_cast<float*>(std::aligned_alloc(4096, (each * sizeof(float) + 4095) / 4096 * 4096));
    if (p == nullptr) throw std::bad_alloc();
    std::fill_n(p, each, 1.0f);
    memory.emplace_back(p);
  }
  double best = 0;
  int repeats = 1;
  const auto start = Clock::now();
  for (int round = 0; MoreRounds(round, start); ++round) {
    const double seconds = Together(threads, [&](int t) {
      for (int r = 0; r < repeats; ++r) HWY_DYNAMIC_DISPATCH(Copy)
      (memory[static_cast<size_t>(2 * t)].get(), memory[static_cast<size_t>(2 * t + 1)].get(), each, round % 2 == 1);
    });
    if (seconds < kLeastSeconds && repeats < 1 << 16) {  // too short to be timed: not counted
      repeats *= 4;
      --round;
      continue;
    }
    best = std::max(best, 2.0 * static_cast<double>(each * sizeof(float)) * threads * repeats / seconds / 1e9);
  }
  return best;
}

}  // namespace
}  // namespace npu::bench

int main(int argc, char** argv) {
  const int threads = npu::bench::Cores();
  std::printf("{\"threads\": %d, \"gflops\": %.1f, \"copy_gbs\": {", threads, npu::bench::Gflops(threads));
  for (int i = 1; i < argc; ++i)
    std::printf("%s\"%s\": %.1f", i == 1 ? "" : ", ", argv[i],
                npu::bench::CopyGbs(threads, std::strtoull(argv[i], nullptr, 10)));
  std::printf("}}\n");
  return 0;
}
#endif
