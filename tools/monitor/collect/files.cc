#include "tools/monitor/collect/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>

#include "base/os/fd.h"

namespace npu::monitor {

std::optional<std::string> ReadSmallFile(const std::string& path, size_t most) {
  const os::Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) return std::nullopt;
  std::string text(most, '\0');
  size_t length = 0;
  while (length < most) {
    const ssize_t got = read(file.get(), text.data() + length, most - length);
    if (got < 0) return std::nullopt;
    if (got == 0) break;
    length += static_cast<size_t>(got);
  }
  text.resize(length);
  return text;
}

std::string ProcessName(const std::string& proc, int pid) {
  std::string name = ReadSmallFile(fmt::format("{}/{}/comm", proc, pid)).value_or("");
  name = name.substr(0, name.find('\n'));
  for (char& c : name) {
    if (c < ' ' || c > '~') c = '?';
  }
  return name.empty() ? "NA" : name;
}

std::string ContainerIn(const std::string& cgroup_text) {
  constexpr size_t kIdDigits = 64;
  std::string_view rest = cgroup_text;
  std::string named;
  while (!rest.empty()) {
    std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    const size_t second = line.find(':', line.find(':') + 1);
    if (second == std::string_view::npos) continue;
    const std::string_view path = line.substr(second + 1);
    // The last run of 64 hexadecimal digits: docker, containerd, CRI-O, Podman, also inside kubepods.
    for (size_t end = path.size(); end >= kIdDigits; --end) {
      const std::string_view id = path.substr(end - kIdDigits, kIdDigits);
      const bool hex = id.find_first_not_of("0123456789abcdef") == std::string_view::npos;
      if (hex) return std::string(id);
    }
    for (const std::string_view folder : {"/machine.slice/", "/lxc/", "/lxc.payload.", "/machine/"}) {
      if (!path.starts_with(folder)) continue;
      const std::string_view name = path.substr(folder.size());
      named = std::string(name.substr(0, name.find('/')));
    }
  }
  return named;
}

std::string ContainerOf(const std::string& proc, int pid) {
  return ContainerIn(ReadSmallFile(fmt::format("{}/{}/cgroup", proc, pid)).value_or(""));
}

}  // namespace npu::monitor
