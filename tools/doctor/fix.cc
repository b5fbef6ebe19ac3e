#include "tools/doctor/fix.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "tools/doctor/observe/portrait.h"

namespace npu::doctor {
namespace fs = std::filesystem;
namespace {

constexpr const char* kFirstLine = "# Written by anynpu doctor --fix; source it.\n";
constexpr std::string_view kKept = ":$LD_LIBRARY_PATH";  // the one variable that a value may refer to

std::string Quoted(std::string_view value) {
  const bool keeps = value.ends_with(kKept);
  if (keeps) value.remove_suffix(kKept.size());
  std::string out = "'";
  for (char c : value) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  out += "'";
  return keeps ? out + "\"${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}\"" : out;
}

// A file of that name that is not ours, or a link to somewhere else, is left alone.
bool WriteScript(const fs::path& file, const std::string& text) {
  const std::string before = ReadText(file);
  std::error_code error;
  if (fs::exists(fs::symlink_status(file, error)) && (!before.starts_with(kFirstLine) || fs::is_symlink(file, error))) {
    fmt::print(stderr, "anynpu doctor: {} exists and was not written by doctor; it is left as it is.\n", file.string());
    return false;
  }
  const int fd = open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);
  const bool written = fd >= 0 && write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  if (!written) fmt::print(stderr, "anynpu doctor: {}: {}\n", file.string(), std::strerror(errno));
  if (fd >= 0) close(fd);
  return written;
}

}  // namespace

std::string FixScript(const std::vector<Found>& found) {
  std::string script;
  for (const Found& f : found) {
    std::string line;
    if (f.fix.kind == Fix::kSet) line = fmt::format("export {}={}\n", f.fix.name, Quoted(f.fix.value));
    if (f.fix.kind == Fix::kUnset) line = fmt::format("unset {}\n", f.fix.name);
    if (!line.empty() && script.find(line) == script.npos) script += line;
  }
  return script.empty() ? script : kFirstLine + script;
}

bool ApplyFixes(const std::vector<Found>& found, const fs::path& folder) {
  bool well = true, any = false;
  for (const Found& f : found) {
    if (f.fix.kind != Fix::kMakeFolder) continue;
    any = true;
    fmt::print("fix {}: mkdir -p {}\n", f.check->name, f.fix.name);
    std::fflush(stdout);
    std::error_code error;
    fs::create_directories(f.fix.name, error);
    if (error) {
      fmt::print(stderr, "anynpu doctor: {}: {}\n", f.fix.name, error.message());
      well = false;
    }
  }
  const std::string script = FixScript(found);
  if (!script.empty()) {
    any = true;
    const fs::path file = folder / kFixFile;
    fmt::print("fix: {} with\n{}", file.string(), script);
    std::fflush(stdout);
    if (WriteScript(file, script))
      fmt::print("now run: source {}\n", file.string());
    else
      well = false;
  }
  if (!any) fmt::print("fix: nothing that could be done without risk\n");
  return well;
}

}  // namespace npu::doctor
