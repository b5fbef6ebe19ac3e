// Splitting work over the threads of one card.
//
//   parallel.For(rows, /*grain=*/64, [&](int64_t begin, int64_t end) { SoftmaxRows(x, begin, end); });
//
// The range is cut into blocks of `grain` (the last may be shorter), independent of the number of workers, so results that
// are combined by block are the same for any number of workers. The body must not throw and must not wait for other tasks.
#pragma once

#include <cstdint>
#include <type_traits>

namespace npu {

class Parallel {
 public:
  virtual ~Parallel() = default;
  virtual int Workers() const = 0;

  template <class F>
  void For(int64_t n, int64_t grain, F&& body) {
    if (n <= 0) return;
    if (grain < 1) grain = 1;
    if (n <= grain) return body(int64_t{0}, n);
    using Body = std::remove_reference_t<F>;
    Run(n, grain, [](void* b, int64_t begin, int64_t end) { (*static_cast<Body*>(b))(begin, end); },
        const_cast<void*>(static_cast<const void*>(&body)));
  }

 protected:
  using Block = void (*)(void* body, int64_t begin, int64_t end);
  // Calls block(body, k*grain, min(n, (k+1)*grain)) once for every k, from any of the card's threads.
  virtual void Run(int64_t n, int64_t grain, Block block, void* body) = 0;
};

// Everything on the calling thread; for tests and for work too small to share.
class SerialParallel final : public Parallel {
 public:
  int Workers() const override { return 1; }

 protected:
  void Run(int64_t n, int64_t grain, Block block, void* body) override {
    for (int64_t i = 0; i < n; i += grain) block(body, i, i + grain < n ? i + grain : n);
  }
};

}  // namespace npu
