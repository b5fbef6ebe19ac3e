#include "tools/launch/environment.h"

#include <cstdlib>
#include <sstream>

#include "device/profile/profile.h"

namespace npu::launch {
namespace {

// Our folder in front, and only once; empty parts stay as they are, since they mean the working directory.
std::string InFront(const std::string& folder, const std::optional<std::string>& list) {
  if (!list || list->empty()) return folder;
  std::string rest;
  std::istringstream parts(*list);
  for (std::string part; std::getline(parts, part, ':');) {
    if (part != folder) rest += ':' + part;
  }
  return folder + rest;
}

}  // namespace

Variables EnvironmentFor(const std::filesystem::path& tree, const std::filesystem::path& home, const Lookup& current) {
  std::string libraries = InFront(tree / "lib64", current("LD_LIBRARY_PATH"));
  // Drivers of the 950 have a libdcmi.so with more names, which lies in a folder of its own.
  const auto soc = current("ANYNPU_SOC");
  const device::Profile* profile = soc ? device::FindProfile(*soc) : nullptr;
  if (profile != nullptr && profile->dcmi_v2) libraries = InFront(tree / "lib64-950", libraries);
  return {
      {"ASCEND_HOME_PATH", home},
      {"ASCEND_TOOLKIT_HOME", home},
      {"ASCEND_OPP_PATH", home / "opp"},
      {"ASCEND_AICPU_PATH", home},
      {"LD_LIBRARY_PATH", libraries},
      {"PATH", InFront(tree / "bin", current("PATH"))},
      {"PYTHONPATH", InFront(tree / "python" / "site-packages", current("PYTHONPATH"))},
      // Our streams are asynchronous by themselves; torch_npu's queue of its own costs more than it hides
      // (docs/decisions/task-queue.md). What the user set stands.
      {"TASK_QUEUE_ENABLE", current("TASK_QUEUE_ENABLE").value_or("0")},
  };
}

std::string ShellExports(const Variables& variables) {
  std::string out;
  for (const auto& [name, value] : variables) {
    out += "export " + name + "='";
    for (char c : value) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
    out += "'\n";
  }
  return out;
}

std::optional<std::string> FromProcess(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value ? std::optional<std::string>(value) : std::nullopt;
}

}  // namespace npu::launch
