#include "runtime/memory/host.h"

#include <sys/mman.h>

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <shared_mutex>

#include "base/os/reach.h"
#include "device/hbm/foreign.h"
#include "runtime/stream/task_stream.h"

namespace npu::rt {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kHugePage = size_t{2} << 20;

// Ranges that do not overlap, by first address.
struct Ranges : std::map<uintptr_t, HostRange> {
  iterator Holding(uintptr_t address) {
    auto next = upper_bound(address);
    if (next == begin()) return end();
    --next;
    return address - next->first < next->second.bytes ? next : end();
  }
  bool Overlap(uintptr_t first, size_t bytes) {
    const auto next = lower_bound(first);
    return Holding(first) != end() || (next != end() && next->first - first < bytes);
  }
};

struct Table {
  std::shared_mutex mutex;
  Ranges pinned;
  Ranges registered;              // each outside of pinned blocks or wholly inside one
  std::set<uintptr_t> asked_for;  // pinned blocks whose device view was asked for, by first address

  // Devices see a pinned block as a whole, as long as a part of it is registered or its view was asked for.
  void Show(const HostRange& block) { hbm::AddForeign(block.begin, block.bytes); }
  void Hide(const HostRange& block) {
    const auto first = reinterpret_cast<uintptr_t>(block.begin);
    if (asked_for.count(first) == 0 && !registered.Overlap(first, block.bytes)) hbm::RemoveForeign(block.begin);
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
  t.pinned[Number(begin)] = {begin, mapped, false};
  return static_cast<void*>(begin);
}

Status FreeHost(void* begin, const char* function) {
  HostRange range;
  {
    Table& t = table();
    const std::unique_lock lock(t.mutex);
    const auto found = t.pinned.find(Number(begin));
    if (found == t.pinned.end()) {
      const char* why = t.pinned.Holding(Number(begin)) != t.pinned.end()
                            ? "lies inside an allocation but is not its start"
                        : t.registered.Holding(Number(begin)) != t.registered.end()
                            ? "was registered and not allocated"
                            : "was not allocated by aclrtMallocHost, or was freed before";
      return Error(Code::kOutOfRange, "{}: hostPtr {} {}.", function, fmt::ptr(begin), why)
          .Remedy("Pass what aclrtMallocHost gave, once.");
    }
    range = found->second;
    t.pinned.erase(found);
    t.asked_for.erase(Number(begin));
    // Registrations of its parts go with it.
    t.registered.erase(t.registered.lower_bound(Number(begin)), t.registered.lower_bound(Number(begin) + range.bytes));
  }
  hbm::RemoveForeign(range.begin);
  if (strict::On()) strict::Forgotten(range.begin, range.bytes);
  // Copies that were queued before still use it: it goes with the last of them.
  TaskStream::KeepUntilAllDone(
      std::shared_ptr<void>(range.begin, [bytes = range.bytes](void* block) { munmap(block, bytes); }));
  return {};
}

Status RegisterHost(void* begin, size_t bytes, const char* function) {
  Table& t = table();
  const uintptr_t first = Number(begin);
  if (bytes > UINTPTR_MAX - first)
    return Error(Code::kOutOfRange, "{}: the range of {} bytes wraps around.", function, bytes);
  if (!os::IsMapped(begin, bytes)) {
    return Error(Code::kOutOfRange, "{}: ptr {} of {} bytes is not all memory of this process.", function,
                 fmt::ptr(begin), bytes)
        .Remedy("Register memory that is allocated, with its size in bytes.");
  }
  const std::unique_lock lock(t.mutex);
  const auto block = t.pinned.Holding(first);
  const bool inside = block != t.pinned.end() && first - block->first + bytes <= block->second.bytes;
  if (t.registered.Overlap(first, bytes) || (!inside && t.pinned.Overlap(first, bytes))) {
    return Error(Code::kHostRegistered,
                 "{}: the range {} of {} bytes overlaps memory that is registered already or a part of a pinned block.",
                 function, fmt::ptr(begin), bytes)
        .Remedy(
            "Unregister the older range first; register a range that lies inside one pinned block or outside of all.");
  }
  const HostRange range{begin, bytes, true};
  t.registered[first] = range;
  t.Show(inside ? block->second : range);
  return {};
}

Status UnregisterHost(void* begin, const char* function) {
  Table& t = table();
  const std::unique_lock lock(t.mutex);
  const auto found = t.registered.find(Number(begin));
  if (found == t.registered.end()) {
    return Error(Code::kHostNotRegistered, "{}: {} is not the start of a registered range.", function, fmt::ptr(begin))
        .Remedy("Pass the address that was registered, once.");
  }
  if (strict::On()) strict::Forgotten(begin, found->second.bytes);
  const auto block = t.pinned.Holding(found->first);
  const HostRange shown = block != t.pinned.end() ? block->second : found->second;
  t.registered.erase(found);
  t.Hide(shown);
  return {};
}

Status ShowToDevices(const void* address, const char* function) {
  Table& t = table();
  const std::unique_lock lock(t.mutex);
  if (const auto block = t.pinned.Holding(Number(address)); block != t.pinned.end()) {
    t.asked_for.insert(block->first);
    t.Show(block->second);
  } else if (t.registered.Holding(Number(address)) == t.registered.end()) {
    return Error(Code::kHostNotRegistered, "{}: {} is neither registered nor pinned host memory.", function,
                 fmt::ptr(address))
        .Remedy("Call aclrtHostRegisterV2 first.");
  }
  return {};
}

std::optional<HostRange> FindHost(const void* address) {
  Table& t = table();
  const std::shared_lock lock(t.mutex);
  for (Ranges* ranges : {&t.pinned, &t.registered}) {
    if (const auto found = ranges->Holding(Number(address)); found != ranges->end()) return found->second;
  }
  return std::nullopt;
}

}  // namespace npu::rt
