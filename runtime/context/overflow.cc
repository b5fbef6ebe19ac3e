#include "runtime/context/overflow.h"

#include <cstring>
#include <memory>

#include "runtime/context/context.h"
#include "runtime/memory/copy.h"
#include "runtime/stream/task_stream.h"

namespace npu::rt {
namespace {

class ReadTask final : public Task {
 public:
  ReadTask(Context& context, char* local, size_t bytes, FlagAs as) : context_(context), local_(local), bytes_(bytes), as_(as) {}
  Outcome Run(TaskContext&) override {
    const auto word = context_.overflow() ? static_cast<uint32_t>(as_) : 0;
    std::memset(local_, 0, bytes_);
    std::memcpy(local_, &word, sizeof word);
    return Outcome::Done();
  }
  const char* Name() const override { return "overflow status"; }

 private:
  Context& context_;  // the stream holds it
  char* const local_;
  const size_t bytes_;
  const FlagAs as_;
};

class ClearTask final : public Task {
 public:
  explicit ClearTask(Context& context) : context_(context) {}
  Outcome Run(TaskContext&) override {
    context_.ClearOverflow();
    return Outcome::Done();
  }
  const char* Name() const override { return "overflow clear"; }

 private:
  Context& context_;
};

}  // namespace

void TaskStream::NoteOverflow() {
  if (settings_.overflow_switch.load(std::memory_order_relaxed) != 0) options_.context->NoteOverflow();
}

Status QueueOverflowRead(void* client, size_t bytes, FlagAs as, Stream& stream, const char* function, const char* param) {
  if (bytes < sizeof(uint32_t)) {
    return Error(Code::kInvalidParam, "{}: {} has {} bytes.", function, param, bytes).Remedy("The status takes 4 bytes at least.");
  }
  NPU_ASSIGN(const Side side, LookAt(client, bytes, function, param));
  if (side.place != Place::kDevice) {
    return Error(Code::kInvalidParam, "{}: {} ({}) is memory of the host.", function, param, client).Remedy("Pass device memory.");
  }
  if (strict::On()) {
    const strict::Use use[] = {{{side.local, bytes, {}, {}}, strict::Does::kWrites, param}};
    strict::Queued({.call = function, .card = stream.card(), .stream = static_cast<int>(stream.id()), .uses = use}, stream.line());
  }
  return stream.Enqueue(std::make_unique<ReadTask>(stream.context(), side.local, bytes, as));
}

Status QueueOverflowClear(Stream& stream) { return stream.Enqueue(std::make_unique<ClearTask>(stream.context())); }

}  // namespace npu::rt
