#include "kernels/simd/rows/scratch.h"

#include <algorithm>
#include <new>

namespace npu::simd {
namespace {

constexpr size_t kKept = 8;                       // buffers a thread keeps
constexpr size_t kKeepBytes = size_t{64} << 20;   // and how large one may be
constexpr auto kAlign = std::align_val_t{64};

struct Shelf {
  struct Slot {
    void* p = nullptr;
    size_t capacity = 0;
  } slots[kKept];
  ~Shelf() {
    for (Slot& s : slots) ::operator delete(s.p, kAlign);
  }
};
thread_local Shelf shelf;

}  // namespace

void* TakeScratch(size_t bytes, size_t* capacity) {
  Shelf::Slot* best = nullptr;
  for (Shelf::Slot& s : shelf.slots) {
    if (s.capacity >= bytes && (best == nullptr || s.capacity < best->capacity)) best = &s;
  }
  // A much larger buffer stays for those who need it.
  if (best != nullptr && best->capacity / 16 <= std::max<size_t>(bytes, 65536)) {
    void* p = best->p;
    *capacity = best->capacity;
    *best = {};
    return p;
  }
  *capacity = (bytes + 4095) / 4096 * 4096;
  return ::operator new(*capacity, kAlign);
}

void ReturnScratch(void* p, size_t capacity) {
  if (capacity <= kKeepBytes) {
    // Takes an empty slot, or the place of the smallest one.
    Shelf::Slot* least = &shelf.slots[0];
    for (Shelf::Slot& s : shelf.slots) {
      if (s.capacity < least->capacity) least = &s;
    }
    if (least->capacity < capacity) {
      std::swap(p, least->p);
      std::swap(capacity, least->capacity);
    }
  }
  ::operator delete(p, kAlign);
}

}  // namespace npu::simd
