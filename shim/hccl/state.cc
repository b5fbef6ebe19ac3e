// What can be asked of a communicator and of the library.
#include <cstring>
#include <string>

#include "base/status/last_error.h"
#include "gen/calls/hccl.h"
#include "runtime/context/devices.h"
#include "shim/hccl/comms.h"

namespace npu::calls {

Status HcclGetRankSize(HcclComm comm, uint32_t* rankSize) {
  HCCL_NOT_NULL(rankSize);
  NPU_ASSIGN(const Ref<hccl::Client> client, hccl::Find(comm, __func__));
  *rankSize = client->comm()->size();
  return {};
}

Status HcclGetRankId(HcclComm comm, uint32_t* rank) {
  HCCL_NOT_NULL(rank);
  NPU_ASSIGN(const Ref<hccl::Client> client, hccl::Find(comm, __func__));
  *rank = client->comm()->rank();
  return {};
}

Status HcclGetCommName(HcclComm comm, char* commName) {
  HCCL_NOT_NULL(commName);
  NPU_ASSIGN(const Ref<hccl::Client> client, hccl::Find(comm, __func__));
  std::memcpy(commName, client->comm()->name().c_str(), client->comm()->name().size() + 1);
  return {};
}

Status HcclGetCommAsyncError(HcclComm comm, HcclResult* asyncError) {
  HCCL_NOT_NULL(asyncError);
  NPU_ASSIGN(const Ref<hccl::Client> client, hccl::Find(comm, __func__));
  const Status failure = client->comm()->Failure();
  switch (failure.code()) {
    case Code::kRemoteError:
      *asyncError = HCCL_E_REMOTE;
      break;
    case Code::kCommMismatch:
      *asyncError = HCCL_E_PARA;
      break;
    default:
      *asyncError = HCCL_SUCCESS;
      break;  // time-outs and aborts are not reported here
  }
  // Who asks is told why, once: torch_npu's watchdog ends the process with this thread's recent error as its last word.
  thread_local std::string told;
  if (*asyncError != HCCL_SUCCESS && told != failure.text()) {
    told = failure.text();
    RecordError(failure, *asyncError);
  }
  return {};
}

// Calls that are under way end with an error, here and on the ranks that wait for this one; new ones are refused with
// "suspending" until HcclCommResume.
Status HcclCommSuspend(HcclComm comm) {
  NPU_ASSIGN(const Ref<hccl::Client> client, hccl::Find(comm, __func__));
  const Ref<coll::Communicator> communicator = client->comm();
  const Status failure = communicator->Failure();
  if (failure.ok()) {
    communicator->Fail(Error(Code::kTaskAbort, "Communicator {} is suspended.", communicator->name())
                           .Remedy("Call HcclCommResume on all of its ranks."));
    return {};
  }
  if (failure.code() == Code::kTaskAbort) return {};
  return Error(Code::kCommUnavailable, "{}: communicator {} is broken: {}", __func__, communicator->name(),
               failure.text())
      .Remedy("Call HcclCommResume on all ranks if they live, else make a new communicator.");
}

Status HcclCommResume(HcclComm comm) {
  NPU_ASSIGN(const Ref<hccl::Client> client, hccl::Find(comm, __func__));
  return client->Resume();
}

// The ports of network cards. Traffic here passes through none, so the choice is checked and has no further effect.
Status HcclCommWorkingDevNicSet(HcclComm comm, uint32_t* ranks, bool* useBackup, uint32_t nRanks) {
  HCCL_NOT_NULL(ranks);
  HCCL_NOT_NULL(useBackup);
  NPU_ASSIGN(const Ref<hccl::Client> client, hccl::Find(comm, __func__));
  const uint32_t size = client->comm()->size();
  if (nRanks == 0 || nRanks > size) {
    return Error(Code::kInvalidParam, "EI0003: {}: nRanks is {}, the communicator has {} ranks.", __func__, nRanks, size)
        .Remedy("List ranks of the communicator, each once.");
  }
  NPU_ASSIGN(const device::Machine* machine, rt::TheMachine());
  const bool has_backup = machine->profile().short_soc == "Ascend910_93";  // two dies that can lend each other their port
  for (uint32_t i = 0; i < nRanks; ++i) {
    if (ranks[i] >= size) {
      return Error(Code::kInvalidParam, "EI0003: {}: ranks[{}] is {}, the communicator has {} ranks.", __func__, i,
                   ranks[i], size)
          .Remedy("List ranks of the communicator, each once.");
    }
    if (useBackup[i] && !has_backup) {
      return Error(Code::kNotSupported, "{}: useBackup[{}] is set; a device of an {} has one network port.", __func__, i,
                   machine->profile().short_soc)
          .Remedy("Leave the devices on their own ports.");
    }
  }
  return {};
}

Status HcclSetConfig(HcclConfig config, HcclConfigValue configValue) {
  if (config != ::HCCL_DETERMINISTIC) return {};
  if (configValue.value < 0 || configValue.value > 2) {
    return Error(Code::kInvalidParam, "EI0003: {}: deterministic is {}.", __func__, configValue.value)
        .Remedy("Pass 0, 1 or 2.");
  }
  if (std::getenv("HCCL_DETERMINISTIC") == nullptr) hccl::SetDeterminism(configValue.value);
  return {};
}

Status HcclGetConfig(HcclConfig config, HcclConfigValue* configValue) {
  HCCL_NOT_NULL(configValue);
  if (config == ::HCCL_DETERMINISTIC) configValue->value = hccl::Determinism();
  return {};
}

Status HcclSetCommConfig(HcclComm comm, HcclConfig config, HcclConfigValue configValue) {
  NPU_ASSIGN(const Ref<hccl::Client> client, hccl::Find(comm, __func__));
  if (config == ::HCCL_DETERMINISTIC) client->comm()->determinism = configValue.value;
  return {};
}

Status HcclGetCommConfig(HcclComm comm, HcclConfig config, HcclConfigValue* configValue) {
  HCCL_NOT_NULL(configValue);
  NPU_ASSIGN(const Ref<hccl::Client> client, hccl::Find(comm, __func__));
  if (config == ::HCCL_DETERMINISTIC) configValue->value = client->comm()->determinism;
  return {};
}

// Fields of HcclCommConfig below this number are understood: buffer sizes, algorithms and expansion modes have nothing
// to steer here and are taken without effect.
uint32_t HcclGetCommConfigCapability() { return HCCL_COMM_CONFIG_RESERVED; }

const char* HcclGetErrorString(HcclResult code) {
  switch (code) {
    case HCCL_SUCCESS:
      return "no error";
    case HCCL_E_PARA:
      return "a parameter has a bad value";
    case HCCL_E_PTR:
      return "a pointer is null";
    case HCCL_E_MEMORY:
      return "memory could not be had";
    case HCCL_E_INTERNAL:
      return "a fault inside the library";
    case HCCL_E_NOT_SUPPORT:
      return "the feature is not supported";
    case HCCL_E_NOT_FOUND:
      return "a resource was not found";
    case HCCL_E_UNAVAIL:
      return "a resource is not available, often a port in use";
    case HCCL_E_SYSCALL:
      return "a system call failed";
    case HCCL_E_TIMEOUT:
      return "a time limit was reached";
    case HCCL_E_OPEN_FILE_FAILURE:
      return "a file could not be opened";
    case HCCL_E_TCP_CONNECT:
      return "a TCP connection could not be made";
    case HCCL_E_ROCE_CONNECT:
      return "a RoCE connection could not be made";
    case HCCL_E_TCP_TRANSFER:
      return "a TCP transfer failed";
    case HCCL_E_ROCE_TRANSFER:
      return "a RoCE transfer failed";
    case HCCL_E_RUNTIME:
      return "a runtime call failed";
    case HCCL_E_DRV:
      return "a driver call failed";
    case HCCL_E_PROFILING:
      return "profiling failed";
    case HCCL_E_CCE:
      return "a cce call failed";
    case HCCL_E_NETWORK:
      return "a network call failed";
    case HCCL_E_AGAIN:
      return "busy, try again";
    case HCCL_E_REMOTE:
      return "a peer reported an error or died";
    case HCCL_E_SUSPENDING:
      return "the communicator is suspended";
    case HCCL_E_OPRETRY_FAIL:
      return "repeating the operation did not help";
    default:
      return "an error code that HCCL does not know";
  }
}

// A communicator here always works on the callers' buffers themselves: there is nothing to prepare for zero copy.
Status HcclCommSetMemoryRange(HcclComm comm, void* baseVirPtr, size_t, size_t, uint64_t) {
  HCCL_NOT_NULL(baseVirPtr);
  return hccl::Find(comm, __func__).status();
}

Status HcclCommUnsetMemoryRange(HcclComm comm, void* baseVirPtr) {
  HCCL_NOT_NULL(baseVirPtr);
  return hccl::Find(comm, __func__).status();
}

Status HcclCommActivateCommMemory(HcclComm comm, void* virPtr, size_t, size_t, aclrtDrvMemHandle handle, uint64_t) {
  HCCL_NOT_NULL(virPtr);
  HCCL_NOT_NULL(handle);
  return hccl::Find(comm, __func__).status();
}

Status HcclCommDeactivateCommMemory(HcclComm comm, void* virPtr) {
  HCCL_NOT_NULL(virPtr);
  return hccl::Find(comm, __func__).status();
}

}  // namespace npu::calls
