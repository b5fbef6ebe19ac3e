#include "tools/launch/devices.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>

namespace npu::launch {
namespace fs = std::filesystem;
namespace {

Status Failed(const char* what) {
  return Error(Code::kNotSupported, "anynpu: /dev/davinci* cannot be shown here: {}: {}.", what, std::strerror(errno))
      .Remedy("The program runs without them; user and mount namespaces are needed for --dev-nodes.");
}

bool Write(const char* path, const std::string& text) {
  const int fd = open(path, O_WRONLY | O_CLOEXEC);
  const bool written = fd >= 0 && write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  if (fd >= 0) close(fd);
  return written;
}

bool MakeFile(const fs::path& path) {
  const int fd = open(path.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (fd >= 0) close(fd);
  return fd >= 0;
}

// Every entry of the old /dev appears in `fresh`: links as links, all else bound.
bool BindEntries(const fs::path& fresh) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/dev", error)) {
    const fs::path target = fresh / entry.path().filename();
    if (entry.is_symlink()) {
      fs::copy_symlink(entry.path(), target, error);
      continue;
    }
    const bool made = entry.is_directory() ? fs::create_directory(target, error) : MakeFile(target);
    if (!made || mount(entry.path().c_str(), target.c_str(), nullptr, MS_BIND | MS_REC, nullptr) != 0) return false;
  }
  return !error;
}

}  // namespace

Status PrivateDev(int cards) {
  const uid_t uid = getuid();
  const gid_t gid = getgid();
  const bool root = geteuid() == 0;
  if (unshare(root ? CLONE_NEWNS : CLONE_NEWUSER | CLONE_NEWNS) != 0) return Failed("unshare");
  if (!root) {
    // The user stays who he is: ids map to themselves.
    Write("/proc/self/setgroups", "deny");
    if (!Write("/proc/self/uid_map", fmt::format("{0} {0} 1", uid)) ||
        !Write("/proc/self/gid_map", fmt::format("{0} {0} 1", gid))) {
      return Failed("writing the id maps");
    }
  }
  if (mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return Failed("making mounts private");
  std::string place = (fs::temp_directory_path() / "anynpu-dev-XXXXXX").string();
  if (!mkdtemp(place.data())) return Failed("a temporary folder");
  if (mount("anynpu", place.c_str(), "tmpfs", MS_NOSUID, "mode=0755,size=64k") != 0) {
    rmdir(place.c_str());
    return Failed("mounting a tmpfs");
  }
  bool done = BindEntries(place);
  for (int card = 0; done && card < cards; ++card) done = MakeFile(fs::path(place) / fmt::format("davinci{}", card));
  for (const char* name : {"davinci_manager", "devmm_svm", "hisi_hdc"}) done = done && MakeFile(fs::path(place) / name);
  if (!done || mount(place.c_str(), "/dev", nullptr, MS_MOVE, nullptr) != 0) {
    const Status failed = Failed("filling /dev");
    umount2(place.c_str(), MNT_DETACH);
    rmdir(place.c_str());
    return failed;
  }
  rmdir(place.c_str());
  return {};
}

}  // namespace npu::launch
