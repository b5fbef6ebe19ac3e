// `anynpu install --prefix DIR`: links where guides and programs expect the vendor's files, e.g. below
// /usr/local/Ascend.
#pragma once

#include <filesystem>
#include <vector>

#include "base/status/status.h"

namespace npu::launch {

struct Link {
  std::filesystem::path at;  // relative to the prefix
  std::filesystem::path to;  // absolute, inside the tree
};
std::vector<Link> LinksFor(const std::filesystem::path& tree);

// Refuses, and changes nothing, when any of the places is taken by something that is not a link of ours: a real CANN or
// driver stays untouched. Doing it twice is fine.
Status Install(const std::filesystem::path& tree, const std::filesystem::path& prefix);
// Takes away the links that point into the tree, and the folders that are empty then.
Status Uninstall(const std::filesystem::path& tree, const std::filesystem::path& prefix);

}  // namespace npu::launch
