#include "tools/launch/tree.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <functional>
#include <sstream>

namespace npu::launch {
namespace fs = std::filesystem;
namespace {

bool IsTree(const fs::path& path) {
  std::error_code error;
  return fs::exists(path / "lib64" / "libascendcl.so", error);
}

// Files that name the version: share/info/*/version.info, ascend_toolkit_install.info and their like.
bool NamesVersion(const fs::path& file) {
  const std::string name = file.filename();
  return name == "version.info" || name == "version.cfg" ||
         (name.starts_with("ascend_") && name.ends_with("_install.info"));
}

bool HoldsVersionFile(const fs::path& folder) {
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (NamesVersion(entry.path())) return true;
  }
  return false;
}

void CopyWithVersion(const fs::path& from, const fs::path& to, std::string_view old_version, std::string_view version) {
  std::stringstream text;
  text << std::ifstream(from).rdbuf();
  std::string content = text.str();
  for (size_t at = 0; (at = content.find(old_version, at)) != std::string::npos; at += version.size()) {
    content.replace(at, old_version.size(), version);
  }
  std::ofstream(to) << content;
}

void LayLinks(const fs::path& from, const fs::path& to, std::string_view old_version, std::string_view version) {
  fs::create_directories(to);
  for (const auto& entry : fs::directory_iterator(from)) {
    const fs::path target = to / entry.path().filename();
    if (entry.is_directory() && !entry.is_symlink() && HoldsVersionFile(entry.path())) {
      LayLinks(entry.path(), target, old_version, version);
    } else if (NamesVersion(entry.path())) {
      CopyWithVersion(entry.path(), target, old_version, version);
    } else {
      fs::create_symlink(entry.path(), target);
    }
  }
}

}  // namespace

Result<fs::path> FindTree(const fs::path& program) {
  const fs::path prefix = program.parent_path().parent_path();
  for (const fs::path& candidate : {prefix, prefix / "share" / "anynpu"}) {
    if (IsTree(candidate)) return candidate;
  }
  return Error(Code::kInvalidFile,
               "anynpu: no install tree beside {} (looked for lib64/libascendcl.so in {} and {}/share/anynpu).",
               program.string(), prefix.string(), prefix.string())
      .Remedy("Install the package again: pip install --force-reinstall anynpu.");
}

Result<fs::path> FindTree() {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (error)
    return Error(Code::kInvalidFile, "anynpu: /proc is not mounted, so the program cannot find its libraries.")
        .Remedy("Mount /proc.");
  return FindTree(program);
}

Result<fs::path> CacheFolder() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  const fs::path base = cache && *cache ? fs::path(cache) : home && *home ? fs::path(home) / ".cache" : fs::path();
  std::error_code error;
  if (!base.empty()) fs::create_directories(base / "anynpu", error);
  if (base.empty() || error) {
    return Error(Code::kInvalidFile, "anynpu: there is no cache folder: {}.",
                 base.empty() ? "HOME is not set" : error.message())
        .Remedy("Point XDG_CACHE_HOME to a folder that you may write.");
  }
  return base / "anynpu";
}

namespace {

// A folder in the cache that `fill` makes once for this form of `from`; an installation made anew gets another.
Result<fs::path> FormOf(const fs::path& from, const std::string& form, const fs::path& cache, const std::function<void(const fs::path&)>& fill) {
  try {
    const auto time = fs::last_write_time(from).time_since_epoch().count();
    const size_t key = std::hash<std::string>{}(fmt::format("{}:{}", from.string(), time));
    const fs::path home = cache / fmt::format("{}-{:016x}", form, key);
    if (fs::exists(home)) return home;
    const fs::path fresh = cache / fmt::format(".new-{}-{}", getpid(), form);
    fs::remove_all(fresh);
    fill(fresh);
    std::error_code lost_race;
    fs::rename(fresh, home, lost_race);
    if (lost_race) fs::remove_all(fresh);
    return home;
  } catch (const fs::filesystem_error& e) {
    return Error(Code::kInvalidFile, "anynpu: the folder {} cannot be made: {}", form, e.what())
        .Remedy("Point XDG_CACHE_HOME to a folder that you may write.");
  }
}

}  // namespace

Result<fs::path> HomeFor(const fs::path& tree, std::string_view made_with, std::string_view version,
                         const fs::path& cache) {
  if (version == made_with) return tree;
  return FormOf(tree, fmt::format("cann-{}", version), cache, [&](const fs::path& fresh) { LayLinks(tree, fresh, made_with, version); });
}

Result<fs::path> HomeWithoutDriver(const fs::path& home, const fs::path& cache) {
  return FormOf(home, "no-driver", cache, [&](const fs::path& fresh) {
    fs::create_directories(fresh / "lib64");
    for (const auto& entry : fs::directory_iterator(home)) {
      if (entry.path().filename() != "lib64") fs::create_symlink(entry.path(), fresh / entry.path().filename());
    }
    for (const auto& entry : fs::directory_iterator(home / "lib64")) {
      if (entry.path().filename() != "libascend_hal.so") fs::create_symlink(entry.path(), fresh / "lib64" / entry.path().filename());
    }
  });
}

}  // namespace npu::launch
