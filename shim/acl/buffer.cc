// aclDataBuffer: a pointer and a size, never the memory itself.
#include <atomic>

#include "base/handle/table.h"
#include "gen/calls/acl.h"
#include "shim/acl/kinds.h"

namespace npu {
namespace {

struct DataBuffer final : Counted {
  void* data = nullptr;
  size_t size = 0;
};

HandleTable<DataBuffer>& Buffers() {
  static auto* table = new HandleTable<DataBuffer>(kDataBufferKind, "data buffer");
  return *table;
}

Ref<DataBuffer> Find(const aclDataBuffer* raw, const char* function) {
  Result<Ref<DataBuffer>> found = Buffers().Get(raw, function, "dataBuffer");
  return found.ok() ? found.take() : Ref<DataBuffer>();
}

}  // namespace

namespace calls {

aclDataBuffer* aclCreateDataBuffer(void* data, size_t size) {
  auto* buffer = new DataBuffer;
  buffer->data = data;
  buffer->size = size;
  return static_cast<aclDataBuffer*>(Buffers().Add(Ref<DataBuffer>::Adopt(buffer)));
}

Status aclDestroyDataBuffer(const aclDataBuffer* dataBuffer) {
  if (dataBuffer == nullptr) return Error(Code::kInvalidParam, "aclDestroyDataBuffer: dataBuffer is null.");
  return Buffers().Remove(dataBuffer, "aclDestroyDataBuffer", "dataBuffer").status();
}

Status aclUpdateDataBuffer(aclDataBuffer* dataBuffer, void* data, size_t size) {
  if (dataBuffer == nullptr) return Error(Code::kInvalidParam, "aclUpdateDataBuffer: dataBuffer is null.");
  NPU_ASSIGN(const Ref<DataBuffer> buffer, Buffers().Get(dataBuffer, "aclUpdateDataBuffer", "dataBuffer"));
  buffer->data = data;
  buffer->size = size;
  return {};
}

void* aclGetDataBufferAddr(const aclDataBuffer* dataBuffer) {
  const Ref<DataBuffer> buffer = Find(dataBuffer, "aclGetDataBufferAddr");
  return buffer ? buffer->data : nullptr;
}

size_t aclGetDataBufferSizeV2(const aclDataBuffer* dataBuffer) {
  const Ref<DataBuffer> buffer = Find(dataBuffer, "aclGetDataBufferSizeV2");
  return buffer ? buffer->size : 0;
}

uint32_t aclGetDataBufferSize(const aclDataBuffer* dataBuffer) {
  return static_cast<uint32_t>(calls::aclGetDataBufferSizeV2(dataBuffer));
}

}  // namespace calls
}  // namespace npu
