// Small files of the kernel and of containers, read with a bound.
#pragma once

#include <optional>
#include <string>

namespace npu::monitor {

// At most `most` bytes; nothing when it cannot be read.
std::optional<std::string> ReadSmallFile(const std::string& path, size_t most = 4096);
// The name of a process, "NA" when it is gone.
std::string ProcessName(const std::string& proc, int pid);
// The container a process runs in, by its control groups: the 64 digits of its id, or the last part of the path where
// that is how the tool names it (systemd-nspawn, LXC). Empty on the host.
std::string ContainerOf(const std::string& proc, int pid);
// The same from the text of /proc/PID/cgroup.
std::string ContainerIn(const std::string& cgroup_text);

}  // namespace npu::monitor
