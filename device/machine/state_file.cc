#include "device/machine/state_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "base/log/log.h"
#include "base/os/fork.h"
#include "base/os/process.h"

namespace npu::device {
namespace {

using namespace std::chrono_literals;

Result<os::Fd> OpenDirectory(const std::string& path, bool create) {
  if (create && mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
    return Error(Code::kNoPermission, "The directory {} for the machine's state cannot be made: {}.", path,
                 std::strerror(errno))
        .Remedy("Set XDG_RUNTIME_DIR to a directory of yours that can be written.");
  }
  os::Fd fd(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd) {
    if (errno == ENOENT) return os::Fd();
    return Error(Code::kNoPermission, "The directory {} for the machine's state cannot be opened: {}.", path,
                 errno == ELOOP || errno == ENOTDIR ? "it is a link or no directory" : std::strerror(errno))
        .Remedy("Remove it, or set XDG_RUNTIME_DIR to a directory of yours.");
  }
  struct stat s {};
  if (fstat(fd.get(), &s) != 0 || s.st_uid != geteuid() || (s.st_mode & 0077) != 0) {
    return Error(Code::kNoPermission, "The directory {} for the machine's state belongs to user {} with mode {:o}.",
                 path, s.st_uid, s.st_mode & 07777)
        .Remedy("It must be yours with mode 700: remove it, or set XDG_RUNTIME_DIR.");
  }
  return fd;
}

template <size_t N>
bool Ended(const char (&text)[N]) {
  return std::memchr(text, 0, N) != nullptr;
}

struct flock SlotRange(uint32_t index, short type) {
  struct flock range {};
  range.l_type = type;
  range.l_whence = SEEK_SET;
  range.l_start = static_cast<off_t>(sizeof(StateLayout) + index);  // beyond the content: names a slot, guards no bytes
  range.l_len = 1;
  return range;
}

}  // namespace

Result<os::Fd> OpenStateDirectory(bool create, std::string* path) {
  if (const char* runtime = std::getenv("XDG_RUNTIME_DIR"); runtime != nullptr && runtime[0] == '/') {
    const std::string candidate = std::string(runtime) + "/anynpu";
    if (path != nullptr) *path = candidate;
    struct stat s {};
    // A stale variable (as after su) is passed over; a directory of ours that is wrong is an error.
    if (stat(runtime, &s) == 0 && s.st_uid == geteuid()) return OpenDirectory(candidate, create);
  }
  const std::string fallback = fmt::format("/tmp/anynpu-{}", geteuid());
  if (path != nullptr) *path = fallback;
  return OpenDirectory(fallback, create);
}

bool IsMachineName(std::string_view name) {
  return !name.empty() && name.size() <= 48 && name[0] != '.' &&
         std::all_of(name.begin(), name.end(), [](unsigned char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
                  c == '.';
         });
}

Status CheckHeader(const StateHeader& header, uint64_t file_bytes) {
  const auto bad = [](std::string_view what) {
    return Error(Code::kInvalidFile, "The machine's state file is not sound: {}.", what);
  };
  if (file_bytes != sizeof(StateLayout)) return bad("its size");
  if (header.magic != kStateMagic || header.version != kStateVersion) return bad("magic or version");
  if (header.bytes != sizeof(StateLayout)) return bad("recorded size");
  if (header.uid != geteuid()) return bad("user");
  if (header.cards < 1 || header.cards > kMaxCards) return bad("number of cards");
  if (header.hbm_bytes < (uint64_t{1} << 24) || header.hbm_bytes > (uint64_t{1} << 40)) return bad("memory of a card");
  if (header.system_bytes >= header.hbm_bytes) return bad("memory of the system");
  if (!Ended(header.soc) || !Ended(header.cann) || !Ended(header.driver)) return bad("a text without end");
  const Profile* profile = FindProfile(header.soc);
  if (profile == nullptr || profile->soc != header.soc) return bad("profile");
  for (const char* text : {header.cann, header.driver}) {
    const std::string_view view(text);
    if (view.empty() ||
        !std::all_of(view.begin(), view.end(), [](unsigned char c) { return c > ' ' && c < 127 && c != '/'; })) {
      return bad("a version");
    }
  }
  return {};
}

StateFile::~StateFile() {
  Unlock();
  if (layout_ != nullptr) munmap(layout_, sizeof(StateLayout));
  if (fd_) os::ForgetInChildren(fd_.get());
}

Result<std::unique_ptr<StateFile>> StateFile::Open(const std::string& name, Missing missing) {
  if (!IsMachineName(name)) {
    return Error(Code::kInvalidParam, "ANYNPU_MACHINE (or --machine) is {:?}.", name.substr(0, 60))
        .Remedy("Use at most 48 letters, digits, '-', '_' or '.'.");
  }
  std::unique_ptr<StateFile> file(new StateFile);
  NPU_ASSIGN(file->directory_, OpenStateDirectory(missing == Missing::kCreate, &file->path_));
  if (!file->directory_) return std::unique_ptr<StateFile>();
  // The layout's version is part of the name: libraries of different versions never meet in one file.
  file->file_name_ = fmt::format("{}.v{}", name, kStateVersion);
  file->path_ += "/" + file->file_name_;

  // Where processes come and go at once, a slow one may find the file taken away many times.
  const Deadline limit = Deadline::In(30s);
  do {
    const int create = missing == Missing::kCreate ? O_CREAT : 0;
    file->fd_.Reset(openat(file->directory_.get(), file->file_name_.c_str(),
                           O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | create, 0600));
    if (!file->fd_) {
      if (errno == ENOENT && create == 0) return std::unique_ptr<StateFile>();
      return Error(Code::kNoPermission, "The machine's state file {} cannot be opened: {}.", file->path_,
                   errno == ELOOP ? "it is a link" : std::strerror(errno))
          .Remedy("Remove it.");
    }
    struct stat s {};
    if (fstat(file->fd_.get(), &s) != 0 || !S_ISREG(s.st_mode) || s.st_uid != geteuid() || (s.st_mode & 0077) != 0) {
      return Error(Code::kNoPermission, "The machine's state file {} is not a plain file of yours with mode 600.",
                   file->path_)
          .Remedy("Remove it.");
    }
    NPU_TRY(file->Lock());
    // Its last process may have taken it away while we waited.
    struct stat named {};
    if (fstat(file->fd_.get(), &s) != 0 || s.st_nlink == 0 ||
        fstatat(file->directory_.get(), file->file_name_.c_str(), &named, AT_SYMLINK_NOFOLLOW) != 0 ||
        named.st_ino != s.st_ino) {
      file->Unlock();
      continue;
    }
    file->fresh_ = s.st_size == 0;
    if (file->fresh_ && ftruncate(file->fd_.get(), sizeof(StateLayout)) != 0) {
      return Error(Code::kBadAlloc, "The machine's state file {} cannot grow: {}.", file->path_, std::strerror(errno));
    }
    if (!file->fresh_ && s.st_size != static_cast<off_t>(sizeof(StateLayout))) {
      NPU_LOG(kWarning, "machine", "{} has {} bytes instead of {}: made anew", file->path_, s.st_size,
              sizeof(StateLayout));
      file->Remove();
      file->Unlock();
      continue;
    }
    NPU_TRY(file->Map());
    if (!file->fresh_ && file->layout_->header.magic == 0) file->fresh_ = true;  // its maker was killed
    if (!file->fresh_) {
      if (Status sound = CheckHeader(file->layout_->header, static_cast<uint64_t>(s.st_size)); !sound.ok()) {
        NPU_LOG(kWarning, "machine", "{}: {} It is made anew.", file->path_, sound.text());
        file->Remove();
        file->Unlock();
        munmap(file->layout_, sizeof(StateLayout));
        file->layout_ = nullptr;
        continue;
      }
    }
    os::CloseInChildren(file->fd_.get());
    return file;
  } while (!limit.passed());
  return Error(Code::kInternal, "The machine's state file {} was taken away again and again for 30 s.", file->path_)
      .Remedy("Something removes files there: set XDG_RUNTIME_DIR to a directory of yours.");
}

Status StateFile::Map() {
  void* at = mmap(nullptr, sizeof(StateLayout), PROT_READ | PROT_WRITE, MAP_SHARED, fd_.get(), 0);
  if (at == MAP_FAILED) {
    return Error(Code::kBadAlloc, "The machine's state file {} cannot be mapped: {}.", path_, std::strerror(errno));
  }
  layout_ = static_cast<StateLayout*>(at);
  return {};
}

Status StateFile::Lock() {
  const Deadline deadline = Deadline::In(10s);
  auto pause = 20us;
  while (flock(fd_.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) {
      return Error(Code::kInternal, "The machine's state file {} cannot be locked: {}.", path_, std::strerror(errno));
    }
    if (deadline.passed()) {
      return Error(Code::kInternal, "The machine's state file {} stayed locked for 10 s.", path_)
          .Remedy("A stopped process may hold it (see fuser {}): continue or end it.", path_);
    }
    std::this_thread::sleep_for(pause);
    pause = std::min<std::chrono::microseconds>(pause * 2, 2ms);
  }
  locked_ = true;
  return {};
}

void StateFile::Unlock() {
  if (locked_) flock(fd_.get(), LOCK_UN);
  locked_ = false;
}

void StateFile::Remove() { unlinkat(directory_.get(), file_name_.c_str(), 0); }

void StateFile::HoldSlot(uint32_t index) {
  struct flock range = SlotRange(index, F_WRLCK);
  if (fcntl(fd_.get(), F_OFD_SETLK, &range) == 0) held_ = index;
}

bool StateFile::SlotHeld(uint32_t index) const {
  if (index == held_) return true;  // our own lock is no obstacle to us, so the kernel would not name it
  struct flock range = SlotRange(index, F_WRLCK);
  return fcntl(fd_.get(), F_OFD_GETLK, &range) == 0 && range.l_type != F_UNLCK;
}

}  // namespace npu::device
