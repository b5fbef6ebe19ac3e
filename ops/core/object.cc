#include "ops/core/object.h"

#include <algorithm>

namespace npu::ops {

int64_t* TensorObject::Grow(int which, size_t rank) {
  if (rank > kMaxRank && !long_) {
    auto grown = std::make_unique<int64_t[]>(3 * kDims);
    for (int w = 0; w < 3; ++w)
      std::copy_n(short_[static_cast<size_t>(w)].data(), w == 2 ? storage_rank_ : rank_, grown.get() + w * kDims);
    long_ = std::move(grown);
  }
  return long_ ? long_.get() + which * kDims : short_[static_cast<size_t>(which)].data();
}

void TensorObject::SetView(std::span<const int64_t> shape, const int64_t* strides) {
  const size_t rank = std::min<size_t>(shape.size(), kDims);
  int64_t* dims = Grow(0, rank);
  int64_t* steps = Grow(1, rank);
  rank_ = static_cast<uint32_t>(rank);
  std::copy_n(shape.data(), rank, dims);
  int64_t step = 1;
  for (size_t d = rank; d-- > 0;) {
    steps[d] = strides != nullptr ? strides[d] : step;
    step *= std::max<int64_t>(shape[d], 1);
  }
}

void TensorObject::SetStorage(std::span<const int64_t> shape) {
  const size_t rank = std::min<size_t>(shape.size(), kDims);
  int64_t* dims = Grow(2, rank);
  storage_rank_ = static_cast<uint32_t>(rank);
  std::copy_n(shape.data(), rank, dims);
}

const TensorObject* FindTensor(const void* p) { return Pool<TensorObject>::Find(p); }

void DestroyTensor(const void* p) {
  if (TensorObject* t = Pool<TensorObject>::Find(p)) t->Release();
}

void DestroyScalar(const void* p) {
  if (ScalarObject* s = Pool<ScalarObject>::Find(p)) Pool<ScalarObject>::Delete(s);
}

}  // namespace npu::ops
