// The virtual-memory API: reserve, physical handles, map; sharing of handles with other processes.
#include "device/hbm/vmm.h"

#include <algorithm>
#include <span>
#include <string>

#include "base/handle/table.h"
#include "device/hbm/share.h"
#include "gen/calls/acl.h"
#include "runtime/context/context.h"
#include "runtime/context/devices.h"
#include "runtime/context/kinds.h"
#include "runtime/workers/process.h"
#include "shim/acl/args.h"

namespace npu::calls {
namespace {

HandleTable<hbm::Physical>& handles() {
  static auto* table = new HandleTable<hbm::Physical>(rt::kPhysicalHandle, "physical memory");
  return *table;
}

// A bad physical handle is a bad value to the driver, not a runtime handle.
Result<Ref<hbm::Physical>> Find(aclrtDrvMemHandle handle, const char* function) {
  NPU_TRY(NotNull(handle, function, "handle"));
  if (rt::Forked()) return rt::ForkedError(function);
  auto found = handles().Get(handle, function, "handle");
  if (!found.ok()) return Status(Code::kOutOfRange, std::string(found.status().text())).Remedy("Pass what aclrtMallocPhysical gave.");
  return found;
}

Result<void*> Give(Ref<hbm::Physical> memory, const char* function) {
  void* raw = handles().Add(std::move(memory));
  if (raw == nullptr) return Error(Code::kResourceExhausted, "{}: no handles of physical memory are left.", function);
  return raw;
}

Status Refused(const char* function, const char* what, int64_t value, Code code = Code::kInvalidParam) {
  return Error(code, "{}: {} is {}.", function, what, value).Remedy("See aclrtPhysicalMemProp for what exists.");
}

bool IsDdr(int kind) { return kind == ACL_DDR_MEM || kind == ACL_DDR_MEM_HUGE || kind == ACL_DDR_MEM_NORMAL || kind == ACL_DDR_MEM_P2P_HUGE || kind == ACL_DDR_MEM_P2P_NORMAL; }
bool IsHuge1G(int kind) { return kind == ACL_HBM_MEM_HUGE1G || kind == ACL_HBM_MEM_P2P_HUGE1G || kind == ACL_MEM_HUGE1G || kind == ACL_MEM_P2P_HUGE1G; }

Status CheckProperties(const aclrtPhysicalMemProp& prop, const char* function) {
  const int kind = static_cast<int>(prop.memAttr), where = static_cast<int>(prop.location.type);
  if (prop.handleType != ACL_MEM_HANDLE_TYPE_NONE) return Refused(function, "prop->handleType", static_cast<int>(prop.handleType));
  if (prop.allocationType != ACL_MEM_ALLOCATION_TYPE_PINNED) return Refused(function, "prop->allocationType", static_cast<int>(prop.allocationType));
  if (kind < ACL_DDR_MEM || kind > ACL_MEM_P2P_HUGE1G) return Refused(function, "prop->memAttr", kind);
  if (where == ACL_MEM_LOCATION_TYPE_HOST || where == ACL_MEM_LOCATION_TYPE_HOST_NUMA) {
    return NotYet(function, "physical memory of the host");
  }
  if (where != ACL_MEM_LOCATION_TYPE_DEVICE) return Refused(function, "prop->location.type", where);
  if (IsDdr(kind)) return Refused(function, "prop->memAttr (DDR on a device)", kind);
  if (prop.reserve != 0) return Refused(function, "prop->reserve", static_cast<int64_t>(prop.reserve), Code::kOutOfRange);
  return {};
}

}  // namespace

Status aclrtReserveMemAddress(void** virPtr, size_t size, size_t alignment, void*, uint64_t flags) {
  NPU_NOT_NULL(virPtr);
  NPU_NOT_ZERO(size);
  if (flags > 1) return Refused(__func__, "flags", static_cast<int64_t>(flags));
  if (alignment != 0) return Refused(__func__, "alignment", static_cast<int64_t>(alignment), Code::kOutOfRange);
  if (rt::Forked()) return rt::ForkedError(__func__);
  NPU_ASSIGN(*virPtr, hbm::ReserveAddress(size));
  return {};
}

Status aclrtReserveMemAddressNoUCMemory(void** virPtr, size_t size, size_t alignment, void* expectPtr, uint64_t flags) {
  return calls::aclrtReserveMemAddress(virPtr, size, alignment, expectPtr, flags);
}

Status aclrtReleaseMemAddress(void* virPtr) {
  NPU_NOT_NULL(virPtr);
  if (rt::Forked()) return rt::ForkedError(__func__);
  return hbm::ReleaseAddress(virPtr);
}

Status aclrtMallocPhysical(aclrtDrvMemHandle* handle, size_t size, const aclrtPhysicalMemProp* prop, uint64_t flags) {
  NPU_NOT_NULL(handle);
  NPU_NOT_NULL(prop);
  NPU_NOT_ZERO(size);
  if (flags != 0) return Refused(__func__, "flags", static_cast<int64_t>(flags));
  if (rt::Forked()) return rt::ForkedError(__func__);
  NPU_TRY(CheckProperties(*prop, __func__));
  NPU_ASSIGN(const int card, rt::PhysicalOf(static_cast<int>(prop->location.id), __func__));
  NPU_ASSIGN(Ref<hbm::Physical> memory, hbm::MallocPhysical(card, size));
  NPU_ASSIGN(*handle, Give(std::move(memory), __func__));
  return {};
}

Status aclrtFreePhysical(aclrtDrvMemHandle handle) {
  NPU_TRY(Find(handle, __func__).status());
  return handles().Remove(handle, __func__, "handle").status();
}

Status aclrtMapMem(void* virPtr, size_t size, size_t offset, aclrtDrvMemHandle handle, uint64_t flags) {
  NPU_NOT_NULL(virPtr);
  NPU_NOT_ZERO(size);
  if (flags != 0) return Refused(__func__, "flags", static_cast<int64_t>(flags));
  if (offset != 0) return Refused(__func__, "offset", static_cast<int64_t>(offset), Code::kOutOfRange);
  NPU_ASSIGN(Ref<hbm::Physical> memory, Find(handle, __func__));
  return hbm::MapPhysical(virPtr, size, std::move(memory));
}

Status aclrtUnmapMem(void* virPtr) {
  NPU_NOT_NULL(virPtr);
  if (rt::Forked()) return rt::ForkedError(__func__);
  auto gone = hbm::Unmap(virPtr);
  if (gone.ok()) {
    rt::TaskStream::KeepUntilAllDone(std::move(gone->pages));
    return {};
  }
  // The real driver answers its own parameter error here, which reaches the client as 507899.
  if (gone.status().code() != Code::kOutOfRange) return gone.status();
  return Status(Code::kDriverError, std::string(gone.status().text())).Remedy("Pass the address given to aclrtMapMem, once.");
}

Status aclrtMemGetAllocationGranularity(aclrtPhysicalMemProp* prop, aclrtMemGranularityOptions option, size_t* granularity) {
  NPU_NOT_NULL(prop);
  NPU_NOT_NULL(granularity);
  if (option != ACL_RT_MEM_ALLOC_GRANULARITY_MINIMUM && option != ACL_RT_MEM_ALLOC_GRANULARITY_RECOMMENDED) {
    return Refused(__func__, "option", static_cast<int>(option));
  }
  *granularity = IsHuge1G(static_cast<int>(prop->memAttr)) ? size_t{1} << 30 : hbm::kMapGranularity;
  return {};
}

Status aclrtMemRetainAllocationHandle(void* virPtr, aclrtDrvMemHandle* handle) {
  NPU_NOT_NULL(virPtr);
  NPU_NOT_NULL(handle);
  Ref<hbm::Physical> memory = hbm::PhysicalAt(virPtr);
  if (!memory) return Error(Code::kOutOfRange, "{}: nothing is mapped at virPtr {}.", __func__, fmt::ptr(virPtr));
  NPU_ASSIGN(*handle, Give(std::move(memory), __func__));
  return {};
}

Status aclrtMemGetAllocationPropertiesFromHandle(aclrtDrvMemHandle handle, aclrtPhysicalMemProp* prop) {
  NPU_NOT_NULL(prop);
  NPU_ASSIGN(const Ref<hbm::Physical> memory, Find(handle, __func__));
  *prop = {};
  prop->handleType = ACL_MEM_HANDLE_TYPE_NONE;
  prop->allocationType = ACL_MEM_ALLOCATION_TYPE_PINNED;
  prop->memAttr = ACL_HBM_MEM_HUGE;
  prop->location.type = ACL_MEM_LOCATION_TYPE_DEVICE;
  prop->location.id = static_cast<uint32_t>(std::max(0, rt::LogicalOf(memory->card())));
  return {};
}

// Rights are those of the process: all that is mapped may be read and written.
Status aclrtMemSetAccess(void* virPtr, size_t size, aclrtMemAccessDesc* desc, size_t count) {
  NPU_NOT_NULL(virPtr);
  NPU_NOT_NULL(desc);
  NPU_NOT_ZERO(size);
  for (size_t i = 0; i < count; ++i) {
    if (desc[i].flags != ACL_RT_MEM_ACCESS_FLAGS_READWRITE) return NotYet(__func__, "rights other than reading and writing");
  }
  return hbm::Check(virPtr, size, __func__, "virPtr");
}

Status aclrtMemGetAccess(void* virPtr, aclrtMemLocation* location, uint64_t* flag) {
  NPU_NOT_NULL(virPtr);
  NPU_NOT_NULL(location);
  NPU_NOT_NULL(flag);
  NPU_TRY(hbm::Check(virPtr, 1, __func__, "virPtr"));
  *flag = ACL_RT_MEM_ACCESS_FLAGS_READWRITE;
  return {};
}

Status aclrtMemExportToShareableHandle(aclrtDrvMemHandle handle, aclrtMemHandleType handleType, uint64_t flags, uint64_t* shareableHandle) {
  NPU_NOT_NULL(shareableHandle);
  NPU_ASSIGN(const Ref<hbm::Physical> memory, Find(handle, __func__));
  if (handleType != ACL_MEM_HANDLE_TYPE_NONE) return Refused(__func__, "handleType", static_cast<int>(handleType));
  if (flags > 1) return Refused(__func__, "flags", static_cast<int64_t>(flags), Code::kOutOfRange);
  NPU_ASSIGN(*shareableHandle, hbm::ExportShareable(*memory, flags == ACL_RT_VMM_EXPORT_FLAG_DISABLE_PID_VALIDATION));
  return {};
}

Status aclrtMemImportFromShareableHandle(uint64_t shareableHandle, int32_t deviceId, aclrtDrvMemHandle* handle) {
  NPU_NOT_NULL(handle);
  NPU_TRY(rt::Current(__func__).status());
  NPU_TRY(rt::PhysicalOf(deviceId, __func__).status());
  NPU_ASSIGN(Ref<hbm::Physical> memory, hbm::ImportShareable(shareableHandle));
  NPU_ASSIGN(*handle, Give(std::move(memory), __func__));
  return {};
}

Status aclrtMemSetPidToShareableHandle(uint64_t shareableHandle, int32_t* pid, size_t pidNum) {
  NPU_NOT_NULL(pid);
  NPU_NOT_ZERO(pidNum);
  return hbm::AllowProcesses(shareableHandle, std::span<const int32_t>(pid, pidNum));
}

Status aclrtMemExportToShareableHandleV2(aclrtDrvMemHandle handle, uint64_t flags, aclrtMemSharedHandleType shareType, void* shareableHandle) {
  NPU_NOT_NULL(shareableHandle);
  if (shareType != ACL_MEM_SHARE_HANDLE_TYPE_DEFAULT) return NotYet(__func__, "handles for other hosts");
  return calls::aclrtMemExportToShareableHandle(handle, ACL_MEM_HANDLE_TYPE_NONE, flags, static_cast<uint64_t*>(shareableHandle));
}

Status aclrtMemImportFromShareableHandleV2(void* shareableHandle, aclrtMemSharedHandleType shareType, uint64_t, aclrtDrvMemHandle* handle) {
  NPU_NOT_NULL(shareableHandle);
  if (shareType != ACL_MEM_SHARE_HANDLE_TYPE_DEFAULT) return NotYet(__func__, "handles of other hosts");
  NPU_ASSIGN(const int device, rt::CurrentDevice(__func__));
  return calls::aclrtMemImportFromShareableHandle(*static_cast<uint64_t*>(shareableHandle), device, handle);
}

Status aclrtMemSetPidToShareableHandleV2(void* shareableHandle, aclrtMemSharedHandleType shareType, int32_t* pid, size_t pidNum) {
  NPU_NOT_NULL(shareableHandle);
  if (shareType != ACL_MEM_SHARE_HANDLE_TYPE_DEFAULT) return NotYet(__func__, "handles for other hosts");
  return calls::aclrtMemSetPidToShareableHandle(*static_cast<uint64_t*>(shareableHandle), pid, pidNum);
}

}  // namespace npu::calls
