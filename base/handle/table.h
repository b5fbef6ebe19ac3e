// HandleTable<T>: what a client holds instead of a pointer.
//
//   static HandleTable<Event> events(2, "event");
//   void* raw = events.Add(Ref<Event>::Adopt(new Event));
//   NPU_ASSIGN(Ref<Event> event, events.Get(raw, "aclrtRecordEvent", "event"));
//   NPU_TRY(events.Remove(raw, "aclrtDestroyEvent", "event").status());
//
// A handle is kind (6 bits) | generation (17) | index (24): never an address, positive as int64, below 2^47. Null,
// foreign, stale and handles of another kind are four different sentences. A Ref keeps the object alive, so destroying
// during use is safe. Any thread may call anything; Get and Add on a warm table take no lock. T has AddRef() and
// Release(). Kinds are chosen by the caller, 1 to 63, one table a kind in a process. Tables live for ever (make them
// static or leak them).
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string_view>
#include <vector>

#include "base/handle/ref.h"
#include "base/status/status.h"

namespace npu {

class HandleTableBase {
 public:
  static constexpr int kIndexBits = 24, kGenerationBits = 17, kKindBits = 6;

  HandleTableBase(uint8_t kind, const char* noun);
  HandleTableBase(const HandleTableBase&) = delete;
  HandleTableBase& operator=(const HandleTableBase&) = delete;

  size_t size() const { return live_.load(std::memory_order_relaxed); }

 protected:
  using AddRefFn = void (*)(void*);
  ~HandleTableBase() = default;

  // Null when all indices are taken.
  void* AddObject(void* object);
  // The object with one more count, or why not.
  Result<void*> GetObject(const void* raw, AddRefFn add_ref, std::string_view function, std::string_view param) const;
  // Takes the table's count back.
  Result<void*> RemoveObject(const void* raw, std::string_view function, std::string_view param);
  void Visit(const std::function<void(void* raw, void* object)>& visit, AddRefFn add_ref) const;

 private:
  struct Slot {
    // generation << 32 | alive << 31 | readers. Readers hold it while they raise the object's count; Remove waits for
    // them.
    std::atomic<uint64_t> state{0};
    std::atomic<void*> object{nullptr};
  };
  static constexpr uint32_t kSlotsPerBlock = 4096, kBlocks = (1u << kIndexBits) / kSlotsPerBlock;

  Slot* At(uint32_t index) const;
  bool Names(uint64_t handle) const;  // a handle of this table, alive or stale
  Status Explain(const void* raw, std::string_view function, std::string_view param) const;

  const uint8_t kind_;
  const char* const noun_;
  std::atomic<size_t> live_{0};
  std::atomic<uint32_t> used_{0};  // indices below were given out at least once
  mutable std::atomic<Slot*> blocks_[kBlocks] = {};
  std::mutex mutex_;  // guards free_ and the making of blocks
  std::vector<uint32_t> free_;
};

template <class T>
class HandleTable : public HandleTableBase {
 public:
  using HandleTableBase::HandleTableBase;

  void* Add(Ref<T> object) {
    void* raw = AddObject(object.get());
    if (raw != nullptr) object.Leak();
    return raw;
  }
  Result<Ref<T>> Get(const void* raw, std::string_view function, std::string_view param) const {
    NPU_ASSIGN(void* object, GetObject(raw, &AddRefOf, function, param));
    return Ref<T>::Adopt(static_cast<T*>(object));
  }
  // The handle is stale from here on; the object lives until the last Ref goes.
  Result<Ref<T>> Remove(const void* raw, std::string_view function, std::string_view param) {
    NPU_ASSIGN(void* object, RemoveObject(raw, function, param));
    return Ref<T>::Adopt(static_cast<T*>(object));
  }
  // Every object that is alive at some moment of the call.
  template <class F>
  void ForEach(F&& f) const {
    Visit([&](void* raw, void* object) { f(raw, Ref<T>::Adopt(static_cast<T*>(object))); }, &AddRefOf);
  }

 private:
  static void AddRefOf(void* object) { static_cast<T*>(object)->AddRef(); }
};

}  // namespace npu
