#include "device/machine/names.h"

#include <dirent.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>

#include "base/status/distance.h"
#include "device/machine/layout.h"
#include "device/machine/state_file.h"

namespace npu::device {
namespace {

// The ones that are spelt most alike come first.
std::string Some(std::vector<std::string> names, std::string_view wanted) {
  constexpr size_t kTold = 6;
  if (names.empty()) return "is none";
  const std::string_view word = wanted.substr(0, 60);
  std::stable_sort(names.begin(), names.end(), [&](const std::string& a, const std::string& b) {
    return EditDistance(a, word) < EditDistance(b, word);
  });
  const size_t all = names.size();
  names.resize(std::min(all, kTold));
  return fmt::format("{} {}{}", all == 1 ? "is" : "are", fmt::join(names, ", "),
                     all > kTold ? fmt::format(" and {} more", all - kTold) : "");
}

}  // namespace

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
  return Error(Code::kInvalidParam, "There is no machine {:?}; there {}.", name.substr(0, 60), Some(names, name))
      .Remedy("anynpu up --machine NAME makes one that stays; one that nobody keeps goes with its last process.");
}

}  // namespace npu::device
