// A file descriptor that closes itself, and the calls that make one. All are close-on-exec.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <utility>

#include "base/status/status.h"

namespace npu::os {

class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& o) noexcept : fd_(std::exchange(o.fd_, -1)) {}
  Fd& operator=(Fd&& o) noexcept {
    if (this != &o) Reset(std::exchange(o.fd_, -1));
    return *this;
  }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  ~Fd() { Reset(); }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  int Release() { return std::exchange(fd_, -1); }
  void Reset(int fd = -1) {
    if (fd_ >= 0) ::close(fd_);
    fd_ = fd;
  }

 private:
  int fd_ = -1;
};

// Anonymous shared memory of `bytes`, all holes; its size can no longer change, so that no holder of a mapping can be
// hit by SIGBUS because another truncated it. `label` shows in /proc/<pid>/maps.
Result<Fd> MakeMemfd(const char* label, uint64_t bytes);

}  // namespace npu::os
