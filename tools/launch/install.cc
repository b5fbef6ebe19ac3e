#include "tools/launch/install.h"

#include <fmt/format.h>

namespace npu::launch {
namespace fs = std::filesystem;
namespace {

bool IsOurs(const fs::path& place, const fs::path& tree) {
  std::error_code error;
  if (!fs::is_symlink(place, error)) return false;
  const fs::path target = fs::read_symlink(place, error);
  // A link of an earlier installation of ours may dangle; its target still names our tree's folder.
  return target.string().starts_with(tree.string()) || target.string().find("/share/anynpu") != std::string::npos;
}

bool Exists(const fs::path& place) {
  std::error_code error;
  return fs::exists(fs::symlink_status(place, error));
}

// Something in the vendor's folders that is not a link of ours: a CANN or driver that only lacks the places we would
// take, such as a toolkit without `latest`.
fs::path ForeignFile(const fs::path& tree, const fs::path& prefix) {
  for (const char* name : {"ascend-toolkit", "driver", "firmware", "nnae", "nnal", "nnrt"}) {
    std::error_code error;
    const auto skip = fs::directory_options::skip_permission_denied;
    for (const auto& entry : fs::recursive_directory_iterator(prefix / name, skip, error)) {
      if (entry.is_symlink(error) || !entry.is_directory(error)) {
        if (!IsOurs(entry.path(), tree)) return entry.path();
      }
    }
  }
  return {};
}

}  // namespace

std::vector<Link> LinksFor(const fs::path& tree) {
  std::vector<Link> links = {
      {"ascend-toolkit/latest", tree},
      {"ascend-toolkit/set_env.sh", tree / "set_env.sh"},
      {"cann", tree},
      {"latest", tree},
      {"driver/lib64/driver/libdcmi.so", tree / "lib64" / "libdcmi.so"},
      {"driver/lib64/driver/libascend_hal.so", tree / "lib64" / "libascend_hal.so"},
      {"driver/tools/npu-smi", tree / "bin" / "npu-smi"},
      {"driver/tools/hccn_tool", tree / "bin" / "hccn_tool"},
      {"driver/version.info", tree / "driver" / "version.info"},
  };
  std::erase_if(links, [](const Link& link) { return !Exists(link.to); });
  return links;
}

Status Install(const fs::path& tree, const fs::path& prefix) {
  const std::vector<Link> links = LinksFor(tree);
  auto taken = [&](const fs::path& place) {
    return Error(Code::kInvalidParam,
                 "anynpu install: {} exists and is not ours; a CANN or driver seems to be installed in {}.",
                 place.string(), prefix.string())
        .Remedy("Choose another --prefix; `anynpu run` needs no links at all.");
  };
  if (const fs::path foreign = ForeignFile(tree, prefix); !foreign.empty()) return taken(foreign);
  for (const Link& link : links) {
    const fs::path place = prefix / link.at;
    if (Exists(place) && !IsOurs(place, tree)) return taken(place);
    // A folder on the way that is a link leads into somebody else's installation.
    for (fs::path folder = place.parent_path(); folder != prefix && folder != folder.root_path();
         folder = folder.parent_path()) {
      std::error_code error;
      if (fs::is_symlink(folder, error)) {
        return Error(Code::kInvalidParam, "anynpu install: {} is a link into another installation.", folder.string())
            .Remedy("Choose another --prefix.");
      }
    }
  }
  try {
    for (const Link& link : links) {
      const fs::path place = prefix / link.at;
      fs::create_directories(place.parent_path());
      fs::remove(place);
      fs::create_symlink(link.to, place);
    }
  } catch (const fs::filesystem_error& e) {
    return Error(Code::kNoPermission, "anynpu install: {}", e.what()).Remedy("Choose a --prefix that you may write.");
  }
  return {};
}

Status Uninstall(const fs::path& tree, const fs::path& prefix) {
  std::error_code error;
  for (const Link& link : LinksFor(tree)) {
    const fs::path place = prefix / link.at;
    if (!IsOurs(place, tree)) continue;
    if (!fs::remove(place, error) || error) {
      return Error(Code::kNoPermission, "anynpu install --remove: {}: {}", place.string(), error.message())
          .Remedy("Run it as the user who installed the links.");
    }
    for (fs::path folder = place.parent_path(); folder != prefix && fs::is_empty(folder, error);
         folder = folder.parent_path()) {
      if (!fs::remove(folder, error)) break;
    }
  }
  return {};
}

}  // namespace npu::launch
