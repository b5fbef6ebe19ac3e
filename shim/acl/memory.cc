// Memory of devices and pinned memory of the host.
#include <algorithm>
#include <atomic>
#include <cstring>

#include "device/hbm/foreign.h"
#include "device/hbm/hbm.h"
#include "gen/calls/acl.h"
#include "runtime/context/context.h"
#include "runtime/context/devices.h"
#include "runtime/memory/host.h"
#include "runtime/workers/process.h"
#include "shim/acl/args.h"

namespace npu::calls {
namespace {

// The real runtime rounds to 32 and, in most calls, adds 32 before that. Counted memory follows it.
constexpr size_t kPadding = 32;
constexpr uint32_t kHostPageBytes = 4096;
constexpr uint32_t kDevicePageBytes = 2u << 20;

std::atomic<uint64_t> peak_bytes[device::kMaxCards];

Result<size_t> Padded(size_t size, size_t extra, const char* function) {
  if (size <= SIZE_MAX - 2 * kPadding) return (size + extra + kPadding - 1) / kPadding * kPadding;
  return Error(Code::kInvalidParam, "{}: size is {}, which is no size of memory.", function, size);
}

Status OnCard(void** out, size_t size, size_t extra, int card, const char* function) {
  NPU_TRY(NotNull(out, function, "devPtr"));
  *out = nullptr;
  NPU_TRY(NotZero(size, function, "size"));
  NPU_ASSIGN(const size_t bytes, Padded(size, extra, function));
  NPU_ASSIGN(*out, hbm::AllocateFor(card, bytes, size, function));
  return {};
}

Status OnDevice(void** out, size_t size, size_t extra, const char* function) {
  NPU_TRY(NotNull(out, function, "devPtr"));
  NPU_TRY(NotZero(size, function, "size"));
  NPU_ASSIGN(Ref<rt::Context> context, rt::Current(function));
  return OnCard(out, size, extra, context->card(), function);
}

Status OnHost(void** out, size_t size, const char* function) {
  NPU_TRY(NotNull(out, function, "hostPtr"));
  *out = nullptr;
  NPU_TRY(NotZero(size, function, "size"));
  NPU_TRY(rt::Current(function).status());
  NPU_ASSIGN(const size_t bytes, Padded(size, 0, function));
  NPU_ASSIGN(*out, rt::AllocateHost(bytes, function));
  return {};
}

// The attributes of a configuration; `device` is set when one names a device.
Status ReadConfig(const aclrtMallocConfig* config, int* device, const char* function) {
  if (config == nullptr) return {};
  if (config->numAttrs > 0) NPU_TRY(NotNull(config->attrs, function, "cfg->attrs"));
  for (size_t i = 0; i < config->numAttrs; ++i) {
    const aclrtMallocAttribute& attribute = config->attrs[i];
    switch (attribute.attr) {
      case ACL_RT_MEM_ATTR_RSV:
      case ACL_RT_MEM_ATTR_MODULE_ID:
      case ACL_RT_MEM_ATTR_VA_FLAG: break;  // one address is valid on both sides anyway
      case ACL_RT_MEM_ATTR_DEVICE_ID: *device = static_cast<int>(attribute.value.deviceId); break;
      default:
        return Error(Code::kOutOfRange, "{}: attribute {} of cfg is {}, which is not known.", function, i, static_cast<int>(attribute.attr));
    }
  }
  return {};
}

Status WithConfig(void** out, size_t size, const aclrtMallocConfig* config, const char* function) {
  int device = -1;
  NPU_TRY(ReadConfig(config, &device, function));
  if (device < 0) return OnDevice(out, size, kPadding, function);
  NPU_ASSIGN(const int card, rt::PhysicalOf(device, function));
  return OnCard(out, size, kPadding, card, function);
}

Status FreeDevice(void* ptr, const char* function) {
  NPU_TRY(NotNull(ptr, function, "devPtr"));
  if (rt::Forked()) return rt::ForkedError(function);
  return hbm::Free(ptr);
}

Status FreePinned(void* ptr, const char* function) {
  NPU_TRY(NotNull(ptr, function, "hostPtr"));
  if (rt::Forked()) return rt::ForkedError(function);
  if (hbm::Local(ptr) != nullptr && !hbm::FindForeign(ptr)) {
    return Error(Code::kOutOfRange, "{}: hostPtr {} is memory of a device.", function, fmt::ptr(ptr)).Remedy("Free it with aclrtFree.");
  }
  return rt::FreeHost(ptr, function);
}

Status SynchroniseFirst(const char* function) {
  NPU_ASSIGN(Ref<rt::Context> context, rt::Current(function));
  return context->Synchronize(Deadline::Never());
}

Status CacheRange(const void* ptr, size_t size, const char* function) {
  NPU_TRY(NotNull(ptr, function, "devPtr"));
  return NotZero(size, function, "size");
}

}  // namespace

Status aclrtMalloc(void** devPtr, size_t size, aclrtMemMallocPolicy) { return OnDevice(devPtr, size, kPadding, __func__); }
Status aclrtMallocAlign32(void** devPtr, size_t size, aclrtMemMallocPolicy) { return OnDevice(devPtr, size, 0, __func__); }
Status aclrtMallocCached(void** devPtr, size_t size, aclrtMemMallocPolicy) { return OnDevice(devPtr, size, kPadding, __func__); }
Status aclrtMallocWithCfg(void** devPtr, size_t size, aclrtMemMallocPolicy, aclrtMallocConfig* cfg) {
  return WithConfig(devPtr, size, cfg, __func__);
}
Status aclrtMallocForTaskScheduler(void** devPtr, size_t size, aclrtMemMallocPolicy, aclrtMallocConfig* cfg) {
  return WithConfig(devPtr, size, cfg, __func__);
}
Status aclrtFree(void* devPtr) { return FreeDevice(devPtr, __func__); }
Status aclrtFreeWithDevSync(void* devPtr) {
  NPU_NOT_NULL(devPtr);
  NPU_TRY(SynchroniseFirst(__func__));
  return FreeDevice(devPtr, __func__);
}

Status aclrtMallocHost(void** hostPtr, size_t size) { return OnHost(hostPtr, size, __func__); }
Status aclrtMallocHostWithCfg(void** ptr, uint64_t size, aclrtMallocConfig* cfg) {
  int device = -1;
  NPU_TRY(ReadConfig(cfg, &device, __func__));
  return OnHost(ptr, size, __func__);
}
Status aclrtFreeHost(void* hostPtr) { return FreePinned(hostPtr, __func__); }
Status aclrtFreeHostWithDevSync(void* hostPtr) {
  NPU_NOT_NULL(hostPtr);
  NPU_TRY(SynchroniseFirst(__func__));
  return FreePinned(hostPtr, __func__);
}

// All memory is coherent.
Status aclrtMemFlush(void* devPtr, size_t size) { return CacheRange(devPtr, size, __func__); }
Status aclrtMemInvalidate(void* devPtr, size_t size) { return CacheRange(devPtr, size, __func__); }
Status aclrtCmoAsync(void* src, size_t size, aclrtCmoType cmoType, aclrtStream stream) {
  NPU_TRY(CacheRange(src, size, __func__));
  if (cmoType < ACL_RT_CMO_TYPE_PREFETCH || cmoType > ACL_RT_CMO_TYPE_FLUSH) {
    return Error(Code::kFeatureNotSupported, "{}: cmoType is {}; known are 0 to 3.", __func__, static_cast<int>(cmoType));
  }
  return rt::ResolveTaskStream(stream, __func__).status();
}

Status aclrtHostRegister(void* ptr, uint64_t size, aclrtHostRegisterType type, void** devPtr) {
  NPU_NOT_NULL(ptr);
  NPU_NOT_NULL(devPtr);
  NPU_NOT_ZERO(size);
  constexpr uint32_t kKnown = ACL_HOST_REGISTER_IOMEMORY | ACL_HOST_REGISTER_READONLY;
  if ((static_cast<uint32_t>(type) & ~kKnown) != 0) {
    return Error(Code::kFeatureNotSupported, "{}: type is {:#x}.", __func__, static_cast<uint32_t>(type)).Remedy("Pass ACL_HOST_REGISTER_MAPPED.");
  }
  NPU_TRY(rt::Current(__func__).status());
  NPU_TRY(rt::RegisterHost(ptr, size, __func__));
  *devPtr = ptr;
  return {};
}

Status aclrtHostRegisterV2(void* ptr, uint64_t size, uint32_t flag) {
  NPU_NOT_NULL(ptr);
  NPU_NOT_ZERO(size);
  constexpr uint32_t kKnown = ACL_HOST_REG_MAPPED | ACL_HOST_REG_IOMEMORY | ACL_HOST_REG_READONLY | ACL_HOST_REG_PINNED;
  if (flag == 0 || (flag & ~kKnown) != 0) {
    return Error(Code::kOutOfRange, "{}: flag is {:#x}.", __func__, flag).Remedy("Mix ACL_HOST_REG_MAPPED, _IOMEMORY, _READONLY and _PINNED.");
  }
  NPU_TRY(rt::Current(__func__).status());
  return rt::RegisterHost(ptr, size, __func__);
}

Status aclrtHostGetDevicePointer(void* pHost, void** pDevice, uint32_t flag) {
  NPU_NOT_NULL(pHost);
  NPU_NOT_NULL(pDevice);
  if (flag != 0) return Error(Code::kInvalidParam, "{}: flag is {}; it must be 0.", __func__, flag);
  NPU_TRY(rt::ShowToDevices(pHost, __func__));
  *pDevice = pHost;
  return {};
}

Status aclrtHostUnregister(void* ptr) {
  NPU_NOT_NULL(ptr);
  NPU_TRY(rt::Current(__func__).status());
  return rt::UnregisterHost(ptr, __func__);
}

Status aclrtHostMemMapCapabilities(uint32_t deviceId, aclrtHacType, aclrtHostMemMapCapability* capabilities) {
  NPU_NOT_NULL(capabilities);
  NPU_TRY(rt::PhysicalOf(static_cast<int>(deviceId), __func__).status());
  *capabilities = ACL_RT_HOST_MEM_MAP_SUPPORTED;
  return {};
}

Status aclrtPointerGetAttributes(const void* ptr, aclrtPtrAttributes* attributes) {
  NPU_NOT_NULL(ptr);
  NPU_NOT_NULL(attributes);
  std::memset(attributes, 0, sizeof *attributes);
  attributes->location.type = ACL_MEM_LOCATION_TYPE_UNREGISTERED;
  if (const auto block = hbm::Find(ptr)) {
    attributes->location.type = ACL_MEM_LOCATION_TYPE_DEVICE;
    attributes->location.id = static_cast<uint32_t>(std::max(0, rt::LogicalOf(block->card)));
    attributes->pageSize = kDevicePageBytes;
  } else if (rt::FindHost(ptr)) {
    attributes->location.type = ACL_MEM_LOCATION_TYPE_HOST;
    attributes->pageSize = kHostPageBytes;
  }
  return {};
}

Status aclrtGetMemInfo(aclrtMemAttr attr, size_t* free, size_t* total) {
  NPU_NOT_NULL(free);
  NPU_NOT_NULL(total);
  const int kind = static_cast<int>(attr);
  if (kind < ACL_DDR_MEM || kind > ACL_MEM_P2P_HUGE1G) {
    return Error(Code::kInvalidMemoryType, "{}: attr is {}, which is no kind of memory.", __func__, kind).Remedy("Pass ACL_HBM_MEM (1).");
  }
  NPU_ASSIGN(Ref<rt::Context> context, rt::Current(__func__));
  NPU_ASSIGN(const device::Machine* machine, rt::TheMachine());
  const bool any = kind >= ACL_MEM_NORMAL;
  const bool ddr = !any && (kind == ACL_DDR_MEM || kind == ACL_DDR_MEM_HUGE || kind == ACL_DDR_MEM_NORMAL || kind == ACL_DDR_MEM_P2P_HUGE ||
                            kind == ACL_DDR_MEM_P2P_NORMAL);
  if (!any && ddr != machine->profile().ddr) {  // the card has no memory of that kind
    *free = *total = 0;
    return {};
  }
  NPU_ASSIGN(const hbm::Usage usage, hbm::UsageOf(context->card()));
  *free = usage.free;
  *total = usage.total;
  return {};
}

Status aclrtGetMemUsageInfo(int32_t deviceId, aclrtMemUsageInfo* memUsageInfo, size_t inputNum, size_t* outputNum) {
  NPU_NOT_NULL(memUsageInfo);
  NPU_NOT_NULL(outputNum);
  if (inputNum == 0) return Error(Code::kOutOfRange, "{}: inputNum is 0.", __func__).Remedy("Pass room for one record at least.");
  NPU_ASSIGN(const int card, rt::PhysicalOf(deviceId, __func__));
  NPU_TRY(rt::Current(__func__).status());
  NPU_ASSIGN(const hbm::Usage usage, hbm::UsageOf(card));
  uint64_t peak = peak_bytes[card].load(std::memory_order_relaxed);
  while (peak < usage.mine && !peak_bytes[card].compare_exchange_weak(peak, usage.mine, std::memory_order_relaxed)) {
  }
  std::memset(memUsageInfo, 0, sizeof *memUsageInfo);
  std::strncpy(memUsageInfo->name, "APP", sizeof memUsageInfo->name - 1);
  memUsageInfo->curMemSize = usage.mine;
  memUsageInfo->memPeakSize = std::max(peak, usage.mine);
  *outputNum = 1;
  return {};
}

Status aclrtMemGetAddressRange(void* ptr, void** pbase, size_t* psize) {
  NPU_NOT_NULL(ptr);
  const auto block = hbm::Find(ptr);
  if (!block) return Error(Code::kOutOfRange, "{}: ptr {} is not device memory.", __func__, fmt::ptr(ptr));
  if (pbase != nullptr) *pbase = block->client;
  if (psize != nullptr) *psize = block->bytes;
  return {};
}

// Software memory has no uncorrectable errors.
Status aclrtGetMemUceInfo(int32_t deviceId, aclrtMemUceInfo* memUceInfoArray, size_t, size_t* retSize) {
  NPU_NOT_NULL(memUceInfoArray);
  NPU_NOT_NULL(retSize);
  NPU_TRY(rt::PhysicalOf(deviceId, __func__).status());
  *retSize = 0;
  return {};
}

Status aclrtMemUceRepair(int32_t deviceId, aclrtMemUceInfo* memUceInfoArray, size_t arraySize) {
  NPU_NOT_NULL(memUceInfoArray);
  if (arraySize > MAX_MEM_UCE_INFO_ARRAY_SIZE) {
    return Error(Code::kInvalidParam, "{}: arraySize is {}; the most is {}.", __func__, arraySize, MAX_MEM_UCE_INFO_ARRAY_SIZE);
  }
  return rt::PhysicalOf(deviceId, __func__).status();
}

}  // namespace npu::calls
