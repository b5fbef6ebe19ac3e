// Whether memory that a caller names is there, without a signal when it is not.
//
//   if (const void* bad = FirstBeyondReach(src, bytes, Access::kRead)) return Error(…);
//
// The system is asked, and asked again each time: addresses come and go. What is there has its pages afterwards, which
// the copy that follows wants anyway. Some 0.2 µs and 10 ns a page (Linux 5.14; before that some 3 µs and 20 ns a
// page). Any thread may call it, and so may a child of fork.
#pragma once

#include <cstddef>
#include <cstdint>

namespace npu::os {

enum class Access : uint8_t { kRead, kWrite };

// The first address of [begin, begin + bytes) that this process may not read (or write); null when there is none. Bytes
// are left as they are. A range that would pass the end of the address space counts as beyond reach; null, which
// this cannot tell, is refused before.
const void* FirstBeyondReach(const void* begin, size_t bytes, Access access) noexcept;

// The same by way of a scratch file, on any Linux: the kernel answers EFAULT for a byte that it cannot fetch. For
// writing it puts back the byte that it has just read of each page, so that nobody else may write there meanwhile.
const void* FirstBeyondReachByFile(const void* begin, size_t bytes, Access access) noexcept;

// Whether something is mapped at each page, whatever may be done with it. A few hundred ns, and no page is touched.
bool IsMapped(const void* begin, size_t bytes) noexcept;

}  // namespace npu::os
