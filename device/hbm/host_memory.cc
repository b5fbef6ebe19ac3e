#include "device/hbm/host_memory.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string_view>
#include <vector>

#include "base/os/thread.h"

namespace npu::hbm {
namespace {

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

std::string ReadAll(const std::string& path) {
  std::string text;
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return text;
  char buffer[4096];
  for (ssize_t n; (n = read(fd, buffer, sizeof buffer)) > 0;) text.append(buffer, static_cast<size_t>(n));
  close(fd);
  return text;
}

// "key value" or "key: value kB" at the start of a line.
std::optional<uint64_t> Field(std::string_view text, std::string_view key) {
  size_t at = 0;
  while (at < text.size()) {
    size_t end = text.find('\n', at);
    if (end == std::string_view::npos) end = text.size();
    std::string_view line = text.substr(at, end - at);
    at = end + 1;
    if (!line.starts_with(key)) continue;
    line.remove_prefix(key.size());
    if (line.empty() || (line[0] != ':' && line[0] != ' ')) continue;
    const std::string number(line.substr(line.find_first_not_of(": \t")));
    const uint64_t value = std::strtoull(number.c_str(), nullptr, 10);
    return number.find("kB") != std::string::npos ? value * 1024 : value;
  }
  return std::nullopt;
}

std::optional<uint64_t> Number(const std::string& path) {
  const std::string text = ReadAll(path);
  if (text.empty() || text[0] < '0' || text[0] > '9') return std::nullopt;  // "max": no limit
  return std::strtoull(text.c_str(), nullptr, 10);
}

// A control group's directory and its ancestors below the mount.
std::vector<std::string> WithAncestors(const std::string& mount, std::string path) {
  std::vector<std::string> out;
  for (;;) {
    out.push_back(mount + path);
    const size_t cut = path.find_last_of('/');
    if (cut == std::string::npos || path.empty()) return out;
    path.resize(cut);
  }
}

struct Names {
  const char *limit, *usage, *inactive, *active;
};
constexpr Names kV2{"/memory.max", "/memory.current", "inactive_file", "active_file"};
constexpr Names kV1{"/memory.limit_in_bytes", "/memory.usage_in_bytes", "total_inactive_file", "total_active_file"};

void Tighten(HostMemory* host, const std::string& directory, const Names& names) {
  const auto limit = Number(directory + names.limit);
  const auto usage = Number(directory + names.usage);
  if (!limit || !usage || *limit >= host->total) return;
  const std::string stat = ReadAll(directory + "/memory.stat");
  const uint64_t cache = Field(stat, names.inactive).value_or(0) + Field(stat, names.active).value_or(0);
  const uint64_t busy = *usage - std::min(*usage, cache);
  const uint64_t left = *limit - std::min(*limit, busy);
  host->total = *limit;
  if (left < host->available) {
    host->available = left;
    host->limited_by = directory + names.limit;
  }
}

}  // namespace

HostMemory ReadHostMemoryUnder(const std::string& root) {
  HostMemory host;
  host.limited_by = "the host";
  const std::string meminfo = ReadAll(root + "/proc/meminfo");
  host.total = Field(meminfo, "MemTotal").value_or(0);
  host.available = Field(meminfo, "MemAvailable").value_or(Field(meminfo, "MemFree").value_or(0));
  const std::string groups = ReadAll(root + "/proc/self/cgroup");
  size_t at = 0;
  while (at < groups.size()) {  // lines "number:controllers:path"
    size_t end = groups.find('\n', at);
    if (end == std::string::npos) end = groups.size();
    const std::string line = groups.substr(at, end - at);
    at = end + 1;
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    std::string path = line.substr(second + 1);
    if (path == "/") path.clear();
    if (controllers == ",,") {
      for (const auto& directory : WithAncestors(root + "/sys/fs/cgroup", path)) Tighten(&host, directory, kV2);
    } else if (controllers.find(",memory,") != std::string::npos) {
      for (const auto& directory : WithAncestors(root + "/sys/fs/cgroup/memory", path)) Tighten(&host, directory, kV1);
    }
  }
  return host;
}

HostMemory ReadHostMemory() { return ReadHostMemoryUnder(""); }

namespace {

std::atomic<bool> kernel_populates{true};

// For kernels before 5.14: adding zero is a write that changes nothing, also when others use the page.
void Touch(std::byte* begin, size_t bytes, size_t page) {
  for (size_t at = 0; at < bytes; at += page) {
    __atomic_fetch_add(reinterpret_cast<unsigned char*>(begin + at), 0, __ATOMIC_RELAXED);
  }
}

bool PopulatePart(std::byte* begin, size_t bytes, size_t page) {
  constexpr size_t kPiece = size_t{64} << 20;
  while (bytes > 0) {
    const size_t piece = std::min(bytes, kPiece);
    if (!kernel_populates.load(std::memory_order_relaxed)) {
      Touch(begin, piece, page);
    } else {
      while (madvise(begin, piece, MADV_POPULATE_WRITE) != 0) {
        if (errno == EAGAIN || errno == EINTR) continue;
        if (errno != EINVAL) return false;
        kernel_populates.store(false, std::memory_order_relaxed);
        Touch(begin, piece, page);
        break;
      }
    }
    begin += piece;
    bytes -= piece;
  }
  return true;
}

int CoresOfThisThread() {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

}  // namespace

bool PopulatePages(void* begin, size_t bytes) {
  static const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const uintptr_t from = reinterpret_cast<uintptr_t>(begin) & ~(page - 1);
  const uintptr_t to = (reinterpret_cast<uintptr_t>(begin) + bytes + page - 1) & ~(page - 1);
  std::byte* const first = reinterpret_cast<std::byte*>(from);
  const size_t size = to - from;
  if (size < (size_t{4} << 20) || CoresOfThisThread() < 2) return PopulatePart(first, size, page);
  const size_t half = size / 2 / (size_t{2} << 20) * (size_t{2} << 20);
  bool second_fine = true;
  auto helper = os::Start("npu-pages", [&] { second_fine = PopulatePart(first + half, size - half, page); });
  const bool first_fine = PopulatePart(first, half, page);
  if (helper.ok()) {
    helper->join();
  } else {  // no more threads: alone then
    second_fine = PopulatePart(first + half, size - half, page);
  }
  return first_fine && second_fine;
}

}  // namespace npu::hbm
