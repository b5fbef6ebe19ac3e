// Where our install tree is, and the form of it that reports another CANN version.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/status/status.h"

namespace npu::launch {

// The tree this program belongs to: the folder above bin/ in a build, ../share/anynpu beside an installed program.
Result<std::filesystem::path> FindTree();
Result<std::filesystem::path> FindTree(const std::filesystem::path& program);

// The tree as a home (ASCEND_HOME_PATH) that reports `version`. The version that the tree was made with is the tree
// itself. For another one a folder of links is laid once in the user's cache, in which only the version files are new:
// clients read the version from files below the home, and nothing else differs.
Result<std::filesystem::path> HomeFor(const std::filesystem::path& tree, std::string_view made_with,
                                      std::string_view version, const std::filesystem::path& cache);

// The same tree as it is on a machine without a driver: links to all of it but libascend_hal.so.
Result<std::filesystem::path> HomeWithoutDriver(const std::filesystem::path& home, const std::filesystem::path& cache);

// $XDG_CACHE_HOME/anynpu or ~/.cache/anynpu; made when absent.
Result<std::filesystem::path> CacheFolder();

}  // namespace npu::launch
