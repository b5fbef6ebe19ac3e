// aclTensorDesc: type, shape, format and what else the single-operator interface says about a tensor. On the host only.
#include <limits>
#include <string>
#include <vector>

#include "base/handle/table.h"
#include "gen/calls/acl.h"
#include "shim/acl/kinds.h"

namespace npu {
namespace {

constexpr int64_t kUnknownRank = -2;

struct TensorDesc final : Counted {
  aclDataType dtype = ACL_DT_UNDEFINED;
  aclFormat format = ACL_FORMAT_UNDEFINED, storage_format = ACL_FORMAT_UNDEFINED, origin_format = ACL_FORMAT_UNDEFINED;
  std::vector<int64_t> dims, storage_dims, origin_dims;
  std::vector<int64_t> dim_ranges, value_ranges;  // pairs of least and greatest
  std::string name, dynamic_input;
  std::vector<std::byte> constant;
  aclMemType placement = ACL_MEMTYPE_DEVICE;
};

HandleTable<TensorDesc>& Descs() {
  static auto* table = new HandleTable<TensorDesc>(kTensorDescKind, "tensor description");
  return *table;
}

Ref<TensorDesc> Find(const aclTensorDesc* raw, const char* function) {
  Result<Ref<TensorDesc>> found = Descs().Get(raw, function, "desc");
  return found.ok() ? found.take() : Ref<TensorDesc>();
}

Result<Ref<TensorDesc>> Get(const aclTensorDesc* raw, const char* function) {
  if (raw == nullptr) return Error(Code::kInvalidParam, "{}: desc is null.", function);
  return Descs().Get(raw, function, "desc");
}

// Product of the dims; 0 when one is unknown or the product overflows.
size_t Elements(const TensorDesc& desc) {
  uint64_t n = 1;
  for (const int64_t d : desc.dims) {
    if (d < 0) return 0;
    if (d != 0 && n > std::numeric_limits<uint64_t>::max() / static_cast<uint64_t>(d)) return 0;
    n *= static_cast<uint64_t>(d);
  }
  return n;
}

Status SetDims(std::vector<int64_t>* to, int count, const int64_t* dims, const char* function) {
  if (dims == nullptr) return Error(Code::kInvalidParam, "{}: dims is null.", function);
  if (count <= 0) {
    to->clear();
  } else {
    to->assign(dims, dims + count);
  }
  return {};
}

Status SetRanges(std::vector<int64_t>* to, size_t count, int64_t ranges[][2], const char* function) {
  if (ranges == nullptr && count > 0) return Error(Code::kInvalidParam, "{}: the ranges are null.", function);
  to->clear();
  for (size_t i = 0; i < count; ++i) to->insert(to->end(), {ranges[i][0], ranges[i][1]});
  return {};
}

}  // namespace

namespace calls {

size_t aclDataTypeSize(aclDataType dataType) {
  switch (dataType) {
    case ACL_DT_UNDEFINED:
    case ACL_STRING:
      return 0;
    case ACL_INT8:
    case ACL_UINT8:
    case ACL_BOOL:
    case ACL_INT4:
    case ACL_UINT1:
    case ACL_HIFLOAT8:
    case ACL_FLOAT8_E5M2:
    case ACL_FLOAT8_E4M3FN:
    case ACL_FLOAT8_E8M0:
    case ACL_FLOAT6_E3M2:
    case ACL_FLOAT6_E2M3:
    case ACL_FLOAT4_E2M1:
    case ACL_FLOAT4_E1M2:
      return 1;
    case ACL_FLOAT16:
    case ACL_BF16:
    case ACL_INT16:
    case ACL_UINT16:
      return 2;
    case ACL_FLOAT:
    case ACL_INT32:
    case ACL_UINT32:
    case ACL_COMPLEX32:
      return 4;
    case ACL_DOUBLE:
    case ACL_INT64:
    case ACL_UINT64:
    case ACL_COMPLEX64:
      return 8;
    case ACL_COMPLEX128:
      return 16;
  }
  return 8;
}

aclTensorDesc* aclCreateTensorDesc(aclDataType dataType, int numDims, const int64_t* dims, aclFormat format) {
  if (numDims < 0 || (numDims > 0 && dims == nullptr)) return nullptr;
  auto* desc = new TensorDesc;
  desc->dtype = dataType;
  desc->format = desc->storage_format = format;
  desc->dims.assign(dims, dims + numDims);
  desc->storage_dims = desc->dims;
  return static_cast<aclTensorDesc*>(Descs().Add(Ref<TensorDesc>::Adopt(desc)));
}

void aclDestroyTensorDesc(const aclTensorDesc* desc) {
  if (desc != nullptr) (void)Descs().Remove(desc, "aclDestroyTensorDesc", "desc");
}

aclDataType aclGetTensorDescType(const aclTensorDesc* desc) {
  const Ref<TensorDesc> found = Find(desc, "aclGetTensorDescType");
  return found ? found->dtype : ACL_DT_UNDEFINED;
}

aclFormat aclGetTensorDescFormat(const aclTensorDesc* desc) {
  const Ref<TensorDesc> found = Find(desc, "aclGetTensorDescFormat");
  return found ? found->format : ACL_FORMAT_UNDEFINED;
}

size_t aclGetTensorDescElementCount(const aclTensorDesc* desc) {
  const Ref<TensorDesc> found = Find(desc, "aclGetTensorDescElementCount");
  return found ? Elements(*found) : 0;
}

size_t aclGetTensorDescSize(const aclTensorDesc* desc) {
  const Ref<TensorDesc> found = Find(desc, "aclGetTensorDescSize");
  if (!found) return 0;
  const size_t item = calls::aclDataTypeSize(found->dtype), count = Elements(*found);
  return item != 0 && count > std::numeric_limits<size_t>::max() / item ? 0 : count * item;
}

size_t aclGetTensorDescNumDims(const aclTensorDesc* desc) {
  const Ref<TensorDesc> found = Find(desc, "aclGetTensorDescNumDims");
  if (!found) return 0;
  if (!found->dims.empty() && found->dims[0] == kUnknownRank) return ACL_UNKNOWN_RANK;
  return found->dims.size();
}

int64_t aclGetTensorDescDim(const aclTensorDesc* desc, size_t index) {
  const Ref<TensorDesc> found = Find(desc, "aclGetTensorDescDim");
  return found && index < found->dims.size() ? found->dims[index] : -1;
}

Status aclGetTensorDescDimV2(const aclTensorDesc* desc, size_t index, int64_t* dimSize) {
  if (dimSize == nullptr) return Error(Code::kInvalidParam, "aclGetTensorDescDimV2: dimSize is null.");
  NPU_ASSIGN(const Ref<TensorDesc> found, Get(desc, "aclGetTensorDescDimV2"));
  if (index >= found->dims.size()) {
    return Error(Code::kInvalidParam, "aclGetTensorDescDimV2: index is {}, but the rank is {}.", index,
                 found->dims.size());
  }
  *dimSize = found->dims[index];
  return {};
}

Status aclGetTensorDescDimRange(const aclTensorDesc* desc, size_t index, size_t dimRangeNum, int64_t* dimRange) {
  if (dimRange == nullptr) return Error(Code::kInvalidParam, "aclGetTensorDescDimRange: dimRange is null.");
  NPU_ASSIGN(const Ref<TensorDesc> found, Get(desc, "aclGetTensorDescDimRange"));
  if (2 * index + 1 >= found->dim_ranges.size()) {
    return Error(Code::kInvalidParam, "aclGetTensorDescDimRange: index is {}, but {} ranges were set.", index,
                 found->dim_ranges.size() / 2);
  }
  for (size_t i = 0; i < 2 && i < dimRangeNum; ++i) dimRange[i] = found->dim_ranges[2 * index + i];
  return {};
}

void aclSetTensorDescName(aclTensorDesc* desc, const char* name) {
  const Ref<TensorDesc> found = Find(desc, "aclSetTensorDescName");
  if (found) found->name = name != nullptr ? name : "";
}

const char* aclGetTensorDescName(aclTensorDesc* desc) {
  const Ref<TensorDesc> found = Find(desc, "aclGetTensorDescName");
  return found ? found->name.c_str() : "";
}

Status aclSetTensorShapeRange(aclTensorDesc* desc, size_t dimsCount, int64_t dimsRange[][2]) {
  NPU_ASSIGN(const Ref<TensorDesc> found, Get(desc, "aclSetTensorShapeRange"));
  return SetRanges(&found->dim_ranges, dimsCount, dimsRange, "aclSetTensorShapeRange");
}

Status aclSetTensorValueRange(aclTensorDesc* desc, size_t valueCount, int64_t valueRange[][2]) {
  NPU_ASSIGN(const Ref<TensorDesc> found, Get(desc, "aclSetTensorValueRange"));
  return SetRanges(&found->value_ranges, valueCount, valueRange, "aclSetTensorValueRange");
}

// Success whatever the description is, also null, as in CANN.
Status aclSetTensorFormat(aclTensorDesc* desc, aclFormat format) {
  const Ref<TensorDesc> found = Find(desc, "aclSetTensorFormat");
  if (found) found->storage_format = format;
  return {};
}
Status aclSetTensorStorageFormat(aclTensorDesc* desc, aclFormat format) {
  return calls::aclSetTensorFormat(desc, format);
}

Status aclSetTensorShape(aclTensorDesc* desc, int numDims, const int64_t* dims) {
  NPU_ASSIGN(const Ref<TensorDesc> found, Get(desc, "aclSetTensorShape"));
  return SetDims(&found->storage_dims, numDims, dims, "aclSetTensorShape");
}
Status aclSetTensorStorageShape(aclTensorDesc* desc, int numDims, const int64_t* dims) {
  return calls::aclSetTensorShape(desc, numDims, dims);
}

Status aclSetTensorOriginFormat(aclTensorDesc* desc, aclFormat format) {
  NPU_ASSIGN(const Ref<TensorDesc> found, Get(desc, "aclSetTensorOriginFormat"));
  found->origin_format = format;
  return {};
}

Status aclSetTensorOriginShape(aclTensorDesc* desc, int numDims, const int64_t* dims) {
  NPU_ASSIGN(const Ref<TensorDesc> found, Get(desc, "aclSetTensorOriginShape"));
  return SetDims(&found->origin_dims, numDims, dims, "aclSetTensorOriginShape");
}

Status aclSetTensorDynamicInput(aclTensorDesc* desc, const char* dynamicInputName) {
  NPU_ASSIGN(const Ref<TensorDesc> found, Get(desc, "aclSetTensorDynamicInput"));
  if (dynamicInputName == nullptr) return Error(Code::kInvalidParam, "aclSetTensorDynamicInput: the name is null.");
  found->dynamic_input = dynamicInputName;
  return {};
}

Status aclSetTensorConst(aclTensorDesc* desc, void* dataBuffer, size_t length) {
  NPU_ASSIGN(const Ref<TensorDesc> found, Get(desc, "aclSetTensorConst"));
  if (dataBuffer == nullptr || length == 0) {
    return Error(Code::kInvalidParam, "aclSetTensorConst: dataBuffer is {} and length is {}.", dataBuffer, length);
  }
  const auto* bytes = static_cast<const std::byte*>(dataBuffer);
  found->constant.assign(bytes, bytes + length);
  return {};
}

Status aclSetTensorPlaceMent(aclTensorDesc* desc, aclMemType memType) {
  NPU_ASSIGN(const Ref<TensorDesc> found, Get(desc, "aclSetTensorPlaceMent"));
  found->placement = memType;
  return {};
}

}  // namespace calls
}  // namespace npu
