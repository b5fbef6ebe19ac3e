// What the chip and the software can do: answers that need no open device.
#include "gen/calls/acl.h"
#include "runtime/context/devices.h"
#include "shim/acl/machine_facts.h"

namespace npu::calls {
namespace {

// What software of this age knows to ask for; whether the chip has it is another question.
constexpr aclCannAttr kAttributes[] = {ACL_CANN_ATTR_INF_NAN, ACL_CANN_ATTR_BF16, ACL_CANN_ATTR_JIT_COMPILE};

bool Has(const device::Profile& profile, aclCannAttr attribute) {
  // Chips with bf16 (910B and later) keep inf and nan and use library kernels; older ones saturate. All can be asked to
  // compile, so JIT is present everywhere.
  return attribute == ACL_CANN_ATTR_JIT_COMPILE || profile.bf16;
}

}  // namespace

const char* aclrtGetSocName() {
  const Result<MachineFacts> facts = FactsOfMachine();
  return facts.ok() ? (*facts).profile->soc.data() : nullptr;
}

Status aclGetCannAttributeList(const aclCannAttr** cannAttrList, size_t* num) {
  if (cannAttrList == nullptr || num == nullptr) {
    return Error(Code::kInvalidParam, "aclGetCannAttributeList: an output is null.");
  }
  static aclCannAttr available[std::size(kAttributes)];
  static const Result<size_t> count = []() -> Result<size_t> {
    NPU_ASSIGN(const MachineFacts facts, FactsOfMachine());
    size_t n = 0;
    for (const aclCannAttr attribute : kAttributes) {
      if (Has(*facts.profile, attribute)) available[n++] = attribute;
    }
    return n;
  }();
  if (!count.ok()) return count.status();
  *cannAttrList = available;
  *num = *count;
  return {};
}

Status aclGetCannAttribute(aclCannAttr cannAttr, int32_t* value) {
  if (value == nullptr) return Error(Code::kInvalidParam, "aclGetCannAttribute: value is null.");
  bool known = false;
  for (const aclCannAttr attribute : kAttributes) known |= attribute == cannAttr;
  if (!known) {
    return Error(Code::kInvalidParam, "aclGetCannAttribute: there is no attribute {}.", static_cast<int>(cannAttr));
  }
  NPU_ASSIGN(const MachineFacts facts, FactsOfMachine());
  *value = Has(*facts.profile, cannAttr) ? 1 : 0;
  return {};
}

Status aclGetDeviceCapability(uint32_t deviceId, aclDeviceInfo deviceInfo, int64_t* value) {
  if (value == nullptr) return Error(Code::kInvalidParam, "aclGetDeviceCapability: value is null.");
  NPU_ASSIGN(const int count, rt::DeviceCount());
  if (deviceId >= static_cast<uint32_t>(count)) {
    return Error(Code::kInvalidParam, "aclGetDeviceCapability: deviceId is {}, but there are {} devices.", deviceId,
                 count);
  }
  NPU_ASSIGN(const MachineFacts facts, FactsOfMachine());
  switch (deviceInfo) {
    case ACL_DEVICE_INFO_AI_CORE_NUM:
      *value = facts.profile->ai_cores;
      return {};
    case ACL_DEVICE_INFO_VECTOR_CORE_NUM:
      *value = facts.profile->vector_cores;
      return {};
    case ACL_DEVICE_INFO_L2_SIZE:
      *value = static_cast<int64_t>(facts.profile->l2_bytes);
      return {};
    case ACL_DEVICE_INFO_UNDEFINED:
      break;
  }
  return Error(Code::kInvalidParam, "aclGetDeviceCapability: there is no item {}.", static_cast<int>(deviceInfo));
}

}  // namespace npu::calls
