// Memory of the client that copies and fills touch: it may have gone, or never have been there. Each use is preceded by
// a look (base/os/reach), so that a bad address is an error of the call and not the end of the process. Memory of cards
// and pinned blocks are ours and need none.
//
//   ClientMemory client(plan);
//   if (client.Reaches(dst, src, bytes)) std::memcpy(dst, src, bytes);
//   return client.Told(Code::kOutOfRange);
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/status/status.h"
#include "runtime/memory/copy.h"

namespace npu::rt {

class ClientMemory {
 public:
  explicit ClientMemory(const CopyPlan& plan)
      : plan_(plan), looks_at_dst_(Clients(plan.dst)), looks_at_src_(Clients(plan.src)) {}

  bool looks() const { return looks_at_dst_ || looks_at_src_; }
  // Whether both places may be touched; a place that may not is kept for Told, and everything is refused from then on.
  // From any thread.
  bool Reaches(const char* dst, const char* src, size_t bytes) {
    if (bad_src_.load(std::memory_order_relaxed) != 0 || bad_dst_.load(std::memory_order_relaxed) != 0) return false;
    return (!looks_at_src_ || ReachesSource(src, bytes)) && (!looks_at_dst_ || ReachesDestination(dst, bytes));
  }
  // The same for the last byte: a size that no memory has is found before anything is copied.
  bool ReachesEnd();
  // The same for all rows at once, where few bytes lie between them. False says nothing yet.
  bool ReachesAllRows() const;
  // What was beyond reach, as a failure with `code`.
  Status Told(Code code, const char* dst_name = "dst") const;

 private:
  static bool Clients(const Side& side) { return side.place == Place::kPageable || side.place == Place::kRegistered; }
  bool ReachesSource(const char* src, size_t bytes);
  bool ReachesDestination(const char* dst, size_t bytes);

  const CopyPlan& plan_;
  const bool looks_at_dst_, looks_at_src_;
  std::atomic<uintptr_t> bad_dst_{0}, bad_src_{0};  // the lowest
};

}  // namespace npu::rt
