// Streams: making and destroying them, waiting for them, their settings.
#include "runtime/stream/stream.h"

#include <cstring>

#include "base/handle/table.h"
#include "gen/calls/acl.h"
#include "runtime/context/context.h"
#include "runtime/context/devices.h"
#include "runtime/context/kinds.h"
#include "shim/acl/args.h"
#include "shim/acl/kinds.h"

namespace npu::calls {
namespace {

constexpr uint32_t kMostAbortMs = 2'160'000;

struct StreamConfig : Counted {
  aclrtStreamConfigHandle options{};
};
HandleTable<StreamConfig>& configs() {
  static auto* table = new HandleTable<StreamConfig>(rt::kStreamConfigHandle, "stream configuration");
  return *table;
}

// Streams that other engines drive: waiting for them or asking how far they are has no meaning.
bool Unwatched(uint32_t flags, bool synchronise) {
  const uint32_t mask = ACL_STREAM_PERSISTENT | ACL_STREAM_DEVICE_USE_ONLY | (synchronise ? ACL_STREAM_CPU_SCHEDULE : 0);
  return (flags & mask) != 0;
}

Status Synchronise(aclrtStream stream, Deadline deadline, const char* function) {
  NPU_ASSIGN(Ref<rt::TaskStream> found, rt::ResolveAnyStream(stream, function));
  if (Unwatched(found->flags(), true)) return {};
  return found->Synchronize(deadline);
}

Status Destroy(aclrtStream stream, bool force, const char* function) {
  NPU_NOT_NULL(stream);
  NPU_ASSIGN(Ref<rt::TaskStream> found, rt::ResolveTaskStream(stream, function));
  return static_cast<rt::Context&>(found->context()).DestroyStream(stream, force, function);
}

Status Create(aclrtStream* stream, uint32_t priority, uint32_t flag, const char* function) {
  NPU_NOT_NULL(stream);
  NPU_ASSIGN(Ref<rt::Context> context, rt::Current(function));
  NPU_ASSIGN(*stream, context->CreateStream({priority, flag}, function));
  return {};
}

}  // namespace

Status aclrtCreateStream(aclrtStream* stream) { return Create(stream, 0, 0, __func__); }

Status aclrtCreateStreamWithConfig(aclrtStream* stream, uint32_t priority, uint32_t flag) {
  return Create(stream, priority, flag, __func__);
}

aclrtStreamConfigHandle* aclrtCreateStreamConfigHandle() {
  return static_cast<aclrtStreamConfigHandle*>(configs().Add(Ref<StreamConfig>::Adopt(new StreamConfig)));
}

Status aclrtDestroyStreamConfigHandle(aclrtStreamConfigHandle* handle) {
  NPU_NOT_NULL(handle);
  return configs().Remove(handle, __func__, "handle").status();
}

Status aclrtSetStreamConfigOpt(aclrtStreamConfigHandle* handle, aclrtStreamConfigAttr attr, const void* attrValue, size_t valueSize) {
  NPU_NOT_NULL(handle);
  NPU_NOT_NULL(attrValue);
  NPU_ASSIGN(const Ref<StreamConfig> config, configs().Get(handle, __func__, "handle"));
  const auto store = [&](auto& field) -> Status {
    if (valueSize != sizeof field) {
      return Error(Code::kInvalidParam, "aclrtSetStreamConfigOpt: valueSize is {}, but option {} has {} bytes.", valueSize,
                   static_cast<int>(attr), sizeof field);
    }
    std::memcpy(&field, attrValue, sizeof field);
    return {};
  };
  switch (attr) {
    case ACL_RT_STREAM_WORK_ADDR_PTR: return store(config->options.workptr);
    case ACL_RT_STREAM_WORK_SIZE: return store(config->options.workSize);
    case ACL_RT_STREAM_FLAG: return store(config->options.flag);
    case ACL_RT_STREAM_PRIORITY: return store(config->options.priority);
    default: return Error(Code::kInvalidParam, "{}: attr is {}, which is not known.", __func__, static_cast<int>(attr));
  }
}

Status aclrtCreateStreamV2(aclrtStream* stream, const aclrtStreamConfigHandle* handle) {
  NPU_NOT_NULL(handle);
  NPU_ASSIGN(const Ref<StreamConfig> config, configs().Get(handle, __func__, "handle"));
  return Create(stream, config->options.priority, static_cast<uint32_t>(config->options.flag), __func__);
}

Status aclrtDestroyStream(aclrtStream stream) { return Destroy(stream, /*force=*/false, __func__); }
Status aclrtDestroyStreamForce(aclrtStream stream) { return Destroy(stream, /*force=*/true, __func__); }

Status aclrtSynchronizeStream(aclrtStream stream) { return Synchronise(stream, Deadline::Never(), __func__); }

Status aclrtSynchronizeStreamWithTimeout(aclrtStream stream, int32_t timeout) {
  if (timeout == 0 || timeout < -1) {
    return Error(Code::kOutOfRange, "{}: timeout is {} ms.", __func__, timeout).Remedy("Pass -1 to wait for ever, or a limit above 0.");
  }
  return Synchronise(stream, Deadline::FromMs(timeout), __func__);
}

Status aclrtStreamQuery(aclrtStream stream, aclrtStreamStatus* status) {
  NPU_NOT_NULL(status);
  NPU_ASSIGN(Ref<rt::TaskStream> found, rt::ResolveAnyStream(stream, __func__));
  if (!Unwatched(found->flags(), false)) {
    NPU_TRY(found->Failure());
    *status = found->Idle() ? ACL_STREAM_STATUS_COMPLETE : ACL_STREAM_STATUS_NOT_READY;
    if (strict::On() && *status == ACL_STREAM_STATUS_COMPLETE) strict::Synchronized(found->line());
    return {};
  }
  *status = ACL_STREAM_STATUS_COMPLETE;
  return {};
}

Status aclrtStreamAbort(aclrtStream stream) {
  NPU_ASSIGN(Ref<rt::TaskStream> found, rt::ResolveTaskStream(stream, __func__));
  found->Abort(Error(Code::kStreamAbort, "Stream {} of card {} was aborted by aclrtStreamAbort.", found->id(), found->card())
                   .Remedy("Destroy it and make another one."));
  return {};
}

Status aclrtStreamGetId(aclrtStream stream, int32_t* streamId) {
  NPU_NOT_NULL(streamId);
  NPU_ASSIGN(Ref<rt::TaskStream> found, rt::ResolveAnyStream(stream, __func__));
  *streamId = static_cast<int32_t>(found->id());
  return {};
}

Status aclrtStreamGetPriority(aclrtStream stream, uint32_t* priority) {
  NPU_NOT_NULL(priority);
  NPU_ASSIGN(Ref<rt::TaskStream> found, rt::ResolveAnyStream(stream, __func__));
  *priority = found->priority();
  return {};
}

Status aclrtStreamGetFlags(aclrtStream stream, uint32_t* flags) {
  NPU_NOT_NULL(flags);
  NPU_ASSIGN(Ref<rt::TaskStream> found, rt::ResolveAnyStream(stream, __func__));
  *flags = found->flags();
  return {};
}

Status aclrtGetStreamAvailableNum(uint32_t* streamCount) {
  NPU_NOT_NULL(streamCount);
  NPU_ASSIGN(Ref<rt::Context> context, rt::Current(__func__));
  NPU_ASSIGN(*streamCount, rt::StreamsLeft(context->card()));
  return {};
}

Status aclrtSetStreamFailureMode(aclrtStream stream, uint64_t mode) {
  NPU_ASSIGN(Ref<rt::TaskStream> found, rt::ResolveTaskStream(stream, __func__));
  const bool stop = (mode & 1) != 0;
  if (!stop && found->stop_on_failure()) {
    return Error(Code::kFeatureNotSupported, "{}: stream {} stops on failure, which cannot be taken back.", __func__, found->id())
        .Remedy("Create another stream for tasks that may fail.");
  }
  found->SetStopOnFailure(stop);
  return {};
}

Status aclrtSetStreamOverflowSwitch(aclrtStream stream, uint32_t flag) {
  if (flag > 1) return Error(Code::kInvalidParam, "{}: flag is {}; it may be 0 or 1.", __func__, flag);
  NPU_ASSIGN(Ref<rt::TaskStream> found, rt::ResolveTaskStream(stream, __func__));
  found->settings().overflow_switch.store(flag, std::memory_order_relaxed);
  return {};
}

Status aclrtGetStreamOverflowSwitch(aclrtStream stream, uint32_t* flag) {
  NPU_NOT_NULL(flag);
  NPU_ASSIGN(Ref<rt::TaskStream> found, rt::ResolveTaskStream(stream, __func__));
  *flag = found->settings().overflow_switch.load(std::memory_order_relaxed);
  return {};
}

Status aclrtSetStreamAttribute(aclrtStream stream, aclrtStreamAttr stmAttrType, aclrtStreamAttrValue* value) {
  NPU_NOT_NULL(value);
  NPU_ASSIGN(Ref<rt::TaskStream> found, rt::ResolveTaskStream(stream, __func__));
  switch (stmAttrType) {
    case ACL_STREAM_ATTR_FAILURE_MODE: return aclrtSetStreamFailureMode(stream, value->failureMode);
    case ACL_STREAM_ATTR_FLOAT_OVERFLOW_CHECK: return aclrtSetStreamOverflowSwitch(stream, value->overflowSwitch);
    case ACL_STREAM_ATTR_USER_CUSTOM_TAG: found->settings().user_tag.store(value->userCustomTag); return {};
    case ACL_STREAM_ATTR_CACHE_OP_INFO: found->settings().cache_op_info.store(value->cacheOpInfoSwitch); return {};
    case ACL_STREAM_ATTR_PRIORITY:
      if (value->streamPriority == found->priority()) return {};
      return NotYet(__func__, "changing the priority of a stream");
    default: return Error(Code::kOutOfRange, "{}: stmAttrType is {}, which is not known.", __func__, static_cast<int>(stmAttrType));
  }
}

Status aclrtGetStreamAttribute(aclrtStream stream, aclrtStreamAttr stmAttrType, aclrtStreamAttrValue* value) {
  NPU_NOT_NULL(value);
  NPU_ASSIGN(Ref<rt::TaskStream> found, rt::ResolveTaskStream(stream, __func__));
  rt::StreamSettings& settings = found->settings();
  switch (stmAttrType) {
    case ACL_STREAM_ATTR_FAILURE_MODE: value->failureMode = found->stop_on_failure() ? 1 : 0; return {};
    case ACL_STREAM_ATTR_FLOAT_OVERFLOW_CHECK: value->overflowSwitch = settings.overflow_switch.load(); return {};
    case ACL_STREAM_ATTR_USER_CUSTOM_TAG: value->userCustomTag = settings.user_tag.load(); return {};
    case ACL_STREAM_ATTR_CACHE_OP_INFO: value->cacheOpInfoSwitch = settings.cache_op_info.load(); return {};
    case ACL_STREAM_ATTR_PRIORITY: value->streamPriority = found->priority(); return {};
    default: return Error(Code::kOutOfRange, "{}: stmAttrType is {}, which is not known.", __func__, static_cast<int>(stmAttrType));
  }
}

Status aclrtDeviceTaskAbort(int32_t deviceId, uint32_t timeout) {
  if (timeout > kMostAbortMs) {
    return Error(Code::kOutOfRange, "{}: timeout is {} ms; the most is {}.", __func__, timeout, kMostAbortMs);
  }
  NPU_TRY(rt::PhysicalOf(deviceId, __func__).status());
  return rt::AbortDevice(deviceId, timeout == 0 ? Deadline::Never() : Deadline::FromMs(timeout), __func__);
}

}  // namespace npu::calls
