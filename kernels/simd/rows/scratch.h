// Memory for the intermediate values of one kernel call. A thread keeps what it used last, so that the pages of a large
// buffer are not faulted in anew by every call (first touch runs at about 1 GB/s).
//
//   Scratch<float> row(n);          // uninitialised, 64-byte aligned
//   row.data()[i] = …
#pragma once

#include <cstddef>
#include <cstdint>

namespace npu::simd {

void* TakeScratch(size_t bytes, size_t* capacity);
void ReturnScratch(void* p, size_t capacity);

template <class T>
class Scratch {
 public:
  explicit Scratch(int64_t n) : p_(TakeScratch(static_cast<size_t>(n > 0 ? n : 1) * sizeof(T), &capacity_)) {}
  ~Scratch() { ReturnScratch(p_, capacity_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  T* data() { return static_cast<T*>(p_); }
  T& operator[](int64_t i) { return data()[i]; }

 private:
  size_t capacity_ = 0;
  void* p_;
};

}  // namespace npu::simd
