#include "base/handle/table.h"

#include <thread>

namespace npu {
namespace {

constexpr uint64_t kAlive = uint64_t{1} << 31;
constexpr uint64_t kGenerationMask = (uint64_t{1} << HandleTableBase::kGenerationBits) - 1;

std::atomic<const HandleTableBase*> tables[1 << HandleTableBase::kKindBits] = {};

uint64_t WordOf(const void* raw) { return static_cast<uint64_t>(reinterpret_cast<uintptr_t>(raw)); }
uint32_t IndexOf(uint64_t handle) { return static_cast<uint32_t>(handle & ((1u << HandleTableBase::kIndexBits) - 1)); }
uint64_t GenerationOf(uint64_t handle) { return (handle >> HandleTableBase::kIndexBits) & kGenerationMask; }
uint64_t KindOf(uint64_t handle) { return handle >> (HandleTableBase::kIndexBits + HandleTableBase::kGenerationBits); }

}  // namespace

HandleTableBase::HandleTableBase(uint8_t kind, const char* noun) : kind_(kind), noun_(noun) {
  tables[kind & ((1 << kKindBits) - 1)].store(this, std::memory_order_release);
}

HandleTableBase::Slot* HandleTableBase::At(uint32_t index) const {
  Slot* block = blocks_[index / kSlotsPerBlock].load(std::memory_order_acquire);
  return block == nullptr ? nullptr : &block[index % kSlotsPerBlock];
}

void* HandleTableBase::AddObject(void* object) {
  uint32_t index;
  {
    std::lock_guard lock(mutex_);
    if (!free_.empty()) {
      index = free_.back();
      free_.pop_back();
    } else {
      index = used_.load(std::memory_order_relaxed);
      if (index >= (1u << kIndexBits)) return nullptr;
      auto& block = blocks_[index / kSlotsPerBlock];
      if (block.load(std::memory_order_relaxed) == nullptr)
        block.store(new Slot[kSlotsPerBlock], std::memory_order_release);
      used_.store(index + 1, std::memory_order_release);
    }
  }
  Slot& slot = *At(index);
  // Generation 0 is never given out: a small integer is then no handle. Readers that come late with an old handle may
  // hold a count for a moment, so the state is changed by exchange and not stored.
  uint64_t state = slot.state.load(std::memory_order_relaxed);
  uint64_t generation = ((state >> 32) + 1) & kGenerationMask;
  if (generation == 0) generation = 1;
  slot.object.store(object, std::memory_order_relaxed);
  while (!slot.state.compare_exchange_weak(state, generation << 32 | kAlive | (state & (kAlive - 1)),
                                           std::memory_order_release, std::memory_order_relaxed)) {
  }
  live_.fetch_add(1, std::memory_order_relaxed);
  const uint64_t handle =
      static_cast<uint64_t>(kind_) << (kIndexBits + kGenerationBits) | generation << kIndexBits | index;
  return reinterpret_cast<void*>(static_cast<uintptr_t>(handle));
}

Result<void*> HandleTableBase::GetObject(const void* raw, AddRefFn add_ref, std::string_view function,
                                         std::string_view param) const {
  const uint64_t handle = WordOf(raw);
  if (handle != 0 && KindOf(handle) == kind_) {
    if (Slot* slot = At(IndexOf(handle)); slot != nullptr) {
      // Acquire: pairs with the release in AddObject, so the object is seen whole.
      const uint64_t state = slot->state.fetch_add(1, std::memory_order_acquire);
      void* object = nullptr;
      if ((state & kAlive) != 0 && state >> 32 == GenerationOf(handle)) {
        object = slot->object.load(std::memory_order_relaxed);
        add_ref(object);
      }
      slot->state.fetch_sub(1, std::memory_order_release);
      if (object != nullptr) return object;
    }
  }
  return Explain(raw, function, param);
}

Result<void*> HandleTableBase::RemoveObject(const void* raw, std::string_view function, std::string_view param) {
  const uint64_t handle = WordOf(raw);
  Slot* slot = handle != 0 && KindOf(handle) == kind_ ? At(IndexOf(handle)) : nullptr;
  if (slot == nullptr) return Explain(raw, function, param);
  uint64_t state = slot->state.load(std::memory_order_relaxed);
  do {
    if ((state & kAlive) == 0 || state >> 32 != GenerationOf(handle)) return Explain(raw, function, param);
  } while (
      !slot->state.compare_exchange_weak(state, state & ~kAlive, std::memory_order_acquire, std::memory_order_relaxed));
  // Readers that saw it alive are raising its count right now. Acquire pairs with their release.
  while ((slot->state.load(std::memory_order_acquire) & (kAlive - 1)) != 0) std::this_thread::yield();
  void* object = slot->object.load(std::memory_order_relaxed);
  live_.fetch_sub(1, std::memory_order_relaxed);
  std::lock_guard lock(mutex_);
  free_.push_back(IndexOf(handle));
  return object;
}

void HandleTableBase::Visit(const std::function<void(void*, void*)>& visit, AddRefFn add_ref) const {
  const uint32_t used = used_.load(std::memory_order_acquire);
  for (uint32_t index = 0; index < used; ++index) {
    Slot* slot = At(index);
    const uint64_t state = slot->state.fetch_add(1, std::memory_order_acquire);
    void* object = nullptr;
    if ((state & kAlive) != 0) {
      object = slot->object.load(std::memory_order_relaxed);
      add_ref(object);
    }
    slot->state.fetch_sub(1, std::memory_order_release);
    if (object == nullptr) continue;
    const uint64_t handle =
        static_cast<uint64_t>(kind_) << (kIndexBits + kGenerationBits) | (state >> 32) << kIndexBits | index;
    visit(reinterpret_cast<void*>(static_cast<uintptr_t>(handle)), object);
  }
}

bool HandleTableBase::Names(uint64_t handle) const {
  if (KindOf(handle) != kind_ || GenerationOf(handle) == 0) return false;
  if (IndexOf(handle) >= used_.load(std::memory_order_acquire)) return false;
  return GenerationOf(handle) <= At(IndexOf(handle))->state.load(std::memory_order_relaxed) >> 32;
}

Status HandleTableBase::Explain(const void* raw, std::string_view function, std::string_view param) const {
  const uint64_t handle = WordOf(raw);
  if (handle == 0) {
    return Error(Code::kNullPointer, "{}: {} is null.", function, param).Remedy("Pass a handle of the kind {}.", noun_);
  }
  if (Names(handle)) {
    return Error(Code::kInvalidHandle, "{}: {} ({:#x}) is a {} that was destroyed.", function, param, handle, noun_)
        .Remedy("Use a handle no longer than until it is destroyed.");
  }
  if (KindOf(handle) < 1 << kKindBits) {
    const HandleTableBase* other = tables[KindOf(handle)].load(std::memory_order_acquire);
    if (other != nullptr && other != this && other->Names(handle)) {
      return Error(Code::kInvalidHandle, "{}: {} ({:#x}) is a {} and not a {}.", function, param, handle, other->noun_,
                   noun_)
          .Remedy("Check the order of the arguments.");
    }
  }
  return Error(Code::kInvalidHandle, "{}: {} ({:#x}) is not a handle that this library gave out.", function, param,
               handle)
      .Remedy("Pass a {} made in this process.", noun_);
}

}  // namespace npu
