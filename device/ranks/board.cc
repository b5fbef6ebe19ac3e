#include "device/ranks/board.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <set>

#include "base/os/fd.h"
#include "base/os/process.h"
#include "device/machine/repair.h"

namespace npu::device::ranks {
namespace {

template <size_t N>
void Put(char (&to)[N], const std::string& from) {
  const size_t n = std::min(from.size(), N - 1);
  std::memcpy(to, from.data(), n);
  std::memset(to + n, 0, N - n);
}

template <size_t N>
std::string Text(const char (&from)[N]) {
  std::string text(from, ::strnlen(from, N));
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = '?';
  }
  return text;
}

struct Own {
  std::mutex mutex;
  os::ForkGuard guard;
  Board* board = nullptr;

  static Own& Get() {
    static auto* own = new Own;
    return *own;
  }
  // With the mutex held. A forked child makes a board of its own.
  Board* Ready() {
    if (guard.Forked()) {
      board = nullptr;
      guard.Reset();
    }
    if (board != nullptr) return board;
    Result<os::Fd> fd = os::MakeMemfd(kBoardLabel, sizeof(Board));
    if (!fd.ok()) return nullptr;
    void* memory = ::mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED, fd->get(), 0);
    if (memory == MAP_FAILED) return nullptr;
    board = static_cast<Board*>(memory);
    board->pid = ::getpid();
    board->comms = kMostComms;
    board->magic = kBoardMagic;
    static_cast<void>(fd->Release());  // stays open: that is how others find it
    return board;
  }
};

Seen Copy(const Board& board, const Show& show) {
  Seen seen;
  seen.pid = board.pid;
  seen.name = Text(show.name);
  seen.machine = Text(show.machine);
  seen.rank = show.rank;
  seen.size = std::min(show.size, kMostMembers);
  seen.card = show.card;
  for (int tries = 0; tries < 100; ++tries) {
    const uint32_t before = show.version.load(std::memory_order_acquire);
    std::memcpy(&seen.call, &show.call, sizeof seen.call);
    std::atomic_thread_fence(std::memory_order_acquire);
    if (before % 2 == 0 && show.version.load(std::memory_order_relaxed) == before) break;
  }
  seen.call.op[sizeof seen.call.op - 1] = seen.call.type[sizeof seen.call.type - 1] =
      seen.call.reduce[sizeof seen.call.reduce - 1] = 0;
  seen.issued = show.issued.load(std::memory_order_relaxed);
  seen.ended = show.ended.load(std::memory_order_relaxed);
  seen.bytes = show.bytes.load(std::memory_order_relaxed);
  seen.doing = static_cast<Doing>(show.doing.load(std::memory_order_acquire) % 4);
  if (seen.doing == kBroken) seen.why = Text(show.why);
  if (seen.doing == kWaits) {
    const uint64_t now = NowMs(), since = show.since_ms.load(std::memory_order_relaxed);
    seen.waits_ms = now > since ? now - since : 0;
    for (uint32_t r = 0; r < seen.size; ++r) {
      if ((show.waits_for[r / 64].load(std::memory_order_relaxed) >> (r % 64) & 1) != 0) seen.waits_for.push_back(r);
    }
  }
  for (uint32_t r = 0; r < seen.size; ++r) {
    Member member;
    std::memcpy(&member, &show.members[r], sizeof member);
    member.address[sizeof member.address - 1] = 0;
    seen.members.push_back(member);
  }
  return seen;
}

void ReadBoard(int fd, int32_t pid, std::vector<Seen>& all) {
  void* memory = ::mmap(nullptr, sizeof(Board), PROT_READ, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) return;
  const auto& board = *static_cast<const Board*>(memory);
  if (board.magic == kBoardMagic && board.pid == pid) {
    for (const Show& show : board.shows) {
      if (show.used.load(std::memory_order_acquire) != 1 || show.size == 0 || show.rank >= show.size) continue;
      all.push_back(Copy(board, show));
      all.back().process_state = StateOf(pid);
    }
  }
  ::munmap(memory, sizeof(Board));
}

}  // namespace

void Show::Issue(const Call& what) {
  const uint32_t v = version.load(std::memory_order_relaxed);
  version.store(v + 1, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
  call = what;
  version.store(v + 2, std::memory_order_release);
  issued.store(issued.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  if (doing.load(std::memory_order_relaxed) == kIdle) doing.store(kBusy, std::memory_order_relaxed);
}

void Show::End(uint64_t more_bytes) {
  bytes.fetch_add(more_bytes, std::memory_order_relaxed);
  const uint64_t done = ended.fetch_add(1, std::memory_order_relaxed) + 1;
  if (doing.load(std::memory_order_relaxed) != kBroken)
    doing.store(done >= issued.load(std::memory_order_relaxed) ? kIdle : kBusy, std::memory_order_relaxed);
}

void Show::Wait(std::span<const uint32_t> ranks, uint64_t since) {
  if (doing.load(std::memory_order_relaxed) == kBroken) return;
  uint64_t words[kMostMembers / 64] = {};
  for (const uint32_t r : ranks) {
    if (r < kMostMembers) words[r / 64] |= uint64_t{1} << (r % 64);
  }
  for (size_t i = 0; i < std::size(words); ++i) waits_for[i].store(words[i], std::memory_order_relaxed);
  since_ms.store(since, std::memory_order_relaxed);
  doing.store(kWaits, std::memory_order_release);
}

void Show::Break(const std::string& text) {
  Put(why, text);
  doing.store(kBroken, std::memory_order_release);
}

Show* Take(const About& about) {
  if (about.size > kMostMembers || about.members.size() < about.size) return nullptr;
  Own& own = Own::Get();
  const std::lock_guard lock(own.mutex);
  Board* board = own.Ready();
  if (board == nullptr) return nullptr;
  for (Show& show : board->shows) {
    if (show.used.load(std::memory_order_relaxed) != 0) continue;
    std::memset(static_cast<void*>(&show), 0, offsetof(Show, members));
    Put(show.name, about.name);
    Put(show.machine, about.machine);
    show.rank = about.rank;
    show.size = about.size;
    show.card = about.card;
    std::copy_n(about.members.begin(), about.size, show.members);
    show.used.store(1, std::memory_order_release);
    return &show;
  }
  return nullptr;
}

void Give(Show* show) {
  if (show != nullptr) show->used.store(0, std::memory_order_release);
}

char StateOf(int32_t pid) {
  char path[64], text[512];
  std::snprintf(path, sizeof path, "/proc/%d/stat", pid);
  const os::Fd fd(::open(path, O_RDONLY | O_CLOEXEC));
  const ssize_t n = fd ? ::read(fd.get(), text, sizeof text - 1) : -1;
  if (n <= 0) return 0;
  text[n] = 0;
  const char* at = std::strrchr(text, ')');
  return at != nullptr && at[1] == ' ' ? at[2] : 0;
}

std::vector<Seen> ReadAll() {
  std::vector<Seen> all;
  std::set<ino_t> known;
  const std::string wanted = std::string("/memfd:") + kBoardLabel;
  DIR* processes = ::opendir("/proc");
  if (processes == nullptr) return all;
  while (const dirent* entry = ::readdir(processes)) {
    const std::string pid = entry->d_name;
    if (pid.find_first_not_of("0123456789") != std::string::npos) continue;
    const std::string folder = "/proc/" + pid + "/fd";
    DIR* files = ::opendir(folder.c_str());
    if (files == nullptr) continue;
    while (const dirent* file = ::readdir(files)) {
      char target[64] = {};
      const std::string path = folder + "/" + file->d_name;
      if (::readlink(path.c_str(), target, sizeof target - 1) <= 0 || std::string(target).rfind(wanted, 0) != 0)
        continue;
      const os::Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
      struct stat info {};
      if (!fd || ::fstat(fd.get(), &info) != 0 || info.st_size != static_cast<off_t>(sizeof(Board))) continue;
      const auto number = static_cast<int32_t>(std::strtol(pid.c_str(), nullptr, 10));
      const size_t before = all.size();
      if (known.count(info.st_ino) == 0) ReadBoard(fd.get(), number, all);
      if (all.size() > before) known.insert(info.st_ino);
    }
    ::closedir(files);
  }
  ::closedir(processes);
  return all;
}

}  // namespace npu::device::ranks
