// How many cores this process may use: the smaller of its affinity mask and its cgroup's CPU quota.
#pragma once

namespace npu::rt {

int UsableCores();  // at least 1; read once

// The quota part alone, from the text of cgroup v2 `cpu.max` ("200000 100000" or "max 100000"); 0 means no limit.
int CoresOfQuota(const char* cpu_max);

}  // namespace npu::rt
