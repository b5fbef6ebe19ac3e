#include "base/os/reach.h"

#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/os/fd.h"

namespace npu::os {
namespace {

// Of Linux 5.14, newer than the C libraries that we build with.
constexpr int kPopulateRead = 22, kPopulateWrite = 23;

// The first page of the address space is never memory.
constexpr uintptr_t kFirstAddress = 4096;

uintptr_t PageBytes() {
  static const auto bytes = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

void* Pointer(uintptr_t address) { return reinterpret_cast<void*>(address); }

}  // namespace

const void* FirstBeyondReach(const void* begin, size_t bytes, Access access) noexcept {
  const auto first = reinterpret_cast<uintptr_t>(begin);
  if (bytes == 0) return nullptr;
  const uintptr_t page_bytes = PageBytes();
  if (first >= kFirstAddress && bytes <= UINTPTR_MAX - first - page_bytes) {
    const uintptr_t page = first & ~(page_bytes - 1);
    const uintptr_t end = (first + bytes + page_bytes - 1) & ~(page_bytes - 1);
    // Everything but success has several reasons, among them a system that does not know the question.
    if (madvise(Pointer(page), end - page, access == Access::kRead ? kPopulateRead : kPopulateWrite) == 0)
      return nullptr;
  }
  return FirstBeyondReachByFile(begin, bytes, access);
}

const void* FirstBeyondReachByFile(const void* begin, size_t bytes, Access access) noexcept {
  const auto first = reinterpret_cast<uintptr_t>(begin);
  if (bytes == 0) return nullptr;
  if (first < kFirstAddress) return begin;
  const uintptr_t page_bytes = PageBytes();
  // A number of our own would not do: programs that become daemons close all of them and open others.
  const Fd file(memfd_create("anynpu-reach", MFD_CLOEXEC));
  if (!file) return nullptr;  // no descriptor left: nothing is known, and a sound copy must go on
  constexpr size_t kPagesAtOnce = 256;
  iovec pieces[kPagesAtOnce];
  const uintptr_t last = bytes - 1 > UINTPTR_MAX - first ? UINTPTR_MAX : first + (bytes - 1);
  for (uintptr_t at = first;;) {
    size_t count = 0;
    uintptr_t next = at;
    bool more = true;
    while (count < kPagesAtOnce && more) {
      pieces[count++] = {Pointer(next), 1};
      const uintptr_t left = page_bytes - (next & (page_bytes - 1));
      more = last - next >= left;
      if (more) next += left;
    }
    ssize_t done = pwritev(file.get(), pieces, static_cast<int>(count), 0);
    if (access == Access::kWrite && done > 0) done = preadv(file.get(), pieces, static_cast<int>(done), 0);
    if (done < 0 && errno != EFAULT) return nullptr;  // no memory for the file: again nothing is known
    if (done < static_cast<ssize_t>(count)) return pieces[std::max<ssize_t>(done, 0)].iov_base;
    if (!more) return nullptr;
    at = next;
  }
}

bool IsMapped(const void* begin, size_t bytes) noexcept {
  const auto first = reinterpret_cast<uintptr_t>(begin);
  const uintptr_t page_bytes = PageBytes();
  if (bytes > UINTPTR_MAX - first - page_bytes) return false;
  const uintptr_t page = first & ~(page_bytes - 1);
  // Writes nothing back (Linux leaves that to its own time), but walks the mappings.
  return msync(Pointer(page), first + bytes - page, MS_ASYNC) == 0 || errno != ENOMEM;
}

}  // namespace npu::os
