// Single operators by type name: the checks CANN makes; then libopapi, which has the operators, runs them.
#include <dlfcn.h>

#include <string>

#include "acl/acl_base.h"
#include "gen/calls/op_compiler.h"
#include "ops/core/named.h"

namespace npu::calls {
namespace {

struct Call {
  const char* function;
  const char* op_type;
  int inputs;
  const aclTensorDesc* const* input_descs;
  int outputs;
  const aclTensorDesc* const* output_descs;
  aclopCompileType compile_type;
  const aclopAttr* attributes;
  aclrtStream stream;
};

ops::named::Operand OperandOf(const aclTensorDesc* desc, const aclDataBuffer* buffer) {
  ops::named::Operand o;
  o.data = aclGetDataBufferAddr(buffer);
  o.bytes = aclGetDataBufferSizeV2(buffer);
  o.dtype = static_cast<DType>(aclGetTensorDescType(desc));
  o.format = aclGetTensorDescFormat(desc);
  const size_t rank = aclGetTensorDescNumDims(desc);
  for (size_t d = 0; rank != ACL_UNKNOWN_RANK && d < rank; ++d) o.dims.push_back(aclGetTensorDescDim(desc, d));
  return o;
}

ops::named::Runner FindRunner() {
  std::atomic<ops::named::Runner>& runner = ops::named::TheRunner();
  // The operators' library registers itself when it is loaded.
  if (runner.load(std::memory_order_acquire) == nullptr) (void)dlopen("libopapi.so", RTLD_NOW | RTLD_LOCAL);
  return runner.load(std::memory_order_acquire);
}

template <class T>
Status NoneNull(const Call& call, const char* what, int count, T const* array) {
  if (count > 0 && array == nullptr)
    return Error(Code::kInvalidParam, "{}: {} of {} is null.", call.function, what, call.op_type);
  for (int i = 0; i < count; ++i) {
    if (array[i] == nullptr) {
      return Error(Code::kInvalidParam, "{}: {}[{}] of {} is null.", call.function, what, i, call.op_type);
    }
  }
  return {};
}

bool AllEmpty(const Call& call) {
  if (call.outputs == 0) return false;
  for (int i = 0; i < call.outputs; ++i) {
    bool empty = false;
    const size_t rank = aclGetTensorDescNumDims(call.output_descs[i]);
    for (size_t d = 0; rank != ACL_UNKNOWN_RANK && d < rank; ++d)
      empty |= aclGetTensorDescDim(call.output_descs[i], d) == 0;
    if (!empty) return false;
  }
  return true;
}

template <class Buffer>
Status Execute(const Call& call, Buffer const* inputs, Buffer const* outputs) {
  if (call.op_type == nullptr) return Error(Code::kInvalidParam, "{}: opType is null.", call.function);
  if (call.inputs < 0 || call.outputs < 0) {
    return Error(Code::kInvalidParam, "{}: {} has {} inputs and {} outputs.", call.function, call.op_type, call.inputs,
                 call.outputs);
  }
  NPU_TRY(NoneNull(call, "inputDesc", call.inputs, call.input_descs));
  NPU_TRY(NoneNull(call, "inputs", call.inputs, inputs));
  NPU_TRY(NoneNull(call, "outputDesc", call.outputs, call.output_descs));
  NPU_TRY(NoneNull(call, "outputs", call.outputs, outputs));
  if (call.compile_type != ACL_COMPILE_SYS && call.compile_type != ACL_COMPILE_UNREGISTERED) {
    return Error(Code::kNotSupported, "{}: there is no compile type {}.", call.function,
                 static_cast<int>(call.compile_type));
  }
  if (AllEmpty(call)) return {};
  const ops::named::Runner run = FindRunner();
  if (run == nullptr)
    return NotYet(fmt::format("Operator {} ({})", call.op_type, call.function), "libopapi.so could not be loaded.");
  ops::named::Request request;
  request.type = call.op_type;
  for (int i = 0; i < call.inputs; ++i) request.in.push_back(OperandOf(call.input_descs[i], inputs[i]));
  for (int i = 0; i < call.outputs; ++i) request.out.push_back(OperandOf(call.output_descs[i], outputs[i]));
  Ref<ops::named::Attributes> attributes;
  if (call.attributes != nullptr) {
    NPU_ASSIGN(attributes, ops::named::AttributeSets().Get(call.attributes, call.function, "attr"));
    request.attributes = &*attributes;
  }
  request.stream = call.stream;
  return run(request);
}

}  // namespace

Status aclopCompileAndExecute(const char* opType, int numInputs, const aclTensorDesc* const inputDesc[],
                              const aclDataBuffer* const inputs[], int numOutputs,
                              const aclTensorDesc* const outputDesc[], aclDataBuffer* const outputs[],
                              const aclopAttr* attr, aclopEngineType, aclopCompileType compileFlag, const char*,
                              aclrtStream stream) {
  return Execute<const aclDataBuffer*>(
      {"aclopCompileAndExecute", opType, numInputs, inputDesc, numOutputs, outputDesc, compileFlag, attr, stream},
      inputs, outputs);
}

Status aclopCompileAndExecuteV2(const char* opType, int numInputs, aclTensorDesc* inputDesc[], aclDataBuffer* inputs[],
                                int numOutputs, aclTensorDesc* outputDesc[], aclDataBuffer* outputs[], aclopAttr* attr,
                                aclopEngineType, aclopCompileType compileFlag, const char*, aclrtStream stream) {
  return Execute<aclDataBuffer*>(
      {"aclopCompileAndExecuteV2", opType, numInputs, inputDesc, numOutputs, outputDesc, compileFlag, attr, stream},
      inputs, outputs);
}

}  // namespace npu::calls
