#include "tools/launch/child.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace npu::launch {
namespace fs = std::filesystem;
namespace {

constexpr int kCannotStart = 126, kBySignal = 128;
std::atomic<pid_t> child{0};

void HandOn(int signal) {
  if (const pid_t pid = child.load(); pid > 0) kill(pid, signal);
}

}  // namespace

int RunChild(const char* name, const std::function<int()>& body) {
  const pid_t pid = fork();
  if (pid == 0) _exit(body());
  if (pid < 0) {
    fmt::print(stderr, "{}: no process can be started: {}\n", name, std::strerror(errno));
    return kCannotStart;
  }
  child.store(pid);
  struct sigaction action {};
  action.sa_handler = HandOn;
  sigaction(SIGTERM, &action, nullptr);
  sigaction(SIGHUP, &action, nullptr);
  action.sa_handler = SIG_IGN;  // a terminal gives these to the child as well
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGQUIT, &action, nullptr);
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : kBySignal + WTERMSIG(status);
}

Result<Folder> Folder::Make(const char* name) {
  std::error_code error;
  std::string pattern = (fs::temp_directory_path(error) / "anynpu-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) {
    return Error(Code::kInvalidFile, "{}: no folder can be made in {}: {}.", name,
                 fs::path(pattern).parent_path().string(), std::strerror(errno))
        .Remedy("Set TMPDIR to a folder that may be written.");
  }
  return Folder(pattern);
}

Folder::Folder(Folder&& other) noexcept : path_(std::exchange(other.path_, {})) {}

Folder::~Folder() {
  if (std::error_code error; !path_.empty()) fs::remove_all(path_, error);
}

}  // namespace npu::launch
