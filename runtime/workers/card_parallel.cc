#include "runtime/workers/card_parallel.h"

#include <tbb/blocked_range.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <chrono>

#include "runtime/workers/process.h"

namespace npu::rt {
namespace {
// With fewer blocks, one block is too large a part of the whole to be spent on measuring.
constexpr int64_t kBlocksToMeasure = 16;
}  // namespace

// One arena for each width ever asked for, so that a resize never disturbs a running kernel.
struct CardParallel::Arenas {
  std::mutex mutex;
  std::vector<std::unique_ptr<tbb::task_arena>> by_width;
  std::atomic<tbb::task_arena*> current{nullptr};

  void Choose(int width) {
    const std::lock_guard lock(mutex);
    if (by_width.size() <= static_cast<size_t>(width)) by_width.resize(width + 1);
    auto& arena = by_width[width];
    if (!arena) arena = std::make_unique<tbb::task_arena>(width, /*reserved_for_masters=*/1);
    current.store(arena.get(), std::memory_order_release);
  }
};

CardParallel::CardParallel(int workers) : workers_(std::max(1, workers)), arenas_(std::make_unique<Arenas>()) {
  arenas_->Choose(Workers());
}

CardParallel::~CardParallel() = default;

void CardParallel::Resize(int workers) {
  workers = std::max(1, workers);
  if (workers == Workers()) return;
  arenas_->Choose(workers);
  workers_.store(workers, std::memory_order_relaxed);
}

void CardParallel::Run(int64_t n, int64_t grain, Block block, void* body) { Share(n, grain, block, body, /*measure=*/false); }

void CardParallel::Share(int64_t n, int64_t grain, Block block, void* body, bool measure) {
  const int64_t blocks = (n + grain - 1) / grain;
  int64_t next = 0;
  const auto run = [&](int64_t k) { block(body, k * grain, std::min(n, (k + 1) * grain)); };
  bool split = Workers() > 1 && !Exiting();
  if (split && (measure || blocks >= kBlocksToMeasure)) {
    const auto start = std::chrono::steady_clock::now();
    run(next++);
    const auto one = std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - start).count();
    split = one * (blocks - 1) >= kWorthSplittingNs;
  }
  if (!split) {
    while (next < blocks) run(next++);
    return;
  }
  arenas_->current.load(std::memory_order_acquire)->execute([&] {
    // Isolated: while this thread waits for its last block it must not pick up a block of another stream's kernel, which
    // may use the same thread-local scratch.
    tbb::this_task_arena::isolate([&] {
      tbb::parallel_for(tbb::blocked_range<int64_t>(next, blocks, 1), [&](const tbb::blocked_range<int64_t>& range) {
        for (int64_t k = range.begin(); k != range.end(); ++k) run(k);
      });
    });
  });
}

}  // namespace npu::rt
