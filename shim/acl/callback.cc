// Functions of the client that streams call.
#include "runtime/callback/callback.h"

#include "gen/calls/acl.h"
#include "runtime/context/context.h"
#include "shim/acl/args.h"

namespace npu::calls {
namespace {
Status NoFunction(const char* function, const char* param) {
  return Error(Code::kOutOfRange, "{}: {} is null.", function, param).Remedy("Pass the function to call.");
}
}  // namespace

Status aclrtSubscribeReport(uint64_t threadId, aclrtStream stream) {
  NPU_ASSIGN(Ref<rt::TaskStream> found, rt::ResolveAnyStream(stream, __func__));
  return rt::Subscribe(threadId, *found, __func__);
}

Status aclrtUnSubscribeReport(uint64_t threadId, aclrtStream stream) {
  NPU_ASSIGN(Ref<rt::TaskStream> found, rt::ResolveAnyStream(stream, __func__));
  return rt::Unsubscribe(threadId, *found, __func__);
}

Status aclrtLaunchCallback(aclrtCallback fn, void* userData, aclrtCallbackBlockType blockType, aclrtStream stream) {
  if (blockType != ACL_CALLBACK_NO_BLOCK && blockType != ACL_CALLBACK_BLOCK) {
    return Error(Code::kInvalidParam, "{}: blockType is {}; it may be 0 or 1.", __func__, static_cast<int>(blockType));
  }
  if (fn == nullptr) return NoFunction(__func__, "fn");
  NPU_ASSIGN(Ref<rt::TaskStream> found, rt::ResolveTaskStream(stream, __func__));
  return rt::QueueCallback(fn, userData, blockType == ACL_CALLBACK_BLOCK, *found, __func__);
}

Status aclrtProcessReport(int32_t timeout) {
  if (timeout == 0 || timeout < -1) {
    return Error(Code::kInvalidParam, "{}: timeout is {} ms.", __func__, timeout).Remedy("Pass -1 to wait for ever, or a limit above 0.");
  }
  NPU_TRY(rt::Current(__func__).status());
  return rt::ProcessCallbacks(Deadline::FromMs(timeout), __func__);
}

Status aclrtLaunchHostFunc(aclrtStream stream, aclrtHostFunc fn, void* args) {
  if (fn == nullptr) return NoFunction(__func__, "fn");
  NPU_ASSIGN(Ref<rt::TaskStream> found, rt::ResolveTaskStream(stream, __func__));
  return rt::QueueHostFunction(fn, args, *found, __func__);
}

}  // namespace npu::calls
