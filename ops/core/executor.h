// A finished plan: all that phase two and the task need, with nothing of the client's but device memory.
//
// Made by Plan, run by a task on any thread. It is freed by phase two unless the client made it repeatable; then each run
// uses a copy, so that addresses may be changed between runs.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/handle/ref.h"
#include "base/task/parallel.h"
#include "ops/core/object.h"
#include "ops/core/op_def.h"
#include "ops/core/pool.h"

namespace npu::ops {

// Bytes that grow: inside the executor at first, on the heap when a call is large. Offsets, never pointers, point into it.
template <size_t kNear>
class Block {
 public:
  std::byte* data() { return far_ ? far_.get() : near_; }
  size_t size() const { return size_; }
  // Room for `bytes` more, aligned to 16; returns its offset. Earlier pointers into the block become invalid.
  uint32_t Add(size_t bytes) {
    const size_t at = size_, end = at + (bytes + 15) / 16 * 16;
    if (end > (far_ ? capacity_ : kNear)) Grow(end);
    size_ = end;
    return static_cast<uint32_t>(at);
  }
  void CopyFrom(Block& o) {
    size_ = 0;
    Add(o.size_);
    __builtin_memcpy(data(), o.data(), o.size_);
    size_ = o.size_;
  }

 private:
  void Grow(size_t end) {
    const size_t capacity = end * 2;
    auto grown = std::make_unique<std::byte[]>(capacity);
    __builtin_memcpy(grown.get(), data(), size_);
    far_ = std::move(grown);
    capacity_ = capacity;
  }
  alignas(16) std::byte near_[kNear];
  std::unique_ptr<std::byte[]> far_;
  size_t size_ = 0, capacity_ = 0;
};

class Executor {
 public:
  static constexpr ObjectKind kKind = ObjectKind::kExecutor;

  Header header;
  const OpDef* op = nullptr;
  uint64_t scratch_bytes = 0;
  bool repeatable = false;
  bool nothing_to_do = false;        // every output is empty
  double cost_ns = 0;
  uint64_t bytes = 0;                // of all tensors: what the kernel reads and writes
  Block<1472> arguments;             // slots, then what they point to
  Block<256> state;                  // of Prepares()
  std::array<Ref<TensorObject>, 4> live;

  // `scratch` is a kernel address.
  Status Run(std::byte* scratch, Parallel& parallel);
  Executor* Copy();
};

// A null pointer, a destroyed executor and one that belongs to another operator are three different errors.
Result<Executor*> FindExecutor(const OpDef& op, void* executor);
void DestroyExecutor(Executor* executor);

}  // namespace npu::ops
