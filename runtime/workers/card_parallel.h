// The threads of one card as kernels see them: a oneTBB arena as wide as the card's share of the cores.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "base/task/parallel.h"


namespace npu::rt {

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
  struct Arenas;
  std::atomic<int> workers_;
  std::unique_ptr<Arenas> arenas_;
};

}  // namespace npu::rt
