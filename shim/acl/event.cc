// Events.
#include "runtime/event/event.h"

#include "gen/calls/acl.h"
#include "runtime/context/context.h"
#include "shim/acl/args.h"

namespace npu::calls {
namespace {

using rt::Event;

constexpr uint32_t kMixedFlags = rt::kEventSync | rt::kEventCaptureProgress | rt::kEventReservedBit | rt::kEventTimeLine;

Status BadFlag(uint32_t flag, const char* function) {
  return Error(Code::kOutOfRange, "{}: flag is {:#x}.", function, flag)
      .Remedy("Mix ACL_EVENT_SYNC, ACL_EVENT_CAPTURE_STREAM_PROGRESS and ACL_EVENT_TIME_LINE, or pass one of the special flags alone.");
}

// Events of the given kinds are refused by the older query functions.
Status OlderOnly(const Event& event, const char* function) {
  if (!event.ex() && event.flags() != rt::kEventExternal) return {};
  return Error(Code::kFeatureNotSupported, "{}: the event is of a kind that this function does not know.", function)
      .Remedy("Ask aclrtQueryEventStatus.");
}

Status Make(aclrtEvent* event, uint32_t flags, Event::Kind kind, const char* function) {
  NPU_ASSIGN(*event, rt::MakeEvent({flags, kind}, function));
  return {};
}

Status WaitWith(aclrtStream stream, aclrtEvent event, uint64_t limit_ms, const char* function) {
  NPU_NOT_NULL(event);
  NPU_ASSIGN(Ref<Event> found, rt::FindEvent(event, function));
  NPU_ASSIGN(Ref<rt::TaskStream> waiter, rt::ResolveTaskStream(stream, function));
  return found->WaitOn(*waiter, limit_ms, function);
}

}  // namespace

Status aclrtCreateEvent(aclrtEvent* event) {
  NPU_NOT_NULL(event);
  return Make(event, rt::kEventSync | rt::kEventTimeLine, Event::Kind::kPlain, __func__);
}

Status aclrtCreateEventWithFlag(aclrtEvent* event, uint32_t flag) {
  NPU_NOT_NULL(event);
  const bool alone = flag == rt::kEventDeviceUseOnly || flag == rt::kEventExternal;
  if (!alone && (flag == 0 || (flag & ~kMixedFlags) != 0)) return BadFlag(flag, __func__);
  return Make(event, flag, Event::Kind::kPlain, __func__);
}

Status aclrtCreateEventExWithFlag(aclrtEvent* event, uint32_t flag) {
  NPU_NOT_NULL(event);
  if (flag != rt::kEventIpc && (flag == 0 || (flag & ~kMixedFlags) != 0)) return BadFlag(flag, __func__);
  return Make(event, flag, Event::Kind::kEx, __func__);
}

Status aclrtDestroyEvent(aclrtEvent event) {
  NPU_NOT_NULL(event);
  return rt::DestroyEvent(event, __func__);
}

Status aclrtRecordEvent(aclrtEvent event, aclrtStream stream) {
  NPU_NOT_NULL(event);
  NPU_ASSIGN(Ref<Event> found, rt::FindEvent(event, __func__));
  NPU_ASSIGN(Ref<rt::TaskStream> recorder, rt::ResolveTaskStream(stream, __func__));
  return found->Record(*recorder, __func__);
}

Status aclrtRecordEventWithFlag(aclrtEvent event, aclrtStream stream, uint32_t flag) {
  NPU_NOT_NULL(event);
  if (flag == ACL_EVENT_RECORD_EXTERNAL) return NotYet(__func__, "nodes of a captured graph");
  if (flag != ACL_EVENT_RECORD_DEFAULT) return Error(Code::kInvalidParam, "{}: flag is {}; it may be 0 or 1.", __func__, flag);
  return aclrtRecordEvent(event, stream);
}

Status aclrtStreamWaitEvent(aclrtStream stream, aclrtEvent event) { return WaitWith(stream, event, 0, __func__); }

Status aclrtStreamWaitEventWithTimeout(aclrtStream stream, aclrtEvent event, int32_t timeout) {
  if (timeout < -1) return Error(Code::kOutOfRange, "{}: timeout is {} ms.", __func__, timeout).Remedy("Pass -1 for no limit.");
  return WaitWith(stream, event, timeout > 0 ? static_cast<uint64_t>(timeout) : 0, __func__);
}

Status aclrtStreamWaitEventWithFlag(aclrtStream stream, aclrtEvent event, uint32_t timeout, uint32_t flag) {
  if (flag == ACL_EVENT_WAIT_EXTERNAL) {
    if (timeout != 0) return Error(Code::kInvalidParam, "{}: timeout must be 0 with ACL_EVENT_WAIT_EXTERNAL.", __func__);
    return NotYet(__func__, "nodes of a captured graph");
  }
  if (flag != ACL_EVENT_WAIT_DEFAULT) return Error(Code::kInvalidParam, "{}: flag is {}; it may be 0 or 1.", __func__, flag);
  return WaitWith(stream, event, uint64_t{timeout} * 1000, __func__);
}

Status aclrtResetEvent(aclrtEvent event, aclrtStream stream) {
  NPU_NOT_NULL(event);
  NPU_ASSIGN(Ref<Event> found, rt::FindEvent(event, __func__));
  NPU_ASSIGN(Ref<rt::TaskStream> resetter, rt::ResolveTaskStream(stream, __func__));
  return found->Reset(*resetter, __func__);
}

Status aclrtQueryEvent(aclrtEvent event, aclrtEventStatus* status) {
  NPU_NOT_NULL(event);
  NPU_NOT_NULL(status);
  NPU_ASSIGN(Ref<Event> found, rt::FindEvent(event, __func__));
  NPU_TRY(OlderOnly(*found, __func__));
  NPU_ASSIGN(const bool reached, found->Reached(__func__));
  *status = reached ? ACL_EVENT_STATUS_COMPLETE : ACL_EVENT_STATUS_NOT_READY;
  return {};
}

Status aclrtQueryEventStatus(aclrtEvent event, aclrtEventRecordedStatus* status) {
  NPU_NOT_NULL(event);
  NPU_NOT_NULL(status);
  NPU_ASSIGN(Ref<Event> found, rt::FindEvent(event, __func__));
  NPU_ASSIGN(const bool reached, found->Reached(__func__));
  *status = reached ? ACL_EVENT_RECORDED_STATUS_COMPLETE : ACL_EVENT_RECORDED_STATUS_NOT_READY;
  return {};
}

Status aclrtQueryEventWaitStatus(aclrtEvent event, aclrtEventWaitStatus* status) {
  NPU_NOT_NULL(event);
  NPU_NOT_NULL(status);
  NPU_ASSIGN(Ref<Event> found, rt::FindEvent(event, __func__));
  NPU_TRY(OlderOnly(*found, __func__));
  *status = found->WaitsPending() ? ACL_EVENT_WAIT_STATUS_NOT_READY : ACL_EVENT_WAIT_STATUS_COMPLETE;
  return {};
}

Status aclrtSynchronizeEvent(aclrtEvent event) {
  NPU_NOT_NULL(event);
  NPU_ASSIGN(Ref<Event> found, rt::FindEvent(event, __func__));
  return found->Synchronize(Deadline::Never(), __func__);
}

Status aclrtSynchronizeEventWithTimeout(aclrtEvent event, int32_t timeout) {
  NPU_NOT_NULL(event);
  if (timeout == 0 || timeout < -1) {
    return Error(Code::kOutOfRange, "{}: timeout is {} ms.", __func__, timeout).Remedy("Pass -1 to wait for ever, or a limit above 0.");
  }
  NPU_ASSIGN(Ref<Event> found, rt::FindEvent(event, __func__));
  return found->Synchronize(Deadline::FromMs(timeout), __func__);
}

Status aclrtEventElapsedTime(float* ms, aclrtEvent startEvent, aclrtEvent endEvent) {
  NPU_NOT_NULL(ms);
  NPU_NOT_NULL(startEvent);
  NPU_NOT_NULL(endEvent);
  NPU_ASSIGN(Ref<Event> start, rt::FindEvent(startEvent, __func__));
  NPU_ASSIGN(Ref<Event> end, rt::FindEvent(endEvent, __func__));
  NPU_ASSIGN(*ms, rt::ElapsedMs(*start, *end, __func__));
  return {};
}

Status aclrtEventGetTimestamp(aclrtEvent event, uint64_t* timestamp) {
  NPU_NOT_NULL(event);
  NPU_NOT_NULL(timestamp);
  NPU_ASSIGN(Ref<Event> found, rt::FindEvent(event, __func__));
  NPU_ASSIGN(*timestamp, rt::TimestampUs(*found, __func__));
  return {};
}

Status aclrtGetEventId(aclrtEvent event, uint32_t* eventId) {
  NPU_NOT_NULL(event);
  NPU_NOT_NULL(eventId);
  NPU_ASSIGN(Ref<Event> found, rt::FindEvent(event, __func__));
  *eventId = found->id();
  return {};
}

Status aclrtGetEventAvailNum(uint32_t* eventCount) {
  NPU_NOT_NULL(eventCount);
  NPU_ASSIGN(*eventCount, rt::EventsLeft(__func__));
  return {};
}

Status aclrtIpcGetEventHandle(aclrtEvent event, aclrtIpcEventHandle* handle) {
  NPU_NOT_NULL(event);
  NPU_NOT_NULL(handle);
  NPU_ASSIGN(Ref<Event> found, rt::FindEvent(event, __func__));
  if (found->shared() == nullptr) {
    return Error(Code::kOutOfRange, "{}: the event was not made for sharing.", __func__).Remedy("Create it with ACL_EVENT_IPC.");
  }
  static_assert(sizeof *handle == rt::SharedMark::kHandleBytes);
  found->shared()->Export(handle);
  return {};
}

Status aclrtIpcOpenEventHandle(aclrtIpcEventHandle handle, aclrtEvent* event) {
  NPU_NOT_NULL(event);
  NPU_ASSIGN(*event, rt::OpenEvent(&handle, __func__));
  return {};
}

}  // namespace npu::calls
