#include "device/machine/names.h"

#include <dirent.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>

#include "device/machine/layout.h"
#include "device/machine/state_file.h"

namespace npu::device {

Result<std::vector<std::string>> MachineNames() {
  std::vector<std::string> names;
  NPU_ASSIGN(os::Fd directory, OpenStateDirectory(/*create=*/false));
  if (!directory) return names;
  const std::unique_ptr<DIR, int (*)(DIR*)> list(fdopendir(directory.get()), &closedir);
  if (list == nullptr) return names;
  static_cast<void>(directory.Release());  // the list's now
  const std::string ending = fmt::format(".v{}", kStateVersion);
  while (const dirent* entry = readdir(list.get())) {
    std::string name = entry->d_name;
    if (name.size() <= ending.size() || !name.ends_with(ending)) continue;
    name.resize(name.size() - ending.size());
    if (IsMachineName(name)) names.push_back(std::move(name));
  }
  std::sort(names.begin(), names.end());
  return names;
}

Status MustExist(const std::string& name) {
  NPU_ASSIGN(const std::vector<std::string> names, MachineNames());
  if (std::binary_search(names.begin(), names.end(), name)) return {};
  return Error(
             Code::kInvalidParam, "There is no machine {:?}; there {}.", name.substr(0, 60),
             names.empty() ? "is none" : fmt::format("{} {}", names.size() == 1 ? "is" : "are", fmt::join(names, ", ")))
      .Remedy("anynpu up --machine NAME makes one that stays; one that nobody keeps goes with its last process.");
}

}  // namespace npu::device
