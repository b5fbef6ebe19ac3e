// Functions of the client that are told of failed tasks, and what they may ask.
#include "runtime/callback/exception.h"

#include "gen/calls/acl.h"
#include "runtime/context/devices.h"
#include "shim/acl/args.h"

namespace npu::calls {
namespace {

constexpr uint32_t kNothing = 0xFFFFFFFF;

const rt::Exception* Look(const aclrtExceptionInfo* info) { return reinterpret_cast<const rt::Exception*>(info); }
rt::ExceptionFunction Ours(aclrtExceptionInfoCallback callback) {
  return reinterpret_cast<rt::ExceptionFunction>(callback);
}

Status NoFunction(const char* function) {
  return Error(Code::kOutOfRange, "{}: callback is null.", function).Remedy("Pass the function to call.");
}

}  // namespace

Status aclrtSetExceptionInfoCallback(aclrtExceptionInfoCallback callback) {
  rt::SetExceptionFunction(Ours(callback));
  return {};
}

Status aclrtExceptionInfoCallbackRegister(aclrtExceptionInfoCallback callback) {
  if (callback == nullptr) return NoFunction(__func__);
  return rt::AddExceptionFunction(Ours(callback), __func__);
}

Status aclrtExceptionInfoCallbackUnregister(aclrtExceptionInfoCallback callback) {
  if (callback == nullptr) return NoFunction(__func__);
  return rt::RemoveExceptionFunction(Ours(callback), __func__);
}

uint32_t aclrtGetTaskIdFromExceptionInfo(const aclrtExceptionInfo* info) {
  return info == nullptr ? kNothing : Look(info)->task;
}

uint32_t aclrtGetStreamIdFromExceptionInfo(const aclrtExceptionInfo* info) {
  return info == nullptr ? kNothing : Look(info)->stream;
}

uint32_t aclrtGetThreadIdFromExceptionInfo(const aclrtExceptionInfo* info) {
  return info == nullptr ? kNothing : Look(info)->thread;
}

uint32_t aclrtGetDeviceIdFromExceptionInfo(const aclrtExceptionInfo* info) {
  return info == nullptr ? kNothing : static_cast<uint32_t>(rt::LogicalOf(Look(info)->card));
}

uint32_t aclrtGetErrorCodeFromExceptionInfo(const aclrtExceptionInfo* info) {
  return info == nullptr ? kNothing : static_cast<uint32_t>(AclCode(Look(info)->code));
}

}  // namespace npu::calls
