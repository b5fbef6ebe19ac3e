#include "ops/core/executor.h"

#include "ops/core/trace.h"

namespace npu::ops {

Status Executor::Run(std::byte* scratch, Parallel& parallel) {
  if (nothing_to_do) return {};
  std::array<TensorObject*, 4> kept{};
  for (size_t i = 0; i < live.size(); ++i) kept[i] = live[i].get();
  const Call call{*op, Args(arguments.data()), scratch, scratch_bytes, parallel, state.data(), kept.data()};
  if (!Trace::On()) [[likely]]
    return op->run(call);
  const auto start = Trace::Clock::now();
  Status status = op->run(call);
  Trace::Ran(*op, call.args, start, Trace::Clock::now(), status);
  return status;
}

Executor* Executor::Copy() {
  Executor* e = Pool<Executor>::New();
  if (e == nullptr) return nullptr;
  e->op = op;
  e->scratch_bytes = scratch_bytes;
  e->nothing_to_do = nothing_to_do;
  e->cost_ns = cost_ns;
  e->arguments.CopyFrom(arguments);
  e->state.CopyFrom(state);
  e->live = live;
  return e;
}

Result<Executor*> FindExecutor(const OpDef& op, void* p) {
  if (p == nullptr) {
    return Error(Code::kNullPointer, "{}: executor is null.", op.name)
        .Remedy("Pass the executor that {}GetWorkspaceSize returned.", op.name);
  }
  Executor* e = Pool<Executor>::Find(p);
  if (e == nullptr) {
    return Error(Code::kInvalidParam, "{}: {} is not a live executor: it was used up by an earlier call or is foreign.",
                 op.name, p)
        .Remedy("Call {}GetWorkspaceSize again, or aclSetAclOpExecutorRepeatable before the first use.", op.name);
  }
  if (e->op != &op) {
    return Error(Code::kInvalidParam, "{}: the executor was made by {}GetWorkspaceSize.", op.name, e->op->name)
        .Remedy("Pass the executor that {}GetWorkspaceSize returned.", op.name);
  }
  return e;
}

void DestroyExecutor(Executor* e) {
  if (e != nullptr) Pool<Executor>::Delete(e);
}

}  // namespace npu::ops
