#include "device/hbm/region.h"

#include <pthread.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <mutex>

namespace npu::hbm {
namespace {

constexpr int kSpanBits = 30;
constexpr uint64_t kSpan = uint64_t{1} << kSpanBits;
constexpr uint64_t kAddressBits = 48;
// By address / 1 GiB. Two MiB of which the pages that are used exist.
std::atomic<Region*> by_span[uint64_t{1} << (kAddressBits - kSpanBits)];
// All regions, for the moment after a fork, when no lock may be taken.
constexpr int kMostRegions = 8192;
std::atomic<Region*> all[kMostRegions];
std::atomic<int> all_high{0};
std::atomic<bool> inaccessible{false};

constexpr int kNothing = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

void InChild() {
  for (int i = 0; i < all_high.load(std::memory_order_relaxed); ++i) {
    Region* region = all[i].load(std::memory_order_relaxed);
    if (region == nullptr || region->inherited.exchange(true, std::memory_order_relaxed)) continue;
    // The memory was left out of the fork. Its addresses are taken so that they never name something new in the child.
    mmap(reinterpret_cast<void*>(region->client), region->span, PROT_NONE, kNothing | MAP_FIXED, -1, 0);
    if (region->local != region->client) {
      mmap(reinterpret_cast<void*>(region->local), region->span, PROT_NONE, kNothing | MAP_FIXED, -1, 0);
    }
  }
}

// Addresses without memory, aligned to 1 GiB; zero on failure.
uintptr_t TakeAddresses(uint64_t span) {
  void* at = mmap(nullptr, span + kSpan, PROT_NONE, kNothing, -1, 0);
  if (at == MAP_FAILED) return 0;
  const uintptr_t raw = reinterpret_cast<uintptr_t>(at);
  const uintptr_t aligned = (raw + kSpan - 1) & ~(kSpan - 1);
  if (aligned > raw) munmap(at, aligned - raw);
  const uintptr_t end = aligned + span, raw_end = raw + span + kSpan;
  if (raw_end > end) munmap(reinterpret_cast<void*>(end), raw_end - end);
  if (end > uint64_t{1} << kAddressBits) {
    munmap(reinterpret_cast<void*>(aligned), span);
    return 0;
  }
  madvise(reinterpret_cast<void*>(aligned), span, MADV_DONTFORK);
  return aligned;
}

bool MapShared(uintptr_t at, uint64_t bytes, int fd, uint64_t offset) {
  void* const address = reinterpret_cast<void*>(at);
  if (mmap(address, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE | MAP_FIXED, fd,
           static_cast<off_t>(offset)) == MAP_FAILED) {
    return false;
  }
  madvise(address, bytes, MADV_DONTFORK);
  madvise(address, bytes, MADV_DONTDUMP);  // a core file of 64 GiB helps nobody
  madvise(address, bytes, MADV_HUGEPAGE);  // used where the host allows huge pages for shared memory
  return true;
}

Status NoAddresses(uint64_t bytes) {
  return Error(Code::kOutOfHostMemory, "The process cannot have {} MiB of addresses for device memory: {}.",
               bytes >> 20, std::strerror(errno))
      .Remedy("Lift the limit of the address space (ulimit -v unlimited) or give the cards less memory with --hbm.");
}

}  // namespace

void SetInaccessibleClients(bool on) { inaccessible.store(on, std::memory_order_relaxed); }

Result<Region*> MakeRegion(RegionKind kind, int card, uint64_t bytes, int fd) {
  static std::once_flag once;
  std::call_once(once, [] { pthread_atfork(nullptr, nullptr, InChild); });
  Region* region = new Region;
  region->kind = kind;
  region->card = card;
  region->bytes = bytes;
  region->span = (bytes + kSpan - 1) & ~(kSpan - 1);
  region->client = TakeAddresses(region->span);
  region->local = region->client;
  if (region->client == 0) {
    delete region;
    return NoAddresses(bytes);
  }
  if (inaccessible.load(std::memory_order_relaxed)) {
    region->local = TakeAddresses(region->span);
    if (region->local == 0) {
      munmap(reinterpret_cast<void*>(region->client), region->span);
      delete region;
      return NoAddresses(bytes);
    }
  }
  int index = 0;
  for (; index < kMostRegions; ++index) {
    Region* none = nullptr;
    if (!all[index].compare_exchange_strong(none, region, std::memory_order_acq_rel)) continue;
    int seen = all_high.load(std::memory_order_relaxed);
    while (seen <= index && !all_high.compare_exchange_weak(seen, index + 1, std::memory_order_relaxed)) {
    }
    break;
  }
  if (index == kMostRegions) {
    RemoveRegion(region);
    return Error(Code::kResourceExhausted, "{} ranges of device addresses are in use, which is the most.", kMostRegions)
        .Remedy("Release reserved address ranges (aclrtReleaseMemAddress).");
  }
  if (fd >= 0 && !MapShared(region->local, bytes, fd, 0)) {
    RemoveRegion(region);
    return NoAddresses(bytes);
  }
  return region;
}

void Publish(Region* region, void* owner) {
  region->owner = owner;
  // Release: whoever finds the region sees its fields.
  for (uint64_t at = 0; at < region->span; at += kSpan) {
    by_span[(region->client + at) >> kSpanBits].store(region, std::memory_order_release);
  }
}

void HideRegion(Region* region) {
  for (uint64_t at = 0; at < region->span; at += kSpan) {
    by_span[(region->client + at) >> kSpanBits].store(nullptr, std::memory_order_release);
  }
}

void RemoveRegion(Region* region) {
  HideRegion(region);
  for (int i = 0; i < all_high.load(std::memory_order_relaxed); ++i) {
    Region* mine = region;
    if (all[i].compare_exchange_strong(mine, nullptr, std::memory_order_acq_rel)) break;
  }
  munmap(reinterpret_cast<void*>(region->client), region->span);
  if (region->local != region->client && region->local != 0)
    munmap(reinterpret_cast<void*>(region->local), region->span);
}

Region* FindRegion(const void* address) {
  const uint64_t at = reinterpret_cast<uintptr_t>(address) >> kSpanBits;
  if (at >> (kAddressBits - kSpanBits) != 0) return nullptr;
  Region* region = by_span[at].load(std::memory_order_acquire);
  if (region == nullptr || reinterpret_cast<uintptr_t>(address) - region->client >= region->bytes) return nullptr;
  return region;
}

Region* FindLocalRegion(const void* local) {
  const uintptr_t at = reinterpret_cast<uintptr_t>(local);
  for (int i = 0; i < all_high.load(std::memory_order_relaxed); ++i) {
    Region* region = all[i].load(std::memory_order_acquire);
    if (region != nullptr && at >= region->local && at - region->local < region->bytes) return region;
  }
  return nullptr;
}

Status MapInto(Region* region, uint64_t at, uint64_t bytes, int fd, uint64_t offset) {
  if (!MapShared(region->local + at, bytes, fd, offset)) {
    return Error(Code::kOutOfHostMemory, "{} MiB of device memory cannot be mapped: {}.", bytes >> 20,
                 std::strerror(errno))
        .Remedy("Raise the number of mappings a process may have (sysctl vm.max_map_count).");
  }
  return {};
}

void MapNothing(Region* region, uint64_t at, uint64_t bytes) {
  void* const address = reinterpret_cast<void*>(region->local + at);
  mmap(address, bytes, PROT_NONE, kNothing | MAP_FIXED, -1, 0);
  madvise(address, bytes, MADV_DONTFORK);
}

void MapZeros(Region* region) {
  void* const address = reinterpret_cast<void*>(region->local);
  mmap(address, region->bytes, PROT_READ | PROT_WRITE, kNothing | MAP_FIXED, -1, 0);
  madvise(address, region->bytes, MADV_DONTFORK);
  madvise(address, region->bytes, MADV_DONTDUMP);
}

}  // namespace npu::hbm
