#include "runtime/workers/cores.h"

#include <sched.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>

namespace npu::rt {
namespace {

std::string FirstLine(const std::string& path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  return line;
}

int CoresOfAffinity() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
  return std::max(1u, std::thread::hardware_concurrency());  // more CPUs than a cpu_set_t holds
}

// The tightest quota of this process's group and the groups above it, in either version of cgroups; 0 means no limit.
int CoresOfGroup() {
  int best = 0;
  const auto consider = [&best](int cores) {
    if (cores > 0 && (best == 0 || cores < best)) best = cores;
  };
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    std::string path = line.substr(second + 1);
    const bool v2 = controllers.empty();
    if (!v2 && ("," + controllers + ",").find(",cpu,") == std::string::npos) continue;
    while (true) {
      if (v2) {
        consider(CoresOfQuota(FirstLine("/sys/fs/cgroup" + path + "/cpu.max").c_str()));
      } else {
        const std::string folder = "/sys/fs/cgroup/cpu" + path;
        consider(CoresOfQuota((FirstLine(folder + "/cpu.cfs_quota_us") + " " + FirstLine(folder + "/cpu.cfs_period_us")).c_str()));
      }
      const size_t slash = path.rfind('/');
      if (slash == std::string::npos || path.empty()) break;
      path.resize(slash);
    }
  }
  return best;
}

}  // namespace

int CoresOfQuota(const char* cpu_max) {
  char* end = nullptr;
  const double quota = std::strtod(cpu_max, &end);
  if (end == cpu_max || quota <= 0) return 0;  // "max", "-1" or nothing
  const double period = std::strtod(end, nullptr);
  if (period <= 0) return 0;
  return std::max(1, static_cast<int>((quota + period - 1) / period));
}

int UsableCores() {
  static const int cores = [] {
    const int affinity = CoresOfAffinity(), group = CoresOfGroup();
    return group > 0 ? std::min(affinity, group) : affinity;
  }();
  return cores;
}

}  // namespace npu::rt
