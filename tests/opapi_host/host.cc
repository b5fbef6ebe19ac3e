// A stream that runs every task at once on the calling thread and its helpers, and the last error's text.
#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "base/status/last_error.h"
#include "device/strict/strict.h"
#include "runtime/stream/stream.h"

namespace npu::rt {
namespace {

std::atomic<int> workers{1};

// Blocks go to whichever thread is free; with one worker, all of them in order to the caller.
class HostParallel final : public Parallel {
 public:
  int Workers() const override { return workers.load(std::memory_order_relaxed); }

 protected:
  void Run(int64_t n, int64_t grain, Block block, void* body) override {
    std::atomic<int64_t> next{0};
    auto work = [&] {
      for (int64_t i; (i = next.fetch_add(grain, std::memory_order_relaxed)) < n;)
        block(body, i, std::min(n, i + grain));
    };
    std::vector<std::thread> others;
    for (int i = 1; i < Workers(); ++i) others.emplace_back(work);
    work();
    for (std::thread& t : others) t.join();
  }
};

class HostStream final : public Stream {
 public:
  Status Enqueue(TaskPtr task) override {
    const Waker waker;
    TaskContext context{parallel_, waker};
    return task->Run(context).status;
  }
  Status Launch(void* self, RunNow run, MakeTask, const Quick&) override {
    const Waker waker;
    TaskContext context{parallel_, waker};
    return run(self, context).status;
  }
  Status Synchronize(Deadline) override { return {}; }
  bool Idle() const override { return true; }
  void NoteOverflow() override {}
  Context& context() const override { __builtin_trap(); }
  int card() const override { return 0; }
  uint32_t id() const override { return 0; }

 private:
  HostParallel parallel_;
};

}  // namespace

Result<Ref<Stream>> ResolveStream(void*, const char*) {
  static HostStream* const stream = new HostStream;
  return Ref<Stream>::Share(stream);
}

}  // namespace npu::rt

// Host memory is nobody's card: it is not watched.
namespace npu::strict {
std::atomic<bool> on{false};
bool Queued(const Step&, Line&) { return true; }
void Ran(std::string_view, int, int, std::span<const Use>) {}
Running::Running(std::string_view, int, int) : slot_(-1) {}
Running::~Running() = default;
}  // namespace npu::strict

extern "C" __attribute__((visibility("default"))) const char* host_error_text() { return npu::TakeErrorMessage(); }
// How many threads the operators called from now on may use.
extern "C" __attribute__((visibility("default"))) void host_use_workers(int count) {
  npu::rt::workers.store(count, std::memory_order_relaxed);
}
