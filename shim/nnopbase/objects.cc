// aclTensor, aclScalar, arrays and lists: what clients create for a call. The objects are ops/core/object.h.
#include <algorithm>
#include <cstring>

#include "gen/calls/nnopbase.h"
#include "ops/core/object.h"

namespace npu::calls {
namespace {

using ops::ArrayObject, ops::Kind, ops::ListObject, ops::Pool, ops::ScalarObject, ops::TensorObject;

Status Null(const char* function, const char* param) {
  return Error(Code::kNullPointer, "{}: {} is null.", function, param).Remedy("Pass the address of a variable or object.");
}

Status NotLive(const char* function, const char* param, const void* p, const char* what) {
  return Error(Code::kInvalidParam, "{}: {} ({}) is not a live {}.", function, param, p, what)
      .Remedy("Pass what aclCreate… returned, before it is destroyed.");
}

template <class T, class Handle>
Status Get(const Handle* handle, const char* function, const char* param, const char* what, T** object) {
  if (handle == nullptr) return Null(function, param);
  *object = Pool<T>::Find(handle);
  return *object == nullptr ? NotLive(function, param, handle, what) : Status();
}

// Destroying null is fine, destroying twice is told.
template <class T, class Handle, class F>
Status Destroy(const Handle* handle, const char* function, const char* what, F&& destroy) {
  if (handle == nullptr) return {};
  T* object = Pool<T>::Find(handle);
  if (object == nullptr) return NotLive(function, "the argument", handle, what);
  destroy(object);
  return {};
}

std::span<const int64_t> Dims(const int64_t* dims, uint64_t count) { return {dims, dims == nullptr ? 0 : count}; }

void Describe(TensorObject& t, const int64_t* view, uint64_t view_count, aclDataType type, const int64_t* stride, int64_t offset,
              aclFormat format, const int64_t* storage, uint64_t storage_count, void* data) {
  t.SetView(Dims(view, view_count), stride);
  t.SetStorage(Dims(storage, storage_count));
  t.dtype = type == static_cast<int8_t>(type) ? static_cast<DType>(type) : DType::none;  // the wire is wider than DType
  t.format = format;
  t.offset = offset;
  t.data = data;
}

template <class Handle, class T>
Handle* NewArray(Kind kind, const T* values, uint64_t size) {
  if (values == nullptr && size > 0) return nullptr;
  ArrayObject* a = Pool<ArrayObject>::New();
  if (a == nullptr) return nullptr;
  a->element = kind;
  a->size = size;
  const size_t bytes = size * sizeof(T);
  if (bytes > sizeof a->near) a->far = std::make_unique<int64_t[]>((bytes + 7) / 8);
  if (bytes > 0) std::memcpy(a->Data(), values, bytes);
  return reinterpret_cast<Handle*>(a);
}

template <class Handle, class Element>
Handle* NewList(Kind kind, const Element* const* values, uint64_t size) {
  ListObject* list = Pool<ListObject>::New();
  if (list == nullptr) return nullptr;
  list->element = kind;
  list->items.reserve(values == nullptr ? 0 : size);
  for (uint64_t i = 0; values != nullptr && i < size; ++i)
    list->items.push_back(const_cast<void*>(static_cast<const void*>(values[i])));
  return reinterpret_cast<Handle*>(list);
}

// new[]: the client deletes it.
Status CopyOut(std::span<const int64_t> from, const char* function, int64_t** to, uint64_t* count) {
  if (to == nullptr || count == nullptr) return Null(function, to == nullptr ? "the result array" : "the result count");
  *to = new int64_t[from.size()];
  std::copy(from.begin(), from.end(), *to);
  *count = from.size();
  return {};
}

template <class Handle>
Status ArraySize(const Handle* array, uint64_t* size, const char* function) {
  ArrayObject* a = nullptr;
  NPU_TRY(Get(array, function, "array", "array", &a));
  if (size == nullptr) return Null(function, "size");
  *size = a->size;
  return {};
}

template <class Handle>
Status ListSize(const Handle* list, uint64_t* size, const char* function) {
  ListObject* l = nullptr;
  NPU_TRY(Get(list, function, "the list", "list", &l));
  if (size == nullptr) return Null(function, "size");
  *size = l->items.size();
  return {};
}

}  // namespace

aclTensor* aclCreateTensor(const int64_t* viewDims, uint64_t viewDimsNum, aclDataType dataType, const int64_t* stride, int64_t offset,
                           aclFormat format, const int64_t* storageDims, uint64_t storageDimsNum, void* tensorData) {
  if ((viewDims == nullptr && viewDimsNum > 0) || (storageDims == nullptr && storageDimsNum > 0)) return nullptr;
  TensorObject* t = Pool<TensorObject>::New();
  if (t == nullptr) return nullptr;
  Describe(*t, viewDims, viewDimsNum, dataType, stride, offset, format, storageDims, storageDimsNum, tensorData);
  return reinterpret_cast<aclTensor*>(t);
}

Status aclInitTensor(aclTensor* tensor, const int64_t* viewDims, uint64_t viewDimsNum, aclDataType dataType, const int64_t* stride,
                     int64_t offset, aclFormat format, const int64_t* storageDims, uint64_t storageDimsNum, void* tensorDataAddr) {
  TensorObject* t = nullptr;
  NPU_TRY(Get(tensor, "aclInitTensor", "tensor", "aclTensor", &t));
  if (viewDims == nullptr && viewDimsNum > 0) return Null("aclInitTensor", "viewDims");
  if (storageDims == nullptr && storageDimsNum > 0) return Null("aclInitTensor", "storageDims");
  Describe(*t, viewDims, viewDimsNum, dataType, stride, offset, format, storageDims, storageDimsNum, tensorDataAddr);
  return {};
}

aclScalar* aclCreateScalar(void* value, aclDataType dataType) {
  Scalar number;
  if (value == nullptr || !Scalar::Read(value, static_cast<DType>(dataType), &number)) return nullptr;
  ScalarObject* s = Pool<ScalarObject>::New();
  if (s == nullptr) return nullptr;
  s->value = number;
  return reinterpret_cast<aclScalar*>(s);
}

aclIntArray* aclCreateIntArray(const int64_t* value, uint64_t size) { return NewArray<aclIntArray>(Kind::ints, value, size); }
aclFloatArray* aclCreateFloatArray(const float* value, uint64_t size) { return NewArray<aclFloatArray>(Kind::floats, value, size); }
aclBoolArray* aclCreateBoolArray(const bool* value, uint64_t size) { return NewArray<aclBoolArray>(Kind::bools, value, size); }
aclTensorList* aclCreateTensorList(const aclTensor* const* value, uint64_t size) {
  return NewList<aclTensorList>(Kind::tensor_list, value, size);
}
aclScalarList* aclCreateScalarList(const aclScalar* const* value, uint64_t size) {
  return NewList<aclScalarList>(Kind::scalar_list, value, size);
}

Status aclDestroyTensor(const aclTensor* tensor) {
  return Destroy<TensorObject>(tensor, "aclDestroyTensor", "aclTensor", [](TensorObject* t) { t->Release(); });
}
Status aclDestroyScalar(const aclScalar* scalar) {
  return Destroy<ScalarObject>(scalar, "aclDestroyScalar", "aclScalar", Pool<ScalarObject>::Delete);
}
Status aclDestroyIntArray(const aclIntArray* array) {
  return Destroy<ArrayObject>(array, "aclDestroyIntArray", "aclIntArray", Pool<ArrayObject>::Delete);
}
Status aclDestroyFloatArray(const aclFloatArray* array) {
  return Destroy<ArrayObject>(array, "aclDestroyFloatArray", "aclFloatArray", Pool<ArrayObject>::Delete);
}
Status aclDestroyBoolArray(const aclBoolArray* array) {
  return Destroy<ArrayObject>(array, "aclDestroyBoolArray", "aclBoolArray", Pool<ArrayObject>::Delete);
}
Status aclDestroyTensorList(const aclTensorList* array) {
  return Destroy<ListObject>(array, "aclDestroyTensorList", "aclTensorList", [](ListObject* list) {
    for (void* item : list->items) ops::DestroyTensor(item);
    Pool<ListObject>::Delete(list);
  });
}
Status aclDestroyScalarList(const aclScalarList* array) {
  return Destroy<ListObject>(array, "aclDestroyScalarList", "aclScalarList", [](ListObject* list) {
    for (void* item : list->items) ops::DestroyScalar(item);
    Pool<ListObject>::Delete(list);
  });
}

Status aclGetViewShape(const aclTensor* tensor, int64_t** viewDims, uint64_t* viewDimsNum) {
  TensorObject* t = nullptr;
  NPU_TRY(Get(tensor, "aclGetViewShape", "tensor", "aclTensor", &t));
  return CopyOut(t->Shape(), "aclGetViewShape", viewDims, viewDimsNum);
}
Status aclGetStorageShape(const aclTensor* tensor, int64_t** storageDims, uint64_t* storageDimsNum) {
  TensorObject* t = nullptr;
  NPU_TRY(Get(tensor, "aclGetStorageShape", "tensor", "aclTensor", &t));
  return CopyOut(t->Storage(), "aclGetStorageShape", storageDims, storageDimsNum);
}
Status aclGetViewStrides(const aclTensor* tensor, int64_t** stridesValue, uint64_t* stridesNum) {
  TensorObject* t = nullptr;
  NPU_TRY(Get(tensor, "aclGetViewStrides", "tensor", "aclTensor", &t));
  return CopyOut(t->Strides(), "aclGetViewStrides", stridesValue, stridesNum);
}
Status aclGetViewOffset(const aclTensor* tensor, int64_t* offset) {
  TensorObject* t = nullptr;
  NPU_TRY(Get(tensor, "aclGetViewOffset", "tensor", "aclTensor", &t));
  if (offset == nullptr) return Null("aclGetViewOffset", "offset");
  *offset = t->offset;
  return {};
}
Status aclGetFormat(const aclTensor* tensor, aclFormat* format) {
  TensorObject* t = nullptr;
  NPU_TRY(Get(tensor, "aclGetFormat", "tensor", "aclTensor", &t));
  if (format == nullptr) return Null("aclGetFormat", "format");
  *format = static_cast<aclFormat>(t->format);
  return {};
}
Status aclGetDataType(const aclTensor* tensor, aclDataType* dataType) {
  TensorObject* t = nullptr;
  NPU_TRY(Get(tensor, "aclGetDataType", "tensor", "aclTensor", &t));
  if (dataType == nullptr) return Null("aclGetDataType", "dataType");
  *dataType = static_cast<aclDataType>(t->dtype);
  return {};
}
Status aclSetRawTensorAddr(aclTensor* tensor, void* addr) {
  TensorObject* t = nullptr;
  NPU_TRY(Get(tensor, "aclSetRawTensorAddr", "tensor", "aclTensor", &t));
  t->data = addr;
  return {};
}
Status aclGetRawTensorAddr(const aclTensor* tensor, void** addr) {
  TensorObject* t = nullptr;
  NPU_TRY(Get(tensor, "aclGetRawTensorAddr", "tensor", "aclTensor", &t));
  if (addr == nullptr) return Null("aclGetRawTensorAddr", "addr");
  *addr = t->data;
  return {};
}

Status aclGetIntArraySize(const aclIntArray* array, uint64_t* size) { return ArraySize(array, size, "aclGetIntArraySize"); }
Status aclGetFloatArraySize(const aclFloatArray* array, uint64_t* size) { return ArraySize(array, size, "aclGetFloatArraySize"); }
Status aclGetBoolArraySize(const aclBoolArray* array, uint64_t* size) { return ArraySize(array, size, "aclGetBoolArraySize"); }
Status aclGetTensorListSize(const aclTensorList* tensorList, uint64_t* size) { return ListSize(tensorList, size, "aclGetTensorListSize"); }
Status aclGetScalarListSize(const aclScalarList* scalarList, uint64_t* size) { return ListSize(scalarList, size, "aclGetScalarListSize"); }

}  // namespace npu::calls
