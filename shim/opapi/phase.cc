#include "shim/opapi/phase.h"

#include <algorithm>

#include "base/status/boundary.h"
#include "device/figures/layout.h"
#include "ops/core/args.h"
#include "ops/core/executor.h"
#include "ops/core/platform.h"
#include "runtime/stream/stream.h"
#include "shim/opapi/saturated.h"
#include "shim/opapi/strict_uses.h"

namespace npu::opapi {
namespace {

using ops::Executor;

// An executor with the workspace of this run; what a stream runs.
struct Bound {
  Executor* executor;
  std::byte* scratch;
  int card, stream;  // for reports
  rt::Stream* saturating;  // the stream, when it is one whose results stay in range

  TaskWork Work() const {
    return {.op = executor->op->name.data(),
            .unit = static_cast<uint8_t>(device::Unit::kVector),  // the meter knows better by the name
            .flow = static_cast<uint8_t>(device::Flow::kKernel),
            .bytes = executor->bytes};
  }
  Outcome Now(TaskContext& context) const {
    if (strict::On()) [[unlikely]] return Outcome::Done(Watched(context));
    return Outcome::Done(Plainly(context));
  }
  Status Plainly(TaskContext& context) const {
    if (saturating == nullptr) [[likely]] return executor->Run(scratch, context.parallel);
    return Saturated(context);
  }
  Status Saturated(TaskContext& context) const;
  Status Watched(TaskContext& context) const;
};

class OpTask final : public Task {
 public:
  explicit OpTask(Bound run) : run_(run) {}
  ~OpTask() override { ops::DestroyExecutor(run_.executor); }
  Outcome Run(TaskContext& context) override { return run_.Now(context); }
  const char* Name() const override { return run_.executor->op->name.data(); }
  uint32_t CostNs() const override { return static_cast<uint32_t>(std::min(run_.executor->cost_ns, 4e9)); }
  TaskWork Work() const override { return run_.Work(); }

 private:
  const Bound run_;
};

// What Launch is given: it either runs the executor at once or turns it into a task.
struct Launching {
  Bound run;
  bool queued = false;
};

Status Workspace(const ops::OpDef& op, const Executor& e, void* workspace, uint64_t bytes, std::byte** scratch) {
  *scratch = nullptr;
  if (e.scratch_bytes == 0) return {};
  if (workspace == nullptr) {
    return Error(Code::kNullPointer, "{}: workspace is null, but {} bytes are needed.", op.name, e.scratch_bytes)
        .Remedy("Allocate workspaceSize bytes of device memory between the two calls.");
  }
  if (bytes < e.scratch_bytes) {
    return Error(Code::kInvalidParam, "{}: workspaceSize is {}, but {} bytes are needed.", op.name, bytes,
                 e.scratch_bytes)
        .Remedy("Pass the size that {}GetWorkspaceSize returned.", op.name);
  }
  const ops::Platform& platform = ops::ThePlatform();
  if (platform.check != nullptr) NPU_TRY(platform.check(workspace, e.scratch_bytes, op.name, "workspace"));
  *scratch = static_cast<std::byte*>(platform.local != nullptr ? platform.local(workspace) : workspace);
  return {};
}

// Whether kernels of the stream's card reach all tensors.
Status Reachable(const ops::OpDef& op, Executor& e, const rt::Stream& stream) {
  const auto reach = ops::ThePlatform().reach;
  if (reach == nullptr) return {};
  const ops::Args args(e.arguments.data());
  for (size_t p = 0; p < op.params.size(); ++p) {
    const ops::Kind kind = op.params[p].kind;
    if (kind != ops::Kind::tensor && kind != ops::Kind::tensor_list) continue;
    for (const Tensor& tensor : args.Many<Tensor>(ops::Token{static_cast<uint8_t>(p)})) {
      if (tensor.data != nullptr) NPU_TRY(reach(tensor.data, stream.card(), op.name, op.params[p].name));
    }
  }
  return {};
}

Status Bound::Saturated(TaskContext& context) const {
  NPU_TRY(executor->Run(scratch, context.parallel));
  if (SaturateResults(*executor, context.parallel)) saturating->NoteOverflow();
  return {};
}

// The same under strict memory: a fault names the operator, and what it wrote is looked at.
Status Bound::Watched(TaskContext& context) const {
  const StrictUses uses(*executor, scratch);
  const strict::Running running(executor->op->name, card, stream);
  Status status = Plainly(context);
  strict::Ran(executor->op->name, card, stream, uses.all());
  return status;
}

// Owns the executor until a task does.
struct Owned {
  Executor* e;
  ~Owned() { ops::DestroyExecutor(e); }
};

}  // namespace

Status Launch(const ops::OpDef& op, void* workspace, uint64_t bytes, void* raw_executor, void* raw_stream) {
  NPU_ASSIGN(Executor * given, ops::FindExecutor(op, raw_executor));
  Owned owned{given->repeatable ? given->Copy() : given};
  if (owned.e == nullptr) return Error(Code::kBadAlloc, "{}: no memory for an executor.", op.name);
  std::byte* scratch = nullptr;
  NPU_TRY(Workspace(op, *owned.e, workspace, bytes, &scratch));
  NPU_ASSIGN(Ref<rt::Stream> stream, rt::ResolveStream(raw_stream, op.name.data()));
  if (owned.e->nothing_to_do) return {};
  NPU_TRY(Reachable(op, *owned.e, *stream));

  if (strict::On()) {
    const StrictUses uses(*owned.e, scratch);
    if (!strict::Queued({op.name, stream->card(), static_cast<int>(stream->id()), uses.all(), uses.copy()}, stream->line())) {
      return Error(Code::kOutOfRange, "{}: one of its tensors lies in memory that was freed.", op.name)
          .Remedy("Free memory after the last use of it. Strict memory has told which.");
    }
  }
  Launching launching{{owned.e, scratch, stream->card(), static_cast<int>(stream->id()), stream->saturates() ? &*stream : nullptr}};
  const auto cost = static_cast<uint32_t>(std::clamp(owned.e->cost_ns, 1.0, 4e9));
  const Status status = stream->Launch(
      &launching, [](void* self, TaskContext& context) { return static_cast<Launching*>(self)->run.Now(context); },
      [](void* self) -> TaskPtr {
        auto* l = static_cast<Launching*>(self);
        auto task = std::make_unique<OpTask>(l->run);
        l->queued = true;
        return task;
      },
      {cost, launching.run.Work()});
  if (launching.queued) owned.e = nullptr;  // the task's now
  return status;
}

int32_t Phase2(const ops::OpDef& op, void* workspace, uint64_t workspace_bytes, aclOpExecutor* executor,
               void* stream) noexcept {
  return boundary::Run(op.name.data(), NnCode,
                       [&] { return Launch(op, workspace, workspace_bytes, executor, stream); });
}

}  // namespace npu::opapi
