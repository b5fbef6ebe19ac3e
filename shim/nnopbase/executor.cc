// Executors that clients keep: repeatable ones, whose tensor addresses may change between runs.
#include "gen/calls/nnopbase.h"
#include "ops/core/executor.h"
#include "ops/core/platform.h"

namespace npu::calls {
namespace {

using ops::Executor, ops::Kind, ops::Pool, ops::Role, ops::TensorObject;

Result<Executor*> Live(aclOpExecutor* executor, const char* function) {
  if (executor == nullptr) {
    return Error(Code::kNullPointer, "{}: executor is null.", function).Remedy("Pass what …GetWorkspaceSize returned.");
  }
  Executor* e = Pool<Executor>::Find(executor);
  if (e == nullptr) {
    return Error(Code::kInvalidParam, "{}: {} is not a live executor.", function, static_cast<const void*>(executor))
        .Remedy("An executor ends with its first run unless aclSetAclOpExecutorRepeatable was called before.");
  }
  return e;
}

enum class Side { kInput, kOutput, kAny };

bool Counts(const ops::Param& p, Kind kind, Side side) {
  if (p.kind != kind) return false;
  return side == Side::kAny || (side == Side::kInput ? p.role != Role::out : p.role != Role::in);
}

// The index-th parameter of that kind, then the element of it.
Status SetAddress(const char* function, aclOpExecutor* executor, Kind kind, Side side, size_t index, size_t element,
                  const void* object, void* addr) {
  NPU_ASSIGN(Executor * e, Live(executor, function));
  ops::Args args(e->arguments.data());
  size_t seen = 0;
  for (size_t p = 0; p < e->op->params.size(); ++p) {
    if (!Counts(e->op->params[p], kind, side) || seen++ != index) continue;
    const auto tensors = args.Many<Tensor>(ops::Token{static_cast<uint8_t>(p)});
    if (element >= tensors.size()) break;
    const auto local = ops::ThePlatform().local;
    void* base = local != nullptr ? local(addr) : addr;
    if (base == nullptr) {
      return Error(Code::kInvalidParam, "{}: addr {} is not device memory.", function, addr)
          .Remedy("Pass an address inside an allocation of aclrtMalloc.");
    }
    const TensorObject* t = Pool<TensorObject>::Find(object);
    const int64_t offset = t != nullptr ? t->offset : 0;
    tensors[element].data = static_cast<char*>(base) + offset * ItemSize(tensors[element].dtype);
    return {};
  }
  return Error(Code::kInvalidParam, "{}: {} has no tensor number {} (element {}) there.", function, e->op->name, index, element)
      .Remedy("Count the tensor parameters of the operator from 0.");
}

// The tensor object of a list's element, for its offset.
const void* ElementOf(aclTensorList* tensors, size_t element) {
  const ops::ListObject* list = Pool<ops::ListObject>::Find(tensors);
  return list != nullptr && element < list->items.size() ? list->items[element] : nullptr;
}

}  // namespace

Status aclSetAclOpExecutorRepeatable(aclOpExecutor* executor) {
  NPU_ASSIGN(Executor * e, Live(executor, "aclSetAclOpExecutorRepeatable"));
  e->repeatable = true;
  return {};
}

Status aclDestroyAclOpExecutor(aclOpExecutor* executor) {
  NPU_ASSIGN(Executor * e, Live(executor, "aclDestroyAclOpExecutor"));
  ops::DestroyExecutor(e);
  return {};
}

#define NPU_SET_ADDRESS(name, side)                                                                             \
  Status name(aclOpExecutor* executor, const size_t index, aclTensor* tensor, void* addr) {                     \
    return SetAddress(#name, executor, Kind::tensor, side, index, 0, tensor, addr);                             \
  }
NPU_SET_ADDRESS(aclSetInputTensorAddr, Side::kInput)
NPU_SET_ADDRESS(aclSetOutputTensorAddr, Side::kOutput)
NPU_SET_ADDRESS(aclSetTensorAddr, Side::kAny)
NPU_SET_ADDRESS(AclSetInputTensorAddr, Side::kInput)
NPU_SET_ADDRESS(AclSetOutputTensorAddr, Side::kOutput)
NPU_SET_ADDRESS(AclSetTensorAddr, Side::kAny)
#undef NPU_SET_ADDRESS

#define NPU_SET_LIST_ADDRESS(name, side)                                                                                    \
  Status name(aclOpExecutor* executor, size_t irIndex, const size_t relativeIndex, aclTensorList* tensors, void* addr) {    \
    return SetAddress(#name, executor, Kind::tensor_list, side, irIndex, relativeIndex, ElementOf(tensors, relativeIndex), addr); \
  }
NPU_SET_LIST_ADDRESS(aclSetDynamicInputTensorAddr, Side::kInput)
NPU_SET_LIST_ADDRESS(aclSetDynamicOutputTensorAddr, Side::kOutput)
NPU_SET_LIST_ADDRESS(aclSetDynamicTensorAddr, Side::kAny)
NPU_SET_LIST_ADDRESS(AclSetDynamicInputTensorAddr, Side::kInput)
NPU_SET_LIST_ADDRESS(AclSetDynamicOutputTensorAddr, Side::kOutput)
NPU_SET_LIST_ADDRESS(AclSetDynamicTensorAddr, Side::kAny)
#undef NPU_SET_LIST_ADDRESS

// The operator library needs no start; the configuration file has nothing that applies to a CPU.
Status aclnnInit(const char*) { return {}; }
Status aclnnFinalize() { return {}; }

}  // namespace npu::calls
