// Copies and fills.
#include "runtime/memory/copy.h"

#include <algorithm>
#include <vector>

#include "device/strict/strict.h"
#include "gen/calls/acl.h"
#include "runtime/context/context.h"
#include "shim/acl/args.h"

namespace npu::calls {
namespace {

using rt::CopyKind;
using rt::CopyPlan;

Status Blocking(const CopyPlan& plan, const char* function) {
  NPU_ASSIGN(Ref<rt::Context> context, rt::Current(function));
  return rt::CopyHere(plan, context->pool());
}

// Queued where that is possible. Pageable memory may change as soon as the call returns: a source is copied to a place
// of ours unless the stream is idle anyway; into a destination the result has to go before the call returns, so the
// stream is emptied and the copy made here, as the real runtime does in both cases. Strict memory takes no short cut on
// an idle stream: whether a stream happens to be idle must not decide what is found.
Status Queued(const CopyPlan& plan, rt::TaskStream& stream, const char* function) {
  if (plan.HostToHost()) {
    return Error(Code::kFeatureNotSupported, "{}: dst and src are both memory of the host.", function)
        .Remedy("Use memcpy or aclrtMemcpy.");
  }
  if (!plan.Pageable()) return rt::CopyOn(plan, stream);
  if (plan.dst.place != rt::Place::kPageable && (strict::On() || !stream.Idle())) {
    NPU_ASSIGN(const bool queued, rt::CopyStagedOn(plan, stream));
    if (queued) return {};
  }
  NPU_TRY(stream.Synchronize(Deadline::Never()));
  return Blocking(plan, function);
}

struct FillArgs {
  void* ptr;
  size_t room, bytes;
  const char* param;
};

Result<rt::Side> PlanFill(const FillArgs& args, const char* function) {
  NPU_TRY(NotNull(args.ptr, function, args.param));
  if (args.bytes > args.room) {
    return Error(Code::kOutOfRange, "{}: {} bytes are to be filled, but the buffer has {}.", function, args.bytes,
                 args.room)
        .Remedy("Pass the size of the buffer as maxCount.");
  }
  NPU_ASSIGN(const rt::Side side, rt::LookAt(args.ptr, args.bytes, function, args.param));
  if (side.place == rt::Place::kPageable) {
    return Error(Code::kOutOfRange, "{}: {} {} is neither device memory nor pinned.", function, args.param,
                 fmt::ptr(args.ptr))
        .Remedy("Pass an address of aclrtMalloc; for host memory use memset.");
  }
  return side;
}

Status CheckWords(const void* ptr, size_t room, size_t count, const char* function) {
  if (count > room / 4) return Error(Code::kInvalidParam, "{}: {} words do not fit {} bytes.", function, count, room);
  if (reinterpret_cast<uintptr_t>(ptr) % 4 != 0) {
    return Error(Code::kInvalidParam, "{}: ptr {} is not aligned to 4 bytes.", function, fmt::ptr(ptr));
  }
  return {};
}

struct Batch {
  void** dsts;
  size_t* dest_maxs;
  void** srcs;
  size_t* sizes;
  size_t count;
  size_t* fail_index;
};

// Checks all entries before the first byte moves.
Result<std::vector<CopyPlan>> PlanBatch(const Batch& batch, const char* function) {
  if (batch.fail_index != nullptr) *batch.fail_index = SIZE_MAX;
  NPU_TRY(NotNull(batch.dsts, function, "dsts"));
  NPU_TRY(NotNull(batch.dest_maxs, function, "destMaxs"));
  NPU_TRY(NotNull(batch.srcs, function, "srcs"));
  NPU_TRY(NotNull(batch.sizes, function, "sizes"));
  NPU_TRY(NotZero(batch.count, function, "numBatches"));
  std::vector<CopyPlan> plans;
  for (size_t i = 0; i < batch.count; ++i) {
    if (batch.sizes[i] == 0) continue;
    const auto fail = [&](Status status) {
      if (batch.fail_index != nullptr) *batch.fail_index = i;
      return status;
    };
    if (batch.sizes[i] > batch.dest_maxs[i]) {
      return fail(Error(Code::kInvalidParam, "{}: sizes[{}] is {}, but destMaxs[{}] is {}.", function, i,
                        batch.sizes[i], i, batch.dest_maxs[i]));
    }
    auto plan =
        rt::PlanCopy({batch.dsts[i], batch.dest_maxs[i], batch.srcs[i], batch.sizes[i], CopyKind::kDefault}, function);
    if (!plan.ok()) return fail(plan.status());
    const bool to_device = plan->dst.place == rt::Place::kDevice, from_device = plan->src.place == rt::Place::kDevice;
    if ((to_device && from_device) || plan->HostToHost()) {
      return fail(Error(Code::kOutOfRange,
                        "{}: entry {} copies from {} to {}; one side must be device memory and the other host memory.",
                        function, i, from_device ? "device" : "host", to_device ? "device" : "host"));
    }
    plans.push_back(*plan);
  }
  return plans;
}

Status BatchNow(const Batch& batch, const char* function) {
  NPU_ASSIGN(Ref<rt::Context> context, rt::Current(function));
  NPU_ASSIGN(const std::vector<CopyPlan> plans, PlanBatch(batch, function));
  for (const CopyPlan& plan : plans) NPU_TRY(rt::CopyHere(plan, context->pool()));
  return {};
}

Status BatchOn(const Batch& batch, aclrtStream stream, const char* function) {
  NPU_ASSIGN(Ref<rt::TaskStream> found, rt::ResolveTaskStream(stream, function));
  NPU_ASSIGN(const std::vector<CopyPlan> plans, PlanBatch(batch, function));
  for (const CopyPlan& plan : plans) NPU_TRY(Queued(plan, *found, function));
  return {};
}

}  // namespace

Status aclrtMemcpy(void* dst, size_t destMax, const void* src, size_t count, aclrtMemcpyKind kind) {
  if (count == 0) return {};
  NPU_NOT_NULL(dst);
  NPU_NOT_NULL(src);
  NPU_ASSIGN(const CopyKind copy_kind, rt::CopyKindOf(static_cast<int>(kind), __func__));
  if (count <= destMax && dst == src) return {};
  NPU_TRY(rt::Current(__func__).status());
  NPU_ASSIGN(const CopyPlan plan, rt::PlanCopy({dst, destMax, src, count, copy_kind}, __func__));
  return Blocking(plan, __func__);
}

Status aclrtMemcpyAsync(void* dst, size_t destMax, const void* src, size_t count, aclrtMemcpyKind kind,
                        aclrtStream stream) {
  if (count == 0) return {};
  NPU_NOT_NULL(dst);
  NPU_NOT_NULL(src);
  NPU_ASSIGN(const CopyKind copy_kind, rt::CopyKindOf(static_cast<int>(kind), __func__));
  if (copy_kind == CopyKind::kHostToHost) {
    return Error(Code::kFeatureNotSupported, "{}: copies from host to host are not queued.", __func__)
        .Remedy("Use memcpy or aclrtMemcpy.");
  }
  NPU_ASSIGN(Ref<rt::TaskStream> found, rt::ResolveTaskStream(stream, __func__));
  NPU_ASSIGN(const CopyPlan plan, rt::PlanCopy({dst, destMax, src, count, copy_kind}, __func__));
  if (dst == src) return {};
  return Queued(plan, *found, __func__);
}

Status aclrtMemcpyAsyncWithCondition(void* dst, size_t destMax, const void* src, size_t count, aclrtMemcpyKind kind,
                                     aclrtStream stream) {
  return calls::aclrtMemcpyAsync(dst, destMax, src, count, kind, stream);
}

Status aclrtMemcpy2d(void* dst, size_t dpitch, const void* src, size_t spitch, size_t width, size_t height,
                     aclrtMemcpyKind kind) {
  if (width == 0 || height == 0) return {};
  NPU_ASSIGN(const CopyKind copy_kind, rt::CopyKindOf(static_cast<int>(kind), __func__));
  NPU_ASSIGN(const CopyPlan plan, rt::PlanCopy2d(dst, dpitch, src, spitch, width, height, copy_kind, __func__));
  return Blocking(plan, __func__);
}

Status aclrtMemcpy2dAsync(void* dst, size_t dpitch, const void* src, size_t spitch, size_t width, size_t height,
                          aclrtMemcpyKind kind, aclrtStream stream) {
  if (width == 0 || height == 0) return {};
  NPU_ASSIGN(const CopyKind copy_kind, rt::CopyKindOf(static_cast<int>(kind), __func__));
  NPU_ASSIGN(Ref<rt::TaskStream> found, rt::ResolveTaskStream(stream, __func__));
  NPU_ASSIGN(const CopyPlan plan, rt::PlanCopy2d(dst, dpitch, src, spitch, width, height, copy_kind, __func__));
  return Queued(plan, *found, __func__);
}

// The attributes say where the sides are, which the addresses say as well.
Status aclrtMemcpyBatch(void** dsts, size_t* destMaxs, void** srcs, size_t* sizes, size_t numBatches,
                        aclrtMemcpyBatchAttr*, size_t*, size_t, size_t* failIndex) {
  return BatchNow({dsts, destMaxs, srcs, sizes, numBatches, failIndex}, __func__);
}
Status aclrtMemcpyBatchV2(void** dsts, size_t* destMaxs, void** srcs, size_t* sizes, size_t numBatches,
                          aclrtMemcpyBatchAttr*, size_t*, size_t) {
  return BatchNow({dsts, destMaxs, srcs, sizes, numBatches, nullptr}, __func__);
}
Status aclrtMemcpyBatchAsync(void** dsts, size_t* destMaxs, void** srcs, size_t* sizes, size_t numBatches,
                             aclrtMemcpyBatchAttr*, size_t*, size_t, size_t* failIndex, aclrtStream stream) {
  return BatchOn({dsts, destMaxs, srcs, sizes, numBatches, failIndex}, stream, __func__);
}
Status aclrtMemcpyBatchAsyncV2(void** dsts, size_t* destMaxs, void** srcs, size_t* sizes, size_t numBatches,
                               aclrtMemcpyBatchAttr*, size_t*, size_t, aclrtStream stream) {
  return BatchOn({dsts, destMaxs, srcs, sizes, numBatches, nullptr}, stream, __func__);
}

Status aclrtMemset(void* devPtr, size_t maxCount, int32_t value, size_t count) {
  if (count == 0) return {};
  NPU_ASSIGN(Ref<rt::Context> context, rt::Current(__func__));
  NPU_ASSIGN(const rt::Side side, PlanFill({devPtr, maxCount, count, "devPtr"}, __func__));
  return rt::FillHere(side, static_cast<uint32_t>(value), 1, count, context->pool(), __func__);
}

Status aclrtMemsetAsync(void* devPtr, size_t maxCount, int32_t value, size_t count, aclrtStream stream) {
  if (count == 0) return {};
  NPU_NOT_NULL(devPtr);
  NPU_ASSIGN(Ref<rt::TaskStream> found, rt::ResolveTaskStream(stream, __func__));
  NPU_ASSIGN(const rt::Side side, PlanFill({devPtr, maxCount, count, "devPtr"}, __func__));
  return rt::FillOn(side, static_cast<uint32_t>(value), 1, count, *found, __func__);
}

Status aclrtMemsetD32(void* ptr, size_t memSize, uint32_t value, size_t N) {
  if (N == 0) return {};
  NPU_NOT_NULL(ptr);
  NPU_TRY(CheckWords(ptr, memSize, N, __func__));
  NPU_ASSIGN(Ref<rt::Context> context, rt::Current(__func__));
  NPU_ASSIGN(const rt::Side side, PlanFill({ptr, memSize, N * 4, "ptr"}, __func__));
  return rt::FillHere(side, value, 4, N, context->pool(), __func__);
}

Status aclrtMemsetD32Async(void* ptr, size_t memSize, uint32_t value, size_t N, aclrtStream stream) {
  if (N == 0) return {};
  NPU_NOT_NULL(ptr);
  NPU_TRY(CheckWords(ptr, memSize, N, __func__));
  NPU_ASSIGN(Ref<rt::TaskStream> found, rt::ResolveTaskStream(stream, __func__));
  NPU_ASSIGN(const rt::Side side, PlanFill({ptr, memSize, N * 4, "ptr"}, __func__));
  return rt::FillOn(side, value, 4, N, *found, __func__);
}

}  // namespace npu::calls
