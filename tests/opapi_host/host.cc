// A stream that runs every task at once on the calling thread, and the last error's text.
#include "base/status/last_error.h"
#include "runtime/stream/stream.h"

namespace npu::rt {
namespace {

class HostStream final : public Stream {
 public:
  Status Enqueue(TaskPtr task) override {
    const Waker waker;
    TaskContext context{parallel_, waker};
    return task->Run(context).status;
  }
  Status Launch(void* self, RunNow run, MakeTask, uint32_t) override {
    const Waker waker;
    TaskContext context{parallel_, waker};
    return run(self, context).status;
  }
  Status Synchronize(Deadline) override { return {}; }
  bool Idle() const override { return true; }
  Context& context() const override { __builtin_trap(); }
  int card() const override { return 0; }
  uint32_t id() const override { return 0; }

 private:
  SerialParallel parallel_;
};

}  // namespace

Result<Ref<Stream>> ResolveStream(void*, const char*) {
  static HostStream* const stream = new HostStream;
  return Ref<Stream>::Share(stream);
}

}  // namespace npu::rt

extern "C" __attribute__((visibility("default"))) const char* host_error_text() { return npu::TakeErrorMessage(); }
