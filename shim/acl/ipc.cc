// Memory of devices between processes, by text keys.
#include <algorithm>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "device/hbm/share.h"
#include "gen/calls/acl.h"
#include "runtime/context/context.h"
#include "runtime/context/limits.h"
#include "shim/acl/args.h"

namespace npu::calls {
namespace {

// A key as the client holds it: at most 64 characters, whether or not a zero follows.
std::string_view KeyOf(const char* key) { return {key, strnlen(key, hbm::kKeyBytes - 1)}; }

}  // namespace

Status aclrtIpcMemGetExportKey(void* devPtr, size_t size, char* key, size_t len, uint64_t flags) {
  NPU_NOT_NULL(devPtr);
  NPU_NOT_NULL(key);
  if (size == 0 || len < hbm::kKeyBytes || flags > 1) {
    return Error(Code::kOutOfRange, "{}: size is {}, len {} and flags {}.", __func__, size, len, flags)
        .Remedy("Pass the size of the block, a buffer of {} bytes and flags 0 or 1.", hbm::kKeyBytes);
  }
  NPU_TRY(rt::Current(__func__).status());
  NPU_ASSIGN(const std::string made, hbm::ExportKey(devPtr, size, flags == ACL_RT_IPC_MEM_EXPORT_FLAG_DISABLE_PID_VALIDATION));
  std::memset(key, 0, hbm::kKeyBytes);
  std::memcpy(key, made.data(), std::min(made.size(), hbm::kKeyBytes - 1));
  return {};
}

Status aclrtIpcMemImportByKey(void** devPtr, const char* key, uint64_t flags) {
  NPU_NOT_NULL(devPtr);
  NPU_NOT_NULL(key);
  if (flags > 1) return Error(Code::kOutOfRange, "{}: flags is {}; it may be 0 or 1.", __func__, flags);
  NPU_TRY(rt::Current(__func__).status());
  NPU_ASSIGN(*devPtr, hbm::ImportKey(KeyOf(key)));
  return {};
}

Status aclrtIpcMemClose(const char* key) {
  NPU_NOT_NULL(key);
  NPU_TRY(rt::Current(__func__).status());
  return hbm::CloseKey(KeyOf(key));
}

Status aclrtIpcMemSetImportPid(const char* key, int32_t* pid, size_t num) {
  NPU_NOT_NULL(key);
  NPU_NOT_NULL(pid);
  if (num == 0) return Error(Code::kOutOfRange, "{}: num is 0.", __func__);
  NPU_TRY(rt::Current(__func__).status());
  return hbm::AllowProcesses(KeyOf(key), std::span<const int32_t>(pid, num));
}

}  // namespace npu::calls
