// What the host can still give: free memory and the limits of the process's control groups (v1 and v2).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace npu::hbm {

struct HostMemory {
  uint64_t total = 0;      // of the host, or the control group's limit when that is lower
  uint64_t available = 0;  // without swapping, page cache counted as free
  std::string limited_by;  // "the host" or the file of the control group that is the tightest
};
// Reads /proc and /sys: some 30 µs.
HostMemory ReadHostMemory();
// The same from a copy of these trees, for tests. `root` is put before every path.
HostMemory ReadHostMemoryUnder(const std::string& root);

// Gives pages to a mapping of shared memory, in pieces, with two threads from 4 MiB on. Contents are kept. False when
// the kernel refused (no memory); pages that are there already cost little.
bool PopulatePages(void* begin, size_t bytes);

}  // namespace npu::hbm
