#include "runtime/memory/host.h"

#include <sys/mman.h>

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>

#include "device/hbm/foreign.h"
#include "runtime/stream/task_stream.h"

namespace npu::rt {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kHugePage = size_t{2} << 20;

struct Table {
  std::shared_mutex mutex;
  std::map<uintptr_t, HostRange> ranges;  // by first address; they do not overlap

  std::map<uintptr_t, HostRange>::iterator Holding(uintptr_t address) {
    auto next = ranges.upper_bound(address);
    if (next == ranges.begin()) return ranges.end();
    --next;
    return address - next->first < next->second.bytes ? next : ranges.end();
  }
};
Table& table() {
  static auto* t = new Table;
  return *t;
}

uintptr_t Number(const void* p) { return reinterpret_cast<uintptr_t>(p); }

}  // namespace

Result<void*> AllocateHost(size_t bytes, const char* function) {
  const auto failed = [&] {
    return Error(Code::kOutOfHostMemory, "{}: the host has no {} bytes for pinned memory.", function, bytes)
        .Remedy("Free host memory or pin less.");
  };
  const bool huge = bytes >= kHugePage;
  const size_t step = huge ? kHugePage : kPage;
  if (bytes > SIZE_MAX / 2) return failed();
  const size_t mapped = (bytes + step - 1) / step * step;
  // Huge pages want an aligned start: map more and cut off what is too much.
  const size_t extra = huge ? kHugePage : 0;
  void* raw = mmap(nullptr, mapped + extra, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (raw == MAP_FAILED) return failed();
  char* begin = static_cast<char*>(raw);
  if (huge) {
    const size_t head = (kHugePage - Number(raw) % kHugePage) % kHugePage;
    if (head > 0) munmap(begin, head);
    begin += head;
    if (extra > head) munmap(begin + mapped, extra - head);
    madvise(begin, mapped, MADV_HUGEPAGE);
  }
  Table& t = table();
  const std::unique_lock lock(t.mutex);
  t.ranges[Number(begin)] = {begin, mapped, false};
  return static_cast<void*>(begin);
}

Status FreeHost(void* begin, const char* function) {
  HostRange range;
  {
    Table& t = table();
    const std::unique_lock lock(t.mutex);
    const auto found = t.ranges.find(Number(begin));
    if (found == t.ranges.end() || found->second.registered) {
      const auto holder = t.Holding(Number(begin));
      const char* why = holder == t.ranges.end()        ? "was not allocated by aclrtMallocHost, or was freed before"
                        : holder->second.registered     ? "was registered and not allocated"
                                                        : "lies inside an allocation but is not its start";
      return Error(Code::kOutOfRange, "{}: hostPtr {} {}.", function, fmt::ptr(begin), why)
          .Remedy("Pass what aclrtMallocHost gave, once.");
    }
    range = found->second;
    t.ranges.erase(found);
  }
  hbm::RemoveForeign(range.begin);
  // Copies that were queued before still use it: it goes with the last of them.
  TaskStream::KeepUntilAllDone(
      std::shared_ptr<void>(range.begin, [bytes = range.bytes](void* block) { munmap(block, bytes); }));
  return {};
}

Status RegisterHost(void* begin, size_t bytes, const char* function) {
  Table& t = table();
  const uintptr_t first = Number(begin);
  if (bytes > UINTPTR_MAX - first) return Error(Code::kOutOfRange, "{}: the range of {} bytes wraps around.", function, bytes);
  const std::unique_lock lock(t.mutex);
  const auto next = t.ranges.lower_bound(first);
  if (t.Holding(first) != t.ranges.end() || (next != t.ranges.end() && next->first < first + bytes)) {
    return Error(Code::kHostRegistered, "{}: the range {} of {} bytes overlaps memory that is registered or pinned already.", function,
                 fmt::ptr(begin), bytes)
        .Remedy("Unregister the older range first.");
  }
  t.ranges[first] = {begin, bytes, true};
  hbm::AddForeign(begin, bytes);
  return {};
}

Status UnregisterHost(void* begin, const char* function) {
  Table& t = table();
  const std::unique_lock lock(t.mutex);
  const auto found = t.ranges.find(Number(begin));
  if (found == t.ranges.end() || !found->second.registered) {
    return Error(Code::kHostNotRegistered, "{}: {} is not the start of a registered range.", function, fmt::ptr(begin))
        .Remedy("Pass the address that was registered, once.");
  }
  t.ranges.erase(found);
  hbm::RemoveForeign(begin);
  return {};
}

Status ShowToDevices(const void* address, const char* function) {
  const auto range = FindHost(address);
  if (!range) {
    return Error(Code::kHostNotRegistered, "{}: {} is neither registered nor pinned host memory.", function, fmt::ptr(address))
        .Remedy("Call aclrtHostRegisterV2 first.");
  }
  hbm::AddForeign(range->begin, range->bytes);
  return {};
}

std::optional<HostRange> FindHost(const void* address) {
  Table& t = table();
  const std::shared_lock lock(t.mutex);
  const auto found = t.Holding(Number(address));
  return found == t.ranges.end() ? std::nullopt : std::optional<HostRange>(found->second);
}

}  // namespace npu::rt
