// Private memory for packed panels: leased from a pool of the calling thread, aligned to a page, on huge pages where
// the host has them.
//
//   Scratch panel(bytes);
//   if (!panel) return NoScratch();
//
// A lease is exclusive, so a thread that runs another task while it waits inside one gets other memory.
#pragma once

#include <cstddef>
#include <utility>

#include "base/status/status.h"

namespace npu::gemm {

class Scratch {
 public:
  Scratch() = default;
  explicit Scratch(size_t bytes);
  ~Scratch();
  Scratch(Scratch&& other) noexcept : data_(std::exchange(other.data_, nullptr)), bytes_(other.bytes_) {}
  Scratch& operator=(Scratch&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }

  explicit operator bool() const { return data_ != nullptr; }
  template <class T = float>
  T* As() const {
    return static_cast<T*>(data_);
  }

 private:
  void* data_ = nullptr;
  size_t bytes_ = 0;
};

// The error for a lease that came back empty.
Status NoScratch();

}  // namespace npu::gemm
