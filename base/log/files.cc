#include "base/log/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/log/log.h"

namespace npu::log {
namespace {

constexpr uint64_t kLargestFile = 20 << 20;
constexpr int kUsualFiles = 10, kMostFiles = 1000;

struct Folder {
  std::string path;
  bool asked = false;  // named by a variable of the log, so that its failure is worth a word
};

Folder RootFolder() {
  if (const char* path = std::getenv("ASCEND_PROCESS_LOG_PATH"); path != nullptr && *path != 0) return {path, true};
  if (const char* path = std::getenv("ASCEND_WORK_PATH"); path != nullptr && *path != 0)
    return {std::string(path) + "/log", true};
  if (const char* path = std::getenv("HOME"); path != nullptr && *path != 0)
    return {std::string(path) + "/ascend/log", false};
  return {};
}

size_t FilesKept() {
  const char* text = std::getenv("ASCEND_HOST_LOG_FILE_NUM");
  const long n = text == nullptr ? 0 : std::strtol(text, nullptr, 10);
  return static_cast<size_t>(n >= 1 && n <= kMostFiles ? n : kUsualFiles);
}

// 0, or the error number.
int MakeDirectories(const std::string& path) {
  int error = 0;
  for (size_t at = 1; at <= path.size(); ++at) {
    if (at == path.size() || path[at] == '/') error = mkdir(path.substr(0, at).c_str(), 0750) == 0 ? 0 : errno;
  }
  struct stat s {};
  if (stat(path.c_str(), &s) == 0) return S_ISDIR(s.st_mode) ? 0 : ENOTDIR;
  return error != 0 ? error : errno;
}

void TellOnce(const std::string& folder, int error) {
  static std::atomic<bool> told{false};
  if (told.exchange(true)) return;
  const std::string line = fmt::format(
      "anynpu: no log can be written below {}: {}. Its lines are lost; set ASCEND_PROCESS_LOG_PATH to a folder that "
      "may be "
      "written.\n",
      folder.size() > 200 ? folder.substr(0, 200) + "..." : folder, std::strerror(error));
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
}

// "20261130170511123": digits of the time.
std::string Stamp() {
  std::string digits;
  for (const char c : TimeText()) {
    if (c >= '0' && c <= '9') digits += c;
  }
  return digits.substr(0, 17);
}

}  // namespace

void Files::Open(bool make_default) {
  const Folder root = RootFolder();
  if (root.path.empty() || (!root.asked && !make_default)) return;
  opened_ = true;
  file_.Reset();
  bytes_ = 0;
  const std::string folder = fmt::format("{}/{}/plog", root.path, kind_);
  int error = MakeDirectories(folder);
  if (error == 0) {
    const std::string path = fmt::format("{}/plog-{}_{}.log", folder, getpid(), Stamp());
    file_.Reset(open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY, 0640));
    error = file_ ? 0 : errno;
    if (file_) {
      if (paths_.empty() || paths_.back() != path) paths_.push_back(path);
      for (const size_t kept = FilesKept(); paths_.size() > kept; paths_.pop_front()) unlink(paths_.front().c_str());
    }
  }
  if (error != 0 && root.asked) TellOnce(folder, error);
}

void Files::Write(const std::string& line, bool make_default) {
  const std::lock_guard lock(mutex_);
  if (!opened_ || bytes_ >= kLargestFile) Open(make_default);
  if (!file_) return;
  const ssize_t written = ::write(file_.get(), line.data(), line.size());
  if (written > 0) bytes_ += static_cast<uint64_t>(written);
}

void Files::Close() {
  const std::lock_guard lock(mutex_);
  opened_ = false;
  file_.Reset();
  paths_.clear();
}

std::string Files::Path() {
  const std::lock_guard lock(mutex_);
  if (file_ && !paths_.empty()) return paths_.back();
  const Folder root = RootFolder();
  return root.path.empty() ? std::string() : fmt::format("{}/{}/plog", root.path, kind_);
}

}  // namespace npu::log
