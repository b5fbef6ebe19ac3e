#include "ops/core/pool.h"

#include <sys/mman.h>

#include <mutex>
#include <vector>

#include "ops/core/executor.h"
#include "ops/core/object.h"

namespace npu::ops {
namespace {
constexpr size_t kReserveBytes = size_t{4} << 30;  // addresses only; pages come with use
constexpr int kKinds = 6;
}  // namespace

struct PoolBase::Shared {
  std::mutex mutex;
  std::vector<void*> free;
  size_t next = 0;  // bytes of the range handed out so far
};

// A thread's shelves; cells go back to the pools when the thread ends.
struct Shelves {
  PoolBase::Shelf shelf[kKinds];
  bool dead = false;
  ~Shelves() {
    dead = true;
    for (int k = 1; k < kKinds; ++k) PoolOf(static_cast<ObjectKind>(k)).Spill(shelf[k], 0);
  }
};
namespace {
thread_local Shelves t_shelves;
}

PoolBase::PoolBase(ObjectKind kind, size_t cell_bytes)
    : kind_(kind), cell_bytes_((cell_bytes + 63) / 64 * 64), shared_(new Shared) {
  for (size_t want = kReserveBytes; want >= (size_t{1} << 26); want /= 4) {
    void* p = mmap(nullptr, want, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p != MAP_FAILED) {
      base_ = static_cast<char*>(p);
      reserved_ = want;
      return;
    }
  }
}

bool PoolBase::Contains(const void* p) const {
  const auto offset = static_cast<size_t>(static_cast<const char*>(p) - base_);
  return offset < reserved_ && offset % cell_bytes_ == 0;
}

PoolBase::Shelf* PoolBase::MyShelf() { return t_shelves.dead ? nullptr : &t_shelves.shelf[static_cast<int>(kind_)]; }

bool PoolBase::Refill(Shelf& shelf) {
  const std::lock_guard lock(shared_->mutex);
  while (shelf.count < Shelf::kBatch && !shared_->free.empty()) {
    shelf.cells[shelf.count++] = shared_->free.back();
    shared_->free.pop_back();
  }
  while (shelf.count < Shelf::kBatch && shared_->next + cell_bytes_ <= reserved_) {
    shelf.cells[shelf.count++] = base_ + shared_->next;
    shared_->next += cell_bytes_;
  }
  return shelf.count > 0;
}

void PoolBase::Spill(Shelf& shelf, int keep) {
  const std::lock_guard lock(shared_->mutex);
  while (shelf.count > keep) shared_->free.push_back(shelf.cells[--shelf.count]);
}

void* PoolBase::Take() {
  Shelf lone;  // for calls from a thread that is ending
  Shelf* mine = MyShelf();
  Shelf& shelf = mine != nullptr ? *mine : lone;
  if (shelf.count == 0 && !Refill(shelf)) return nullptr;
  void* cell = shelf.cells[--shelf.count];
  if (mine == nullptr) Spill(shelf, 0);
  return cell;
}

void PoolBase::Give(void* cell) {
  Shelf lone;
  Shelf* mine = MyShelf();
  Shelf& shelf = mine != nullptr ? *mine : lone;
  if (shelf.count == Shelf::kSize) Spill(shelf, Shelf::kSize - Shelf::kBatch);
  shelf.cells[shelf.count++] = cell;
  if (mine == nullptr) Spill(shelf, 0);
}

PoolBase& PoolOf(ObjectKind kind) {
  // Never destroyed: clients destroy tensors from their own exit handlers.
  static PoolBase* const pools[kKinds] = {
      nullptr,
      new PoolBase(ObjectKind::kTensor, sizeof(TensorObject)),
      new PoolBase(ObjectKind::kScalar, sizeof(ScalarObject)),
      new PoolBase(ObjectKind::kArray, sizeof(ArrayObject)),
      new PoolBase(ObjectKind::kList, sizeof(ListObject)),
      new PoolBase(ObjectKind::kExecutor, sizeof(Executor)),
  };
  return *pools[static_cast<int>(kind)];
}

}  // namespace npu::ops
