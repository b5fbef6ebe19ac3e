#include "runtime/memory/client_memory.h"

#include <algorithm>

#include "base/os/reach.h"

namespace npu::rt {
namespace {

bool Reach(const char* begin, size_t bytes, os::Access access, std::atomic<uintptr_t>& lowest) {
  const auto bad = reinterpret_cast<uintptr_t>(os::FirstBeyondReach(begin, bytes, access));
  if (bad == 0) return true;
  uintptr_t known = lowest.load(std::memory_order_relaxed);
  while ((known == 0 || bad < known) && !lowest.compare_exchange_weak(known, bad, std::memory_order_relaxed)) {
  }
  return false;
}

bool ReachesRows(const Side& side, size_t width, size_t rows, size_t pitch, os::Access access) {
  constexpr size_t kNearBytes = 4096;  // rows that near share their pages
  if (pitch > std::max(2 * width, kNearBytes)) return false;
  return os::FirstBeyondReach(side.local, (rows - 1) * pitch + width, access) == nullptr;
}

Status Beyond(Code code, const CopyPlan& plan, uintptr_t bad, const char* param, const char* local, const char* can) {
  return Error(code,
               "{}: {} {} is memory of the host, and this process has no {} memory at {} ({} bytes are asked for).",
               plan.function, param, fmt::ptr(local), can, fmt::ptr(reinterpret_cast<const void*>(bad)), plan.Bytes())
      .Remedy(
          "Pass memory that is allocated, as large as is said, and not given back to the system before the work is "
          "done.");
}

}  // namespace

bool ClientMemory::ReachesSource(const char* src, size_t bytes) {
  return Reach(src, bytes, os::Access::kRead, bad_src_);
}
bool ClientMemory::ReachesDestination(const char* dst, size_t bytes) {
  return Reach(dst, bytes, os::Access::kWrite, bad_dst_);
}

bool ClientMemory::ReachesEnd() {
  const auto end = [&](const Side& side, size_t pitch) {
    return side.local + (plan_.rows - 1) * pitch + plan_.width - 1;
  };
  return Reaches(end(plan_.dst, plan_.dst_pitch), end(plan_.src, plan_.src_pitch), 1);
}

bool ClientMemory::ReachesAllRows() const {
  return (!looks_at_src_ || ReachesRows(plan_.src, plan_.width, plan_.rows, plan_.src_pitch, os::Access::kRead)) &&
         (!looks_at_dst_ || ReachesRows(plan_.dst, plan_.width, plan_.rows, plan_.dst_pitch, os::Access::kWrite));
}

Status ClientMemory::Told(Code code, const char* dst_name) const {
  if (const uintptr_t bad = bad_src_.load(std::memory_order_relaxed); bad != 0) {
    return Beyond(code, plan_, bad, "src", plan_.src.local, "readable");
  }
  if (const uintptr_t bad = bad_dst_.load(std::memory_order_relaxed); bad != 0) {
    return Beyond(code, plan_, bad, dst_name, plan_.dst.local, "writable");
  }
  return {};
}

}  // namespace npu::rt
