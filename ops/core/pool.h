// Where the objects live that clients hold by pointer: tensors, scalars, arrays, lists, executors.
//
//   TensorObject* t = Pool<TensorObject>::New();
//   TensorObject* t = Pool<TensorObject>::Find(pointer_from_client);   // null unless it is a live one
//   Pool<TensorObject>::Delete(t);
//
// A pool is one range of addresses that is never unmapped, cut into cells with a Header in front. So a foreign, destroyed or
// mistyped pointer is told from a good one without trusting it. Each thread keeps a few free cells; cells travel between
// threads in batches, because a client creates on one thread and destroys on another. Any thread may call anything.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>

namespace npu::ops {

enum class ObjectKind : uint8_t { kNone, kTensor, kScalar, kArray, kList, kExecutor };

struct Header {
  std::atomic<uint32_t> live{0};   // magic + kind while alive, 0 after
  std::atomic<uint32_t> generation{0};
};

class PoolBase {
 public:
  PoolBase(ObjectKind kind, size_t cell_bytes);
  void* Take();             // an uninitialised cell; null when memory is exhausted
  void Give(void* cell);
  bool Contains(const void* p) const;  // p is the start of a cell
  static uint32_t Magic(ObjectKind kind) { return 0x4e505500u | static_cast<uint32_t>(kind); }

  // The free cells of one thread; public for its storage only.
  struct Shelf {
    static constexpr int kSize = 64, kBatch = 32;
    void* cells[kSize];
    int count = 0;
  };

 private:
  struct Shared;
  Shelf* MyShelf();
  bool Refill(Shelf& shelf);
  void Spill(Shelf& shelf, int keep);
  friend struct Shelves;

  ObjectKind kind_;
  size_t cell_bytes_;
  char* base_ = nullptr;
  size_t reserved_ = 0;
  Shared* shared_;
};

PoolBase& PoolOf(ObjectKind kind);

// T has `Header header` first and `static constexpr ObjectKind kKind`.
template <class T>
struct Pool {
  static T* New() {
    void* cell = PoolOf(T::kKind).Take();
    if (cell == nullptr) return nullptr;
    const uint32_t generation = static_cast<Header*>(cell)->generation.load(std::memory_order_relaxed);
    T* t = new (cell) T;
    t->header.generation.store(generation + 1, std::memory_order_relaxed);
    t->header.live.store(PoolBase::Magic(T::kKind), std::memory_order_release);
    return t;
  }
  static T* Find(const void* p) {
    if (!PoolOf(T::kKind).Contains(p)) return nullptr;
    T* t = static_cast<T*>(const_cast<void*>(p));
    return t->header.live.load(std::memory_order_acquire) == PoolBase::Magic(T::kKind) ? t : nullptr;
  }
  static void Delete(T* t) {
    const uint32_t generation = t->header.generation.load(std::memory_order_relaxed);
    t->header.live.store(0, std::memory_order_release);
    t->~T();
    Header* header = new (static_cast<void*>(t)) Header;
    header->generation.store(generation, std::memory_order_relaxed);
    PoolOf(T::kKind).Give(t);
  }
};

}  // namespace npu::ops
