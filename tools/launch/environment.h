// The variables that make an unmodified program find our libraries.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace npu::launch {

using Variables = std::vector<std::pair<std::string, std::string>>;
using Lookup = std::function<std::optional<std::string>(const std::string&)>;

// What to set, given what is set now. `home` is ASCEND_HOME_PATH, `tree` holds the libraries and programs. Doing it
// twice changes nothing.
Variables EnvironmentFor(const std::filesystem::path& tree, const std::filesystem::path& home, const Lookup& current);

// `export NAME='value'` lines for a shell.
std::string ShellExports(const Variables& variables);

std::optional<std::string> FromProcess(const std::string& name);

}  // namespace npu::launch
