// The workers of one card: a bounded number of threads that serve ready streams.
//
//   Pool& pool = Pool::Of(card);
//   pool.Push(stream, Pool::Wake::kOne);     // called by streams only
//
// Threads start with the first work. An idle worker sleeps on a futex; it spins briefly only after it has just run
// something. Pools live until the process ends, so a late wake-up from anywhere finds them.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>

#include "base/handle/ref.h"
#include "base/status/status.h"
#include "device/figures/meter.h"
#include "runtime/workers/card_parallel.h"

namespace npu::rt {

class TaskStream;

class Pool {
 public:
  static constexpr int kPriorities = 8;  // 0 is served first, as on the card
  enum class Wake : uint8_t { kNone, kOne };

  // The pool of a physical card, made at first use with the card's share of the cores.
  static Pool& Of(int card);
  // Tells all workers of all pools to leave, and waits a moment for running tasks.
  static void StopAll();
  // Shares the cores again, between so many cards in use by all processes of the machine.
  static void ShareBetween(int cards_in_use);

  // For tests: a pool of its own.
  Pool(int card, int workers);
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  // Queues a ready stream. kNone: somebody else is about to run it; Kick() makes up for that.
  void Push(Ref<TaskStream> stream, int priority, Wake wake);
  void Kick();

  // Makes sure that at least one thread exists; the error names the limit that was hit.
  Status EnsureWorker();

  // Time that work took; now and then the cores are shared anew between the cards that are in use.
  void NoteBusy(uint64_t ns);

  CardParallel& parallel() { return parallel_; }
  device::Meter& meter() { return meter_; }
  int card() const { return card_; }
  int started() const { return started_.load(std::memory_order_relaxed); }

 private:
  bool StartWorker();
  void Work(int index);
  bool Surplus(int index);
  void Sleep();
  Ref<TaskStream> Pop();
  void Stop();

  const int card_;
  device::Meter& meter_;
  CardParallel parallel_;
  std::mutex mutex_;  // guards queues_ and starting a thread; held for a few instructions
  std::array<std::deque<Ref<TaskStream>>, kPriorities> queues_;
  std::atomic<int> ready_{0};     // streams in queues_
  std::atomic<int> idle_{0};      // workers asleep or about to sleep
  std::atomic<int> spinning_{0};  // workers that look for work right now
  std::atomic<int> busy_{0};      // workers inside a task
  std::atomic<uint64_t> busy_ns_{0};   // not told yet
  std::atomic<int> started_{0};        // workers with an index below this exist
  std::atomic<int> alive_{0};          // threads that may still touch this object
  std::atomic<bool> waking_{false};    // a sleeper has been woken and has not looked for work yet
  std::atomic<uint32_t> epoch_{0};     // the futex word of sleeping workers
  std::atomic<bool> stop_{false};
};

// One spin step.
inline void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield" ::: "memory");
#endif
}

}  // namespace npu::rt
