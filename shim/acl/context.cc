// Contexts and the options of process, device, context and thread.
#include "runtime/context/context.h"

#include "gen/calls/acl.h"
#include "runtime/context/devices.h"
#include "runtime/context/limits.h"
#include "runtime/event/event.h"
#include "shim/acl/args.h"

namespace npu::calls {
namespace {

constexpr int kMostDeterministic = 3;
constexpr uint64_t kLimitStepUs = 1'000'000;
constexpr uint64_t kLongestLimitUs = uint64_t{0xFFFFFFFF} * 1000;

Status CheckParam(int option, int options, int64_t value, const char* function) {
  if (option < 0 || option >= options) {
    return Error(Code::kInvalidParam, "{}: opt is {}; known are 0 to {}.", function, option, options - 1);
  }
  const int64_t most = option == 0 ? kMostDeterministic : 1;
  if (value < 0 || value > most) {
    return Error(Code::kOutOfRange, "{}: value is {} for option {}; it may be 0 to {}.", function, value, option, most);
  }
  return {};
}

thread_local void* stream_in_use = nullptr;  // whose core limits this thread's tiling sees

Status CheckCores(uint32_t value, int kind, const char* function) {
  NPU_ASSIGN(const uint32_t all, rt::CoreNumber(kind, function));
  if (value <= all) return {};
  return Error(Code::kOutOfRange, "{}: value is {}, but the device has {} such cores.", function, value, all);
}

}  // namespace

Status aclrtCreateContext(aclrtContext* context, int32_t deviceId) {
  NPU_NOT_NULL(context);
  NPU_ASSIGN(Ref<rt::Context> made, rt::CreateContext(deviceId, __func__));
  *context = made->handle();
  return {};
}

Status aclrtDestroyContext(aclrtContext context) {
  NPU_NOT_NULL(context);
  return rt::DestroyContext(context, __func__);
}

Status aclrtSetCurrentContext(aclrtContext context) {
  NPU_NOT_NULL(context);
  return rt::SetCurrent(context, __func__);
}

Status aclrtGetCurrentContext(aclrtContext* context) {
  NPU_NOT_NULL(context);
  const Ref<rt::Context> current = rt::CurrentOrNull();
  if (!current) {
    return Error(Code::kContextNull, "{}: this thread has no current context.", __func__)
        .Remedy("Call aclrtSetDevice or aclrtSetCurrentContext in this thread first.");
  }
  *context = current->handle();
  return {};
}

Status aclrtCtxGetCurrentDefaultStream(aclrtStream* stream) {
  NPU_NOT_NULL(stream);
  NPU_ASSIGN(Ref<rt::Context> context, rt::Current(__func__));
  *stream = context->default_stream_handle();
  return {};
}

Status aclrtCtxSetSysParamOpt(aclSysParamOpt opt, int64_t value) {
  NPU_TRY(CheckParam(static_cast<int>(opt), rt::Context::kSysParams, value, __func__));
  NPU_ASSIGN(Ref<rt::Context> context, rt::Current(__func__));
  context->SetSysParam(static_cast<int>(opt), value);
  return {};
}

Status aclrtCtxGetSysParamOpt(aclSysParamOpt opt, int64_t* value) {
  NPU_NOT_NULL(value);
  NPU_TRY(CheckParam(static_cast<int>(opt), rt::Context::kSysParams, 0, __func__));
  NPU_ASSIGN(Ref<rt::Context> context, rt::Current(__func__));
  const auto set = context->SysParam(static_cast<int>(opt));
  if (!set) {
    return Error(Code::kSysParamNotSet, "{}: option {} was never set on this context.", __func__, static_cast<int>(opt))
        .Remedy("Set it with aclrtCtxSetSysParamOpt first.");
  }
  *value = *set;
  return {};
}

Status aclrtSetOpWaitTimeout(uint32_t timeout) {
  rt::SetWaitLimit(timeout);
  return {};
}

Status aclrtSetOpExecuteTimeOut(uint32_t timeout) {
  rt::SetExecuteLimitUs(uint64_t{timeout} * 1'000'000);
  return {};
}

Status aclrtSetOpExecuteTimeOutWithMs(uint32_t timeout) {
  rt::SetExecuteLimitUs(uint64_t{timeout} * 1000);
  return {};
}

Status aclrtSetOpExecuteTimeOutV2(uint64_t timeout, uint64_t* actualTimeout) {
  NPU_NOT_NULL(actualTimeout);
  NPU_TRY(rt::Current(__func__).status());
  const uint64_t steps = timeout / kLimitStepUs + (timeout % kLimitStepUs != 0 ? 1 : 0);
  const bool none = timeout == 0 || timeout > kLongestLimitUs;
  rt::SetExecuteLimitUs(none ? 0 : steps * kLimitStepUs);
  *actualTimeout = none ? UINT64_MAX : steps * kLimitStepUs;
  return {};
}

Status aclrtGetOpTimeOutInterval(uint64_t* interval) {
  NPU_NOT_NULL(interval);
  *interval = kLimitStepUs;
  return {};
}

Status aclrtGetOpExecuteTimeout(uint32_t* const timeoutMs) {
  NPU_NOT_NULL(timeoutMs);
  *timeoutMs = static_cast<uint32_t>(rt::ExecuteLimitUs() / 1000);
  return {};
}

Status aclrtGetDeviceResLimit(int32_t deviceId, aclrtDevResLimitType type, uint32_t* value) {
  NPU_NOT_NULL(value);
  NPU_TRY(rt::PrimaryOf(deviceId, __func__).status());
  NPU_ASSIGN(*value, rt::DeviceCoreLimit(deviceId, static_cast<int>(type), __func__));
  return {};
}

Status aclrtSetDeviceResLimit(int32_t deviceId, aclrtDevResLimitType type, uint32_t value) {
  NPU_TRY(rt::PrimaryOf(deviceId, __func__).status());
  NPU_TRY(CheckCores(value, static_cast<int>(type), __func__));
  return rt::SetDeviceCoreLimit(deviceId, static_cast<int>(type), value, __func__);
}

Status aclrtResetDeviceResLimit(int32_t deviceId) {
  NPU_TRY(rt::PrimaryOf(deviceId, __func__).status());
  NPU_TRY(rt::SetDeviceCoreLimit(deviceId, 0, 0, __func__));
  return rt::SetDeviceCoreLimit(deviceId, 1, 0, __func__);
}

Status aclrtGetStreamResLimit(aclrtStream stream, aclrtDevResLimitType type, uint32_t* value) {
  NPU_NOT_NULL(value);
  NPU_ASSIGN(Ref<rt::TaskStream> found, rt::ResolveAnyStream(stream, __func__));
  NPU_ASSIGN(const uint32_t device, rt::DeviceCoreLimit(found->context().device(), static_cast<int>(type), __func__));
  const uint32_t own = found->settings().core_limit[type].load(std::memory_order_relaxed);
  *value = own == 0 ? device : own;
  return {};
}

Status aclrtSetStreamResLimit(aclrtStream stream, aclrtDevResLimitType type, uint32_t value) {
  NPU_ASSIGN(Ref<rt::TaskStream> found, rt::ResolveAnyStream(stream, __func__));
  NPU_TRY(CheckCores(value, static_cast<int>(type), __func__));
  NPU_ASSIGN(const uint32_t all, rt::CoreNumber(static_cast<int>(type), __func__));
  found->SetCoreLimit(static_cast<int>(type), value, all);
  return {};
}

Status aclrtResetStreamResLimit(aclrtStream stream) {
  NPU_ASSIGN(Ref<rt::TaskStream> found, rt::ResolveAnyStream(stream, __func__));
  found->SetCoreLimit(0, 0, 1);
  found->SetCoreLimit(1, 0, 1);
  return {};
}

Status aclrtUseStreamResInCurrentThread(aclrtStream stream) {
  NPU_TRY(rt::ResolveAnyStream(stream, __func__).status());
  NPU_ASSIGN(Ref<rt::Context> context, rt::Current(__func__));
  stream_in_use = stream != nullptr ? stream : context->default_stream_handle();
  return {};
}

Status aclrtUnuseStreamResInCurrentThread(aclrtStream stream) {
  NPU_ASSIGN(Ref<rt::Context> context, rt::Current(__func__));
  if (stream_in_use == (stream != nullptr ? stream : context->default_stream_handle())) stream_in_use = nullptr;
  return {};
}

Status aclrtGetResInCurrentThread(aclrtDevResLimitType type, uint32_t* value) {
  NPU_NOT_NULL(value);
  NPU_ASSIGN(Ref<rt::Context> context, rt::Current(__func__));
  NPU_ASSIGN(*value, rt::DeviceCoreLimit(context->device(), static_cast<int>(type), __func__));
  if (stream_in_use == nullptr) return {};
  const auto stream = rt::FindStream(stream_in_use, __func__);
  const uint32_t own = stream.ok() ? (*stream)->settings().core_limit[type].load(std::memory_order_relaxed) : 0;
  if (own != 0) *value = own;
  return {};
}

}  // namespace npu::calls
