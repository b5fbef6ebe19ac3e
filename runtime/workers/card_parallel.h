// The threads of one card as kernels see them: a oneTBB arena as wide as the card's share of the cores.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "base/task/parallel.h"

namespace npu::rt {

// Below this a split costs more than it saves (docs/performance.md, Runtime).
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
  void Share(int64_t n, int64_t grain, Block block, void* body, bool measure);

  struct Arenas;
  std::atomic<int> workers_;
  std::unique_ptr<Arenas> arenas_;
};

// The same threads for work that was estimated too short to be shared: the first block is run here and measured before
// another thread is asked, so that a wrong estimate costs one block.
class ShortWork final : public Parallel {
 public:
  explicit ShortWork(CardParallel& card) : card_(card) {}
  int Workers() const override { return card_.Workers(); }

 protected:
  void Run(int64_t n, int64_t grain, Block block, void* body) override { card_.Share(n, grain, block, body, /*measure=*/true); }

 private:
  CardParallel& card_;
};

}  // namespace npu::rt
