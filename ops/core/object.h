// What stands behind aclTensor, aclScalar, aclIntArray and the other objects that clients create for a call.
//
// They hold what the client said, unchecked; phase one copies from them what it needs (ops/core/plan.cc).
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "ops/core/pool.h"
#include "ops/core/token.h"
#include "tensor/scalar.h"
#include "tensor/tensor.h"

namespace npu::ops {

class TensorObject {
 public:
  static constexpr ObjectKind kKind = ObjectKind::kTensor;
  static constexpr int kDims = 25;  // what the real object holds; operators accept kMaxRank

  Header header;
  DType dtype = DType::none;
  int32_t format = 2;
  void* data = nullptr;   // of the storage, as the client knows it
  int64_t offset = 0;     // elements

  void SetView(std::span<const int64_t> shape, const int64_t* strides);  // null strides: row-major
  void SetStorage(std::span<const int64_t> shape);
  // Short shapes lie in the object, long ones on the heap.
  std::span<const int64_t> Shape() const { return {Dims(0), rank_}; }
  std::span<const int64_t> Strides() const { return {Dims(1), rank_}; }
  std::span<const int64_t> Storage() const { return {Dims(2), storage_rank_}; }

  // Operators with data-dependent shapes keep their output beyond the client's destroy. SetTrueShape comes before the
  // stream is idle, the client reads after synchronising.
  void AddRef() { refs_.fetch_add(1, std::memory_order_relaxed); }
  void Release() {
    if (refs_.fetch_sub(1, std::memory_order_acq_rel) == 1) Pool<TensorObject>::Delete(this);
  }
  void SetTrueShape(std::span<const int64_t> shape) { SetView(shape, nullptr); }

 private:
  const int64_t* Dims(int which) const {
    return long_ ? long_.get() + which * kDims : short_[static_cast<size_t>(which)].data();
  }
  int64_t* Grow(int which, size_t rank);
  std::atomic<uint32_t> refs_{1};
  uint32_t rank_ = 0, storage_rank_ = 0;
  std::array<std::array<int64_t, kMaxRank>, 3> short_;
  std::unique_ptr<int64_t[]> long_;
};

struct ScalarObject {
  static constexpr ObjectKind kKind = ObjectKind::kScalar;
  Header header;
  Scalar value;
};

// aclIntArray, aclFloatArray, aclBoolArray.
struct ArrayObject {
  static constexpr ObjectKind kKind = ObjectKind::kArray;
  Header header;
  Kind element = Kind::ints;
  uint64_t size = 0;
  std::array<int64_t, 6> near;          // short arrays
  std::unique_ptr<int64_t[]> far;
  void* Data() { return far ? static_cast<void*>(far.get()) : near.data(); }
};

// aclTensorList, aclScalarList: owns its elements.
struct ListObject {
  static constexpr ObjectKind kKind = ObjectKind::kList;
  Header header;
  Kind element = Kind::tensor_list;
  std::vector<void*> items;             // pool objects, may be null
};

// The client's pointer as an object, or null when it is none of ours.
const TensorObject* FindTensor(const void* p);
void DestroyTensor(const void* p);
void DestroyScalar(const void* p);

}  // namespace npu::ops
