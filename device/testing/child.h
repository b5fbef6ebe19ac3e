// Real processes for tests: a forked child that runs a function, talks over a pipe and is ended by its own id.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>

namespace npu::testing {

class Child {
 public:
  // The child's end: words to the parent and from it.
  class Side {
   public:
    Side(int out, int in) : out_(out), in_(in) {}
    void Send(uint64_t word) {
      if (write(out_, &word, sizeof word) != sizeof word) _exit(99);
    }
    uint64_t Receive() {
      uint64_t word = 0;
      if (read(in_, &word, sizeof word) != sizeof word) _exit(98);
      return word;
    }

   private:
    int out_, in_;
  };

  explicit Child(const std::function<int(Side&)>& run) {
    int up[2], down[2];
    if (pipe(up) != 0 || pipe(down) != 0) std::abort();
    pid_ = fork();
    if (pid_ == 0) {
      close(up[0]);
      close(down[1]);
      Side side(up[1], down[0]);
      const int code = run(side);
      _exit(code);
    }
    close(up[1]);
    close(down[0]);
    from_ = up[0];
    to_ = down[1];
  }
  Child(const Child&) = delete;
  ~Child() {
    if (!reaped_) {
      Kill();
      Wait();
    }
    close(from_);
    close(to_);
  }

  pid_t pid() const { return pid_; }
  uint64_t Receive() {
    uint64_t word = 0;
    EXPECT_EQ(read(from_, &word, sizeof word), static_cast<ssize_t>(sizeof word)) << "the child ended early";
    return word;
  }
  void Send(uint64_t word) { EXPECT_EQ(write(to_, &word, sizeof word), static_cast<ssize_t>(sizeof word)); }
  // SIGKILL, and until it is dead; the zombie stays until Wait.
  // Returns when the process is dead, also in a process whose child it is not.
  void Kill() {
    const int fd = static_cast<int>(syscall(SYS_pidfd_open, pid_, 0));
    kill(pid_, SIGKILL);
    pollfd ended{fd, POLLIN, 0};
    poll(&ended, 1, /*milliseconds=*/10'000);
    close(fd);
  }
  // Exit code, or 1000 + signal.
  int Wait() {
    int status = 0;
    waitpid(pid_, &status, 0);
    reaped_ = true;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
  }
  // As Wait, but -1 while it still runs.
  int Poll() {
    int status = 0;
    if (waitpid(pid_, &status, WNOHANG) == 0) return -1;
    reaped_ = true;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
  }

 private:
  pid_t pid_ = -1;
  int from_ = -1, to_ = -1;
  bool reaped_ = false;
};

// Children of the caller live in a pid namespace of their own from here on. False without the right to make one.
inline bool NewPidNamespace() {
  if (unshare(CLONE_NEWPID) == 0) return true;
  const uid_t uid = geteuid();
  if (unshare(CLONE_NEWUSER | CLONE_NEWPID) != 0) return false;
  const std::string map = std::to_string(uid) + " " + std::to_string(uid) + " 1";
  const int fd = open("/proc/self/uid_map", O_WRONLY | O_CLOEXEC);
  const bool mapped = fd >= 0 && write(fd, map.data(), map.size()) == static_cast<ssize_t>(map.size());
  if (fd >= 0) close(fd);
  return mapped && geteuid() == uid;
}

// A directory of its own for the state files of one test.
class ScratchRuntimeDir {
 public:
  ScratchRuntimeDir() {
    char text[] = "/tmp/anynpu-test-XXXXXX";
    if (mkdtemp(text) == nullptr) std::abort();
    path_ = text;
    if (const char* old = std::getenv("XDG_RUNTIME_DIR")) old_ = old;
    setenv("XDG_RUNTIME_DIR", text, 1);
  }
  ~ScratchRuntimeDir() {
    if (old_.empty()) {
      unsetenv("XDG_RUNTIME_DIR");
    } else {
      setenv("XDG_RUNTIME_DIR", old_.c_str(), 1);
    }
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_, old_;
};

}  // namespace npu::testing
