// Overflow in saturation mode: the mode of a device, and the flag that operators leave behind.
#include "runtime/context/overflow.h"

#include "gen/calls/acl.h"
#include "runtime/context/context.h"
#include "runtime/context/limits.h"
#include "shim/acl/args.h"

namespace npu::calls {
namespace {

Status Read(void* to, size_t bytes, aclrtStream stream, const char* function) {
  NPU_ASSIGN(Ref<rt::TaskStream> found, rt::ResolveTaskStream(stream, function));
  return rt::QueueOverflowRead(to, bytes, rt::FlagAs::kInteger, *found, function, "outputAddr");
}

Status Clear(aclrtStream stream, const char* function) {
  NPU_ASSIGN(Ref<rt::TaskStream> found, rt::ResolveTaskStream(stream, function));
  return rt::QueueOverflowClear(*found);
}

}  // namespace

Status aclrtSetDeviceSatMode(aclrtFloatOverflowMode mode) {
  if (mode != ACL_RT_OVERFLOW_MODE_SATURATION && mode != ACL_RT_OVERFLOW_MODE_INFNAN) {
    return Error(Code::kOutOfRange, "{}: mode is {}; known are 0 (saturation) and 1 (inf and nan).", __func__, static_cast<int>(mode));
  }
  const auto device = rt::CurrentDevice(__func__);
  rt::SetSaturationMode(device.ok() ? *device : 0, static_cast<int>(mode));
  return {};
}

Status aclrtGetDeviceSatMode(aclrtFloatOverflowMode* mode) {
  NPU_NOT_NULL(mode);
  const auto device = rt::CurrentDevice(__func__);
  *mode = static_cast<aclrtFloatOverflowMode>(rt::SaturationMode(device.ok() ? *device : 0));
  return {};
}

Status aclrtGetOverflowStatus(void* outputAddr, size_t outputSize, aclrtStream stream) {
  NPU_NOT_NULL(outputAddr);
  return Read(outputAddr, outputSize, stream, __func__);
}

Status aclrtResetOverflowStatus(aclrtStream stream) { return Clear(stream, __func__); }

Status aclrtGetFloatOverflowStatus(void* outputAddr, uint64_t outputSize, aclrtStream stream) {
  NPU_NOT_NULL(outputAddr);
  return Read(outputAddr, outputSize, stream, __func__);
}

Status aclrtResetFloatOverflowStatus(aclrtStream stream) { return Clear(stream, __func__); }

// checkMode chooses among the registers of a chip; here there is one flag.
Status aclrtNpuGetFloatOverFlowStatus(void* outputAddr, uint64_t outputSize, uint32_t, aclrtStream stream) {
  NPU_NOT_NULL(outputAddr);
  return Read(outputAddr, outputSize, stream, __func__);
}

Status aclrtNpuClearFloatOverFlowStatus(uint32_t, aclrtStream stream) { return Clear(stream, __func__); }

}  // namespace npu::calls
