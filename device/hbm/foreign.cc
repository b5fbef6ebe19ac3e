#include "device/hbm/foreign.h"

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <shared_mutex>

namespace npu::hbm {
namespace {

struct Table {
  std::atomic<size_t> count{0};
  std::shared_mutex mutex;
  std::map<uintptr_t, size_t> ranges;  // first address → bytes
};
Table& table() {
  static auto* t = new Table;
  return *t;
}

}  // namespace

void AddForeign(void* begin, size_t bytes) {
  Table& t = table();
  const std::unique_lock lock(t.mutex);
  t.ranges.emplace(reinterpret_cast<uintptr_t>(begin), bytes);
  t.count.store(t.ranges.size(), std::memory_order_release);
}

void RemoveForeign(void* begin) {
  Table& t = table();
  if (t.count.load(std::memory_order_acquire) == 0) return;
  const std::unique_lock lock(t.mutex);
  t.ranges.erase(reinterpret_cast<uintptr_t>(begin));
  t.count.store(t.ranges.size(), std::memory_order_release);
}

std::optional<Foreign> FindForeign(const void* address) {
  Table& t = table();
  if (t.count.load(std::memory_order_acquire) == 0) return std::nullopt;
  const uintptr_t at = reinterpret_cast<uintptr_t>(address);
  const std::shared_lock lock(t.mutex);
  auto next = t.ranges.upper_bound(at);
  if (next == t.ranges.begin()) return std::nullopt;
  --next;
  if (at - next->first >= next->second) return std::nullopt;
  return Foreign{reinterpret_cast<void*>(next->first), next->second};
}

}  // namespace npu::hbm
