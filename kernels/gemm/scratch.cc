#include "kernels/gemm/scratch.h"

#include <sys/mman.h>

#include <array>
#include <utility>

namespace npu::gemm {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kKeptBytes = size_t{64} << 20;  // larger blocks go back to the host at once

struct Block {
  void* data = nullptr;
  size_t bytes = 0;
};

// A few idle blocks a thread; the pool unmaps them when the thread ends.
class Pool {
 public:
  ~Pool() {
    for (Block& b : idle_) Unmap(b);
  }
  Block Take(size_t bytes) {
    Block* best = nullptr;
    for (Block& b : idle_) {
      if (b.bytes >= bytes && (best == nullptr || b.bytes < best->bytes)) best = &b;
    }
    if (best == nullptr) return Map(bytes);
    const Block taken = *best;
    *best = {};
    return taken;
  }
  void Give(Block block) {
    if (block.bytes > kKeptBytes) return Unmap(block);
    Block* worst = &idle_[0];
    for (Block& b : idle_) {
      if (b.bytes < worst->bytes) worst = &b;
    }
    if (block.bytes > worst->bytes) std::swap(block, *worst);
    Unmap(block);
  }

 private:
  static Block Map(size_t bytes) {
    bytes = (bytes + kHugePage - 1) / kHugePage * kHugePage;
    void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) return {};
    madvise(p, bytes, MADV_HUGEPAGE);
    return {p, bytes};
  }
  static void Unmap(Block& b) {
    if (b.data != nullptr) munmap(b.data, b.bytes);
    b = {};
  }
  std::array<Block, 4> idle_{};
};

thread_local Pool pool;

}  // namespace

Scratch::Scratch(size_t bytes) {
  const Block b = pool.Take(bytes == 0 ? 1 : bytes);
  data_ = b.data;
  bytes_ = data_ != nullptr ? b.bytes : bytes;
}

Scratch::~Scratch() {
  if (data_ != nullptr) pool.Give({data_, bytes_});
}

Status NoScratch() {
  return Error(Code::kOutOfHostMemory, "The host has no memory left for packing the operands of a matrix product.")
      .Remedy("Free host memory or raise the memory limit of the process.");
}

}  // namespace npu::gemm
