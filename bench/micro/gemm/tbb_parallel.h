// The card's threads as oneTBB gives them, for benchmarks outside a runtime.
#pragma once

#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>

#include "base/task/parallel.h"

namespace npu::bench {

class TbbParallel final : public Parallel {
 public:
  explicit TbbParallel(int workers) : workers_(workers), arena_(workers) {}
  int Workers() const override { return workers_; }

 protected:
  void Run(int64_t n, int64_t grain, Block block, void* body) override {
    const int64_t blocks = (n + grain - 1) / grain;
    arena_.execute([&] {
      oneapi::tbb::parallel_for(
          int64_t{0}, blocks, [&](int64_t i) { block(body, i * grain, i * grain + grain < n ? i * grain + grain : n); },
          oneapi::tbb::simple_partitioner());
    });
  }

 private:
  int workers_;
  oneapi::tbb::task_arena arena_;
};

}  // namespace npu::bench
