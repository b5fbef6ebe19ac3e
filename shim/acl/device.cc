// Devices: count, set, reset, numbers, properties, peers.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <string>

#include "base/os/process.h"
#include "device/figures/read.h"
#include "gen/calls/acl.h"
#include "runtime/context/context.h"
#include "runtime/context/devices.h"
#include "runtime/context/limits.h"
#include "shim/acl/args.h"

namespace npu::calls {
namespace {

using rt::PhysicalOf;
using rt::TheMachine;

Status UnknownKind(const char* function, const char* parameter, int value, Code code) {
  return Error(code, "{}: {} is {}, which is not known.", function, parameter, value).Remedy("Use a value of the enum's list.");
}

// A pair of devices as the peer functions want it.
Status TwoDevices(int device, int peer, const char* function) {
  if (device == peer) {
    return Error(Code::kInvalidParam, "{}: deviceId and peerDeviceId are both {}.", function, device).Remedy("Pass two different devices.");
  }
  NPU_TRY(PhysicalOf(device, function).status());
  return PhysicalOf(peer, function).status();
}

}  // namespace

Status aclrtGetDeviceCount(uint32_t* count) {
  NPU_NOT_NULL(count);
  *count = 0;
  NPU_ASSIGN(const int found, rt::DeviceCount());
  *count = static_cast<uint32_t>(found);
  return {};
}

Status aclrtSetDevice(int32_t deviceId) { return rt::SetDevice(deviceId, __func__); }
Status aclrtResetDevice(int32_t deviceId) { return rt::ResetDevice(deviceId, /*force=*/false, __func__); }
Status aclrtResetDeviceForce(int32_t deviceId) { return rt::ResetDevice(deviceId, /*force=*/true, __func__); }

Status aclrtGetDevice(int32_t* deviceId) {
  NPU_NOT_NULL(deviceId);
  NPU_ASSIGN(*deviceId, rt::CurrentDevice(__func__));
  return {};
}

Status aclrtGetRunMode(aclrtRunMode* runMode) {
  NPU_NOT_NULL(runMode);
  *runMode = ACL_HOST;
  return {};
}

Status aclrtSetTsDevice(aclrtTsId tsId) {
  if (tsId == ACL_TS_ID_AICORE || tsId == ACL_TS_ID_AIVECTOR) return {};
  return UnknownKind(__func__, "tsId", static_cast<int>(tsId), Code::kInvalidParam);
}

Status aclrtSynchronizeDevice() {
  NPU_ASSIGN(Ref<rt::Context> context, rt::Current(__func__));
  return context->Synchronize(Deadline::Never());
}

Status aclrtSynchronizeDeviceWithTimeout(int32_t timeout) {
  if (timeout == 0 || timeout < -1) {
    return Error(Code::kOutOfRange, "{}: timeout is {} ms.", __func__, timeout).Remedy("Pass -1 to wait for ever, or a limit above 0.");
  }
  NPU_ASSIGN(Ref<rt::Context> context, rt::Current(__func__));
  return context->Synchronize(Deadline::FromMs(timeout));
}

Status aclrtGetDeviceUtilizationRate(int32_t deviceId, aclrtUtilizationInfo* utilizationInfo) {
  NPU_NOT_NULL(utilizationInfo);
  if (utilizationInfo->utilizationExtend != nullptr) {
    return Error(Code::kInvalidParam, "{}: utilizationExtend must be null.", __func__);
  }
  utilizationInfo->cubeUtilization = utilizationInfo->vectorUtilization = -1;
  utilizationInfo->aicpuUtilization = utilizationInfo->memoryUtilization = -1;
  const auto card = PhysicalOf(deviceId, __func__);
  const auto machine = TheMachine();
  if (!card.ok() || !machine.ok()) return {};
  device::MachineConfig config;
  config.name = (*machine)->name();
  auto figures = device::ReadFigures(config);
  if (!figures.ok() || static_cast<size_t>(*card) >= figures->cards.size()) return {};
  const device::CardFigures& now = figures->cards[*card];
  utilizationInfo->cubeUtilization = static_cast<int32_t>(now.use_cube * 100);
  utilizationInfo->vectorUtilization = static_cast<int32_t>(now.use_vector * 100);
  utilizationInfo->aicpuUtilization = 0;
  return {};
}

Status aclrtQueryDeviceStatus(int32_t deviceId, aclrtDeviceStatus* deviceStatus) {
  NPU_NOT_NULL(deviceStatus);
  NPU_TRY(PhysicalOf(deviceId, __func__).status());
  *deviceStatus = ACL_RT_DEVICE_STATUS_NORMAL;
  return {};
}

Status aclrtDeviceCanAccessPeer(int32_t* canAccessPeer, int32_t deviceId, int32_t peerDeviceId) {
  NPU_NOT_NULL(canAccessPeer);
  NPU_TRY(TwoDevices(deviceId, peerDeviceId, __func__));
  *canAccessPeer = 1;
  return {};
}

Status aclrtDeviceEnablePeerAccess(int32_t peerDeviceId, uint32_t flags) {
  NPU_ASSIGN(Ref<rt::Context> context, rt::Current(__func__));
  if (flags != 0) {
    return Error(Code::kApiNotSupported, "{}: flags is {}.", __func__, flags).Remedy("Pass 0; no other value exists.");
  }
  NPU_TRY(TwoDevices(context->device(), peerDeviceId, __func__));
  return rt::SetPeerAccess(context->device(), peerDeviceId, true);
}

Status aclrtDeviceDisablePeerAccess(int32_t peerDeviceId) {
  NPU_ASSIGN(Ref<rt::Context> context, rt::Current(__func__));
  NPU_TRY(TwoDevices(context->device(), peerDeviceId, __func__));
  return rt::SetPeerAccess(context->device(), peerDeviceId, false);
}

Status aclrtDevicePeerAccessStatus(int32_t deviceId, int32_t peerDeviceId, int32_t* status) {
  NPU_NOT_NULL(status);
  NPU_TRY(TwoDevices(deviceId, peerDeviceId, __func__));
  *status = rt::PeerAccess(deviceId, peerDeviceId) ? 1 : 0;
  return {};
}

Status aclrtGetDevicesTopo(uint32_t deviceId, uint32_t otherDeviceId, uint64_t* value) {
  NPU_NOT_NULL(value);
  NPU_TRY(PhysicalOf(static_cast<int>(deviceId), __func__).status());
  NPU_TRY(PhysicalOf(static_cast<int>(otherDeviceId), __func__).status());
  *value = ACL_RT_DEVS_TOPOLOGY_HCCS;
  return {};
}

Status aclrtGetPrimaryCtxState(int32_t deviceId, uint32_t* flags, int32_t* active) {
  NPU_NOT_NULL(active);
  if (flags != nullptr) return Error(Code::kInvalidParam, "{}: flags must be null.", __func__);
  NPU_TRY(PhysicalOf(deviceId, __func__).status());
  *active = rt::PrimaryActive(deviceId) ? 1 : 0;
  return {};
}

Status aclrtDeviceGetBareTgid(int32_t* pid) {
  NPU_NOT_NULL(pid);
  *pid = os::Self().pid;
  return {};
}

Status aclrtDeviceGetUuid(int32_t deviceId, aclrtUuid* uuid) {
  NPU_NOT_NULL(uuid);
  NPU_ASSIGN(const int card, PhysicalOf(deviceId, __func__));
  NPU_ASSIGN(const device::Machine* machine, TheMachine());
  // The same for all processes of a machine, different for every card and every making of the machine.
  const uint64_t words[2] = {machine->nonce(), 0x416E794E50550000ull + static_cast<uint64_t>(card)};
  std::memcpy(uuid->bytes, words, sizeof uuid->bytes);
  return {};
}

Status aclrtDeviceGetPCIBusId(int32_t deviceId, char* pciBusId, int32_t len) {
  NPU_NOT_NULL(pciBusId);
  NPU_ASSIGN(const int card, PhysicalOf(deviceId, __func__));
  const std::string text = device::BusId(card);
  if (len < 0 || static_cast<size_t>(len) <= text.size()) {
    return Error(Code::kInvalidParam, "{}: len is {}, but the text needs {} bytes.", __func__, len, text.size() + 1);
  }
  std::memcpy(pciBusId, text.c_str(), text.size() + 1);
  return {};
}

Status aclrtDeviceGetByPCIBusId(const char* pciBusId, int32_t* deviceId) {
  NPU_NOT_NULL(pciBusId);
  NPU_NOT_NULL(deviceId);
  NPU_ASSIGN(const rt::Visible* visible, rt::TheVisible());
  for (size_t i = 0; i < visible->physical.size(); ++i) {
    if (device::BusId(visible->physical[i]) == pciBusId) {
      *deviceId = static_cast<int32_t>(i);
      return {};
    }
  }
  return Error(Code::kInvalidDevice, "{}: no visible device has the bus id \"{}\".", __func__, pciBusId);
}

Status aclrtDeviceGetStreamPriorityRange(int32_t* leastPriority, int32_t* greatestPriority) {
  NPU_NOT_NULL(leastPriority);
  NPU_NOT_NULL(greatestPriority);
  *leastPriority = rt::Pool::kPriorities - 1;
  *greatestPriority = 0;
  return {};
}

Status aclrtGetDeviceInfo(uint32_t deviceId, aclrtDevAttr attr, int64_t* value) {
  NPU_NOT_NULL(value);
  const auto card = PhysicalOf(static_cast<int>(deviceId), __func__);
  if (!card.ok()) return Status(Code::kOutOfRange, std::string(card.status().text()));
  NPU_ASSIGN(const device::Machine* machine, TheMachine());
  const device::Profile& profile = machine->profile();
  switch (static_cast<int>(attr)) {
    case ACL_DEV_ATTR_AICPU_CORE_NUM: *value = profile.ai_cpus; return {};
    case ACL_DEV_ATTR_AICORE_CORE_NUM: *value = profile.ai_cores; return {};
    case ACL_DEV_ATTR_CUBE_CORE_NUM: *value = profile.cube_cores; return {};
    case ACL_DEV_ATTR_VECTOR_CORE_NUM: *value = profile.vector_cores; return {};
    case ACL_DEV_ATTR_UBUF_PER_VECTOR_CORE: *value = static_cast<int64_t>(profile.ub_bytes); return {};
    case ACL_DEV_ATTR_TOTAL_GLOBAL_MEM_SIZE: *value = static_cast<int64_t>(machine->hbm_bytes()); return {};
    case ACL_DEV_ATTR_L2_CACHE_SIZE: *value = static_cast<int64_t>(profile.l2_bytes); return {};
    case ACL_DEV_ATTR_PHY_CHIP_ID: *value = *card; return {};
    case ACL_DEV_ATTR_IS_VIRTUAL: *value = 0; return {};
    case ACL_DEV_ATTR_NPU_ARCH: *value = profile.npu_arch; return {};
    default: break;
  }
  const int kind = static_cast<int>(attr);
  const bool known = (kind >= ACL_DEV_ATTR_WARP_SIZE && kind <= ACL_DEV_ATTR_MAX_BLOCK_DIM_Z) ||
                     (kind >= ACL_DEV_ATTR_SMP_ID && kind <= ACL_DEV_ATTR_HD_CONNECT_TYPE);
  if (known) return Error(Code::kFeatureNotSupported, "{}: {} does not have attribute {}.", __func__, profile.soc, kind);
  return UnknownKind(__func__, "attr", kind, Code::kOutOfRange);
}

Status aclrtGetDeviceCapability(int32_t deviceId, aclrtDevFeatureType devFeatureType, int32_t* value) {
  NPU_NOT_NULL(value);
  NPU_TRY(PhysicalOf(deviceId, __func__).status());
  switch (static_cast<int>(devFeatureType)) {
    case ACL_FEATURE_TSCPU_TASK_UPDATE_SUPPORT_AIC_AIV: *value = ACL_DEV_FEATURE_NOT_SUPPORT; return {};
    case ACL_FEATURE_SYSTEM_MEMQ_EVENT_CROSS_DEV: *value = ACL_DEV_FEATURE_NOT_SUPPORT; return {};
    default: return UnknownKind(__func__, "devFeatureType", static_cast<int>(devFeatureType), Code::kInvalidParam);
  }
}

// Three numberings: "user" is what a process counts, "logic" is the driver's, "physical" the card's. The latter two are one
// here: a software machine has no renumbering driver.
Status aclrtGetLogicDevIdByUserDevId(const int32_t userDevid, int32_t* const logicDevId) {
  NPU_NOT_NULL(logicDevId);
  if (userDevid < 0) return Error(Code::kOutOfRange, "{}: userDevid is {}.", __func__, userDevid);
  NPU_ASSIGN(*logicDevId, PhysicalOf(userDevid, __func__));
  return {};
}
Status aclrtGetPhyDevIdByUserDevId(const int32_t userDevId, int32_t* const phyDevId) {
  NPU_NOT_NULL(phyDevId);
  if (userDevId < 0) return Error(Code::kOutOfRange, "{}: userDevId is {}.", __func__, userDevId);
  NPU_ASSIGN(*phyDevId, PhysicalOf(userDevId, __func__));
  return {};
}
namespace {
Status UserOf(int card, int32_t* user, const char* function) {
  NPU_TRY(rt::TheVisible().status());
  const int logical = rt::LogicalOf(card);
  if (logical < 0) return Error(Code::kInvalidDevice, "{}: card {} is not visible to this process.", function, card);
  *user = logical;
  return {};
}
Status SameCard(int card, int32_t* out, const char* function) {
  NPU_ASSIGN(const device::Machine* machine, TheMachine());
  if (card < 0 || card >= machine->cards()) {
    return Error(Code::kInvalidDevice, "{}: card {} does not exist; there are {}.", function, card, machine->cards());
  }
  *out = card;
  return {};
}
}  // namespace
Status aclrtGetUserDevIdByLogicDevId(const int32_t logicDevId, int32_t* const userDevid) {
  NPU_NOT_NULL(userDevid);
  return UserOf(logicDevId, userDevid, __func__);
}
Status aclrtGetUserDevIdByPhyDevId(const int32_t phyDevId, int32_t* const userDevId) {
  NPU_NOT_NULL(userDevId);
  return UserOf(phyDevId, userDevId, __func__);
}
Status aclrtGetLogicDevIdByPhyDevId(const int32_t phyDevId, int32_t* const logicDevId) {
  NPU_NOT_NULL(logicDevId);
  return SameCard(phyDevId, logicDevId, __func__);
}
Status aclrtGetPhyDevIdByLogicDevId(const int32_t logicDevId, int32_t* const phyDevId) {
  NPU_NOT_NULL(phyDevId);
  return SameCard(logicDevId, phyDevId, __func__);
}

}  // namespace npu::calls
