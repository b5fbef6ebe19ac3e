#include "tools/doctor/observe/run.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>

namespace npu::doctor {
namespace {

constexpr size_t kMostOutput = 1 << 20;
constexpr int kNoProgram = 127, kAfterKillMs = 2000;

// Reads until the child closes its end or the limit is over, then ends the child's group and takes its status.
Ran Collect(pid_t child, int fd, int limit_ms) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::milliseconds(limit_ms);
  Ran ran;
  ran.started = true;
  char buffer[8192];
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
    pollfd wait{fd, POLLIN, 0};
    const int ready = left > 0 ? poll(&wait, 1, static_cast<int>(left)) : 0;
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) {
      ran.timed_out = true;
      break;
    }
    const ssize_t got = read(fd, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    if (ran.out.size() < kMostOutput) ran.out.append(buffer, static_cast<size_t>(got));
  }
  close(fd);
  // A child may close its output and go on, and one that hangs in a driver does not even end by a signal.
  int status = 0;
  pid_t ended = 0;
  for (auto killed = Clock::time_point::max(); ended == 0;) {
    ended = waitpid(child, &status, WNOHANG);
    if (ended < 0 && errno == EINTR) ended = 0;
    if (ended != 0) break;
    const auto now = Clock::now();
    if (killed == Clock::time_point::max() && (ran.timed_out || now >= end)) {
      ran.timed_out = true;
      kill(-child, SIGKILL);
      killed = now;
    }
    if (killed != Clock::time_point::max() && now - killed > std::chrono::milliseconds(kAfterKillMs)) break;
    poll(nullptr, 0, 5);
  }
  if (ended <= 0) return ran;
  if (WIFEXITED(status)) ran.code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) ran.signal = WTERMSIG(status);
  if (ran.code == kNoProgram && ran.out.empty()) ran.started = false;
  return ran;
}

Ran Fork(const std::function<void(int)>& body, int limit_ms) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return {};
  const pid_t child = fork();
  if (child < 0) {
    close(ends[0]);
    close(ends[1]);
    return {};
  }
  if (child == 0) {
    setpgid(0, 0);  // so that what it starts ends with it
    body(ends[1]);
    _exit(kNoProgram);
  }
  setpgid(child, child);
  close(ends[1]);
  return Collect(child, ends[0], limit_ms);
}

void Silence(int fd) {
  const int null = open("/dev/null", O_RDWR);
  if (null >= 0) dup2(null, fd);
}

}  // namespace

Ran RunProgram(const std::vector<std::string>& command, int limit_ms) {
  return Fork(
      [&](int out) {
        Silence(STDIN_FILENO);
        Silence(STDERR_FILENO);
        dup2(out, STDOUT_FILENO);
        std::vector<char*> argv;
        for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
        argv.push_back(nullptr);
        setenv("LC_ALL", "C", 1);
        execvp(argv[0], argv.data());
      },
      limit_ms);
}

Ran RunInChild(const std::function<std::string()>& function, int limit_ms) {
  return Fork(
      [&](int out) {
        Silence(STDIN_FILENO);
        Silence(STDOUT_FILENO);
        Silence(STDERR_FILENO);
        const std::string text = function();
        for (size_t done = 0; done < text.size();) {
          const ssize_t wrote = write(out, text.data() + done, text.size() - done);
          if (wrote <= 0) break;
          done += static_cast<size_t>(wrote);
        }
        _exit(0);
      },
      limit_ms);
}

}  // namespace npu::doctor
