#include "base/os/script_line.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <string_view>
#include <thread>
#include <utility>

#include "base/os/fd.h"

namespace npu::os {
namespace {

using ThreadState = void* (*)();
using Dump = void (*)(int, void*);

constexpr size_t kLongestListing = 64 << 10;

// `  File "train.py", line 41 in step` -> `train.py:41 in step`; empty for other lines.
std::string Readable(std::string_view line) {
  constexpr std::string_view kFile = "File \"", kLine = "\", line ";
  const size_t begin = line.find(kFile);
  if (begin == std::string_view::npos) return {};
  const size_t end = line.find(kLine, begin);
  if (end == std::string_view::npos) return {};
  const std::string_view file = line.substr(begin + kFile.size(), end - begin - kFile.size());
  return std::string(file) + ":" + std::string(line.substr(end + kLine.size()));
}

bool OfAPackage(std::string_view line) {
  for (const std::string_view part : {"/site-packages/", "/dist-packages/", "/lib/python", "<frozen "}) {
    if (line.find(part) != std::string_view::npos) return true;
  }
  return false;
}

// The main thread's state in the interpreter, and the process that it belongs to.
std::atomic<void*> main_state{nullptr};
std::atomic<pid_t> main_pid{0};

void* OwnState() {
  const auto state = reinterpret_cast<ThreadState>(dlsym(RTLD_DEFAULT, "PyGILState_GetThisThreadState"));
  return state == nullptr ? nullptr : state();
}

// torch names the threads of its backward passes.
bool InBackwardThread() {
  char name[16] = {};
  return prctl(PR_GET_NAME, name) == 0 && std::string_view(name).substr(0, 11) == "pt_autograd";
}

// Whether the main thread stands still: its frames are read only then.
bool MainThreadSleeps() {
  const Fd file(open("/proc/self/stat", O_RDONLY | O_CLOEXEC));
  char text[256] = {};
  if (!file || read(file.get(), text, sizeof text - 1) <= 0) return false;
  const char* state = std::strrchr(text, ')');
  return state != nullptr && state[1] == ' ' && state[2] == 'S';
}

// The main thread hands its backward pass over and then goes to sleep: on a busy machine the pass may be here first. A
// main thread that does something else will not sleep, so that only a few waits may be in vain.
bool MainThreadFallsAsleep() {
  constexpr int kMostInVain = 8;
  static std::atomic<int> in_vain{0};
  if (MainThreadSleeps()) return true;
  if (in_vain.load(std::memory_order_relaxed) >= kMostInVain) return false;
  for (int i = 0; i < 200; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (MainThreadSleeps()) return true;
  }
  in_vain.fetch_add(1, std::memory_order_relaxed);
  return false;
}

// What the interpreter writes about a thread; empty without one.
std::string Listing(void* state) {
  const auto dump = reinterpret_cast<Dump>(dlsym(RTLD_DEFAULT, "_Py_DumpTraceback"));
  if (state == nullptr || dump == nullptr) return {};
  const Fd file(memfd_create("anynpu-frames", MFD_CLOEXEC));
  if (!file) return {};
  dump(file.get(), state);
  std::string listing(kLongestListing, '\0');
  const ssize_t n = pread(file.get(), listing.data(), listing.size(), 0);
  listing.resize(n > 0 ? static_cast<size_t>(n) : 0);
  return listing;
}

// Calls `take(line, frame)` for each line of a listing that names a frame, until it returns false.
template <class Take>
void EachFrame(const std::string& listing, Take&& take) {
  for (size_t at = 0; at < listing.size();) {
    const size_t end = std::min(listing.find('\n', at), listing.size());
    const std::string_view line = std::string_view(listing).substr(at, end - at);
    at = end + 1;
    std::string frame = Readable(line);
    if (!frame.empty() && !take(line, std::move(frame))) return;
  }
}

}  // namespace

std::string LineOfInterest(const std::string& listing) {
  std::string first, found;
  EachFrame(listing, [&](std::string_view line, std::string frame) {
    if (first.empty()) first = frame;
    if (OfAPackage(line)) return true;
    found = std::move(frame);
    return false;
  });
  return found.empty() ? first : found;
}

std::vector<std::string> FramesOf(const std::string& listing, size_t most) {
  std::vector<std::string> frames;
  EachFrame(listing, [&](std::string_view, std::string frame) {
    if (frames.size() < most) frames.push_back(std::move(frame));
    return frames.size() < most;
  });
  return frames;
}

std::string ScriptLine() noexcept {
  try {
    std::string line = LineOfInterest(Listing(OwnState()));
    if (!line.empty() || main_pid.load(std::memory_order_acquire) != getpid() || !InBackwardThread() ||
        !MainThreadFallsAsleep())
      return line;
    const std::string waiting = Listing(main_state.load(std::memory_order_acquire));
    return waiting.find("backward") == waiting.npos ? line : LineOfInterest(waiting);
  } catch (...) {
    return {};
  }
}

void RememberMainThread() noexcept {
  const pid_t pid = getpid();
  if (main_pid.load(std::memory_order_relaxed) == pid || gettid() != pid) return;
  void* const state = OwnState();
  if (state == nullptr) return;
  main_state.store(state, std::memory_order_release);
  main_pid.store(pid, std::memory_order_release);
}

std::vector<std::string> ScriptFrames(size_t most) noexcept {
  try {
    return FramesOf(Listing(OwnState()), most);
  } catch (...) {
    return {};
  }
}

}  // namespace npu::os
