// The threads of one card as kernels see them: the caller and up to workers - 1 helpers.
//
// A range is offered to whoever is awake at once; sleeping helpers are woken only when what is left is worth a wake-up. Each
// core takes blocks of its own part first, then of the others', so a helper that comes late, or loses its core to another
// process, costs no more than the block it holds. A waiting caller runs blocks of its own range only: it may hold scratch of
// the thread it runs on.
#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>

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
  // Of its share the card may use so many thousandths, one worker at least: the limit that a client set for the device.
  void Limit(int thousandths);

 protected:
  void Run(int64_t n, int64_t grain, Block block, void* body) override { Share({n, grain, block, body}, Workers(), /*measured=*/false); }

 private:
  friend class CardView;
  class Team;
  struct Range {
    int64_t n, grain;
    Block block;
    void* body;
  };
  // `measured`: the first block is run here before anybody else hears of the range.
  void Share(const Range& range, int workers, bool measured);

  std::mutex mutex_;  // guards the next two
  int share_;
  int limit_ = 1000;
  std::atomic<int> workers_;  // what follows from both
  std::unique_ptr<Team> team_;
};

// The same threads as one task sees them. Of the card's workers it may use the thousandths that its stream is limited to. Work
// that was estimated too short to be shared is measured: the first block is run here before another thread is asked, so that a
// wrong estimate costs one block.
class CardView final : public Parallel {
 public:
  CardView(CardParallel& card, int thousandths, bool measured) : card_(card), thousandths_(thousandths), measured_(measured) {}
  int Workers() const override { return PartOf(card_.Workers(), thousandths_); }
  static int PartOf(int workers, int thousandths) { return std::max(1, (workers * thousandths + 999) / 1000); }

 protected:
  void Run(int64_t n, int64_t grain, Block block, void* body) override { card_.Share({n, grain, block, body}, Workers(), measured_); }

 private:
  CardParallel& card_;
  const int thousandths_;
  const bool measured_;
};

}  // namespace npu::rt
