// Ref<T>: an intrusive pointer for what clients hold handles to. T has AddRef() and Release().
#pragma once

#include <utility>

namespace npu {

template <class T>
class Ref {
 public:
  Ref() = default;
  // Takes over one count that the caller owns.
  static Ref Adopt(T* p) { Ref r; r.p_ = p; return r; }
  static Ref Share(T* p) { if (p) p->AddRef(); return Adopt(p); }
  Ref(const Ref& o) : p_(o.p_) { if (p_) p_->AddRef(); }
  Ref(Ref&& o) noexcept : p_(std::exchange(o.p_, nullptr)) {}
  Ref& operator=(Ref o) noexcept { std::swap(p_, o.p_); return *this; }
  ~Ref() { if (p_) p_->Release(); }

  T* get() const { return p_; }
  T* operator->() const { return p_; }
  T& operator*() const { return *p_; }
  explicit operator bool() const { return p_ != nullptr; }
  // Hands the count to the caller.
  T* Leak() { return std::exchange(p_, nullptr); }

 private:
  T* p_ = nullptr;
};

}  // namespace npu
