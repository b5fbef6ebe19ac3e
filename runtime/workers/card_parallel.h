// The threads of one card as kernels see them: the caller and up to workers - 1 helpers.
//
// A range is offered to whoever is awake at once; sleeping helpers are woken only when what is left is worth a wake-up. All
// take blocks from one counter, so a helper that comes late, or loses its core to another process, costs no more than the
// block it holds. A waiting caller runs blocks of its own range only: it may hold scratch of the thread it runs on.
#pragma once

#include <atomic>
#include <memory>

#include "base/task/parallel.h"

namespace npu::rt {

// Work below this is not worth waking a sleeping thread for (docs/performance.md, Runtime).
inline constexpr int64_t kWorthSplittingNs = 20'000;

class CardParallel final : public Parallel {
 public:
  explicit CardParallel(int workers);
  ~CardParallel() override;
  int Workers() const override { return workers_.load(std::memory_order_relaxed); }
  // A new share, when cards or processes come and go. Results do not depend on it.
  void Resize(int workers);

 protected:
  void Run(int64_t n, int64_t grain, Block block, void* body) override;

 private:
  friend class ShortWork;
  class Team;
  // `measured`: the first block is run here before anybody else hears of the range.
  void Share(int64_t n, int64_t grain, Block block, void* body, bool measured);

  std::atomic<int> workers_;
  std::unique_ptr<Team> team_;
};

// The same threads for work that was estimated too short to be shared: the first block is run here and measured before
// another thread is asked, so that a wrong estimate costs one block.
class ShortWork final : public Parallel {
 public:
  explicit ShortWork(CardParallel& card) : card_(card) {}
  int Workers() const override { return card_.Workers(); }

 protected:
  void Run(int64_t n, int64_t grain, Block block, void* body) override { card_.Share(n, grain, block, body, /*measured=*/true); }

 private:
  CardParallel& card_;
};

}  // namespace npu::rt
