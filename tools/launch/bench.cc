#include "tools/launch/bench.h"

#include <unistd.h>

#include <sstream>

#include "tools/launch/environment.h"

namespace npu::launch {
namespace fs = std::filesystem;
namespace {

// Where execvp would find it; empty when nowhere.
std::string OnPath(const std::string& program) {
  if (program.find('/') != std::string::npos) return access(program.c_str(), X_OK) == 0 ? program : "";
  std::istringstream folders(FromProcess("PATH").value_or(""));
  for (std::string folder; std::getline(folders, folder, ':');) {
    const fs::path candidate = fs::path(folder.empty() ? "." : folder) / program;
    if (std::error_code error; fs::is_regular_file(candidate, error) && access(candidate.c_str(), X_OK) == 0)
      return candidate;
  }
  return {};
}

}  // namespace

Result<std::vector<std::string>> BenchCommand(const fs::path& tree, const std::string& python,
                                              const std::vector<std::string>& words) {
  const fs::path script = tree / "anynpu" / "bench" / "bench.py";
  if (std::error_code error; !fs::exists(script, error)) {
    return Error(Code::kInvalidFile, "anynpu bench: {} is missing from the install tree.", script.string())
        .Remedy("Install the package again: pip install --force-reinstall anynpu.");
  }
  const std::string found = OnPath(python.empty() ? "python3" : python);
  if (found.empty()) {
    return Error(Code::kInvalidFile, "anynpu bench: there is no program {}.",
                 python.empty() ? "python3 on PATH" : python)
        .Remedy("Name a Python with --python; to measure training it needs torch and torch_npu.");
  }
  std::vector<std::string> command = {found, script, "--launcher", tree / "bin" / "anynpu", "--python", found};
  command.insert(command.end(), words.begin(), words.end());
  return command;
}

}  // namespace npu::launch
