// Notifies, and words of device memory that streams write and wait for.
#include "runtime/notify/notify.h"

#include <algorithm>
#include <cstring>

#include "device/hbm/hbm.h"
#include "gen/calls/acl.h"
#include "runtime/context/context.h"
#include "shim/acl/args.h"

namespace npu::calls {
namespace {

// The kernel's address of an aligned 64-bit word of device memory.
Result<uint64_t*> WordAt(void* address, uint32_t flag, uint32_t most, const char* function) {
  if (address == nullptr) return Error(Code::kOutOfRange, "{}: devAddr is null.", function).Remedy("Pass an address of device memory.");
  if (flag > most) return Error(Code::kOutOfRange, "{}: flag is {}; the largest is {}.", function, flag, most);
  if (reinterpret_cast<uintptr_t>(address) % sizeof(uint64_t) != 0) {
    return Error(Code::kOutOfRange, "{}: devAddr {} is not aligned to 8 bytes.", function, fmt::ptr(address));
  }
  NPU_TRY(hbm::Check(address, sizeof(uint64_t), function, "devAddr"));
  return static_cast<uint64_t*>(hbm::Local(address));
}

}  // namespace

Status aclrtCreateNotify(aclrtNotify* notify, uint64_t flag) {
  NPU_NOT_NULL(notify);
  if (flag > ACL_NOTIFY_DEVICE_USE_ONLY) return Error(Code::kOutOfRange, "{}: flag is {}; it may be 0 or 1.", __func__, flag);
  NPU_ASSIGN(*notify, rt::MakeNotify(__func__));
  return {};
}

Status aclrtDestroyNotify(aclrtNotify notify) {
  NPU_NOT_NULL(notify);
  return rt::DestroyNotify(notify, __func__);
}

Status aclrtRecordNotify(aclrtNotify notify, aclrtStream stream) {
  NPU_NOT_NULL(notify);
  NPU_ASSIGN(Ref<rt::Notify> found, rt::FindNotify(notify, __func__));
  NPU_ASSIGN(Ref<rt::TaskStream> recorder, rt::ResolveTaskStream(stream, __func__));
  return found->Record(*recorder);
}

Status aclrtWaitAndResetNotify(aclrtNotify notify, aclrtStream stream, uint32_t timeout) {
  NPU_NOT_NULL(notify);
  NPU_ASSIGN(Ref<rt::Notify> found, rt::FindNotify(notify, __func__));
  NPU_ASSIGN(Ref<rt::TaskStream> waiter, rt::ResolveTaskStream(stream, __func__));
  return found->WaitAndReset(*waiter, timeout);
}

Status aclrtGetNotifyId(aclrtNotify notify, uint32_t* notifyId) {
  NPU_NOT_NULL(notify);
  NPU_NOT_NULL(notifyId);
  NPU_ASSIGN(Ref<rt::Notify> found, rt::FindNotify(notify, __func__));
  *notifyId = found->id();
  return {};
}

Status aclrtNotifyBatchReset(aclrtNotify* notifies, size_t num) {
  NPU_NOT_NULL(notifies);
  NPU_NOT_ZERO(num);
  for (size_t i = 0; i < num; ++i) {
    NPU_ASSIGN(Ref<rt::Notify> found, rt::FindNotify(notifies[i], __func__));
    found->Clear();
  }
  return {};
}

Status aclrtNotifyGetExportKey(aclrtNotify notify, char* key, size_t len, uint64_t flags) {
  NPU_NOT_NULL(notify);
  NPU_NOT_NULL(key);
  constexpr size_t kBytes = rt::SharedNotify::kKeyBytes;
  constexpr uint64_t kOpenToAll = ACL_RT_NOTIFY_EXPORT_FLAG_DISABLE_PID_VALIDATION;
  if (len < kBytes || (flags & ~kOpenToAll) != 0) {
    return Error(Code::kOutOfRange, "{}: len is {} and flags {}.", __func__, len, flags)
        .Remedy("Pass a buffer of {} bytes and flags 0 or {}.", kBytes, kOpenToAll);
  }
  NPU_ASSIGN(Ref<rt::Notify> found, rt::FindNotify(notify, __func__));
  NPU_ASSIGN(const std::string made, found->Export(flags == kOpenToAll, __func__));
  std::memset(key, 0, kBytes);
  std::memcpy(key, made.data(), std::min(made.size(), kBytes - 1));
  return {};
}

Status aclrtNotifyImportByKey(aclrtNotify* notify, const char* key, uint64_t flags) {
  NPU_NOT_NULL(notify);
  NPU_NOT_NULL(key);
  if ((flags & ~uint64_t{ACL_RT_NOTIFY_IMPORT_FLAG_ENABLE_PEER_ACCESS}) != 0) {
    return Error(Code::kOutOfRange, "{}: flags is {}; it may be 0 or {}.", __func__, flags, ACL_RT_NOTIFY_IMPORT_FLAG_ENABLE_PEER_ACCESS);
  }
  NPU_ASSIGN(*notify, rt::OpenNotify({key, strnlen(key, rt::SharedNotify::kKeyBytes - 1)}, __func__));
  return {};
}

Status aclrtNotifySetImportPid(aclrtNotify notify, int32_t* pid, size_t num) {
  NPU_NOT_NULL(notify);
  NPU_NOT_NULL(pid);
  NPU_NOT_ZERO(num);
  NPU_ASSIGN(Ref<rt::Notify> found, rt::FindNotify(notify, __func__));
  return found->Allow({pid, num}, __func__);
}

Status aclrtValueWrite(void* devAddr, uint64_t value, uint32_t flag, aclrtStream stream) {
  NPU_ASSIGN(Ref<rt::TaskStream> found, rt::ResolveTaskStream(stream, __func__));
  NPU_ASSIGN(uint64_t* const word, WordAt(devAddr, flag, 0, __func__));
  return rt::WriteValue(word, value, *found);
}

Status aclrtValueWait(void* devAddr, uint64_t value, uint32_t flag, aclrtStream stream) {
  NPU_ASSIGN(Ref<rt::TaskStream> found, rt::ResolveTaskStream(stream, __func__));
  NPU_ASSIGN(const uint64_t* const word, WordAt(devAddr, flag, ACL_STREAM_WAIT_VALUE_NOR, __func__));
  return rt::WaitForValue(word, value, static_cast<rt::Compare>(flag), *found);
}

}  // namespace npu::calls
