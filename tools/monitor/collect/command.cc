#include "tools/monitor/collect/command.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "base/os/fd.h"

extern char** environ;

namespace npu::monitor {

Result<std::string> Output(const std::vector<std::string>& command, std::chrono::milliseconds limit, size_t most) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    return Error(Code::kResourceExhausted, "{}: no pipe: {}", command[0], std::strerror(errno));
  os::Fd from(ends[0]), to(ends[1]);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, to.get(), 1);
  posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
  std::vector<char*> argv, env;
  for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  static char kLocale[] = "LC_ALL=C";
  for (char** variable = environ; *variable != nullptr; ++variable) {
    if (std::strncmp(*variable, "LC_ALL=", 7) != 0) env.push_back(*variable);
  }
  env.push_back(kLocale);
  env.push_back(nullptr);
  pid_t pid = -1;
  const int error = posix_spawnp(&pid, argv[0], &actions, nullptr, argv.data(), env.data());
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return Error(Code::kInvalidParam, "{}: {}", command[0], std::strerror(error));
  to.Reset();

  std::string text;
  const auto until = std::chrono::steady_clock::now() + limit;
  bool late = false, whole = false;
  while (!late && !whole && text.size() < most) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    struct pollfd wait {
      from.get(), POLLIN, 0
    };
    if (left.count() <= 0 || poll(&wait, 1, static_cast<int>(left.count())) == 0) {
      late = true;
      break;
    }
    char part[4096];
    const ssize_t got = read(from.get(), part, sizeof part);
    if (got <= 0) {
      whole = got == 0;
      break;
    }
    text.append(part, static_cast<size_t>(got));
  }
  if (!whole) kill(pid, SIGKILL);
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (late) return Error(Code::kSyncTimeout, "{}: no answer in {} s", command[0], limit.count() / 1000);
  if (!whole) return Error(Code::kInvalidParam, "{}: more than {} bytes of output", command[0], most);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    return Error(Code::kNotSupported, "{}: ended with status {}", command[0],
                 WIFEXITED(status) ? WEXITSTATUS(status) : 128);
  }
  return text;
}

}  // namespace npu::monitor
