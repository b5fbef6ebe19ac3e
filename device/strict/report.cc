#include "device/strict/report.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <unordered_map>

#include "base/os/script_line.h"

namespace npu::strict {
namespace {

constexpr uint64_t kMostTold = 100;  // places; what comes after is counted

struct State {
  std::mutex mutex;
  std::unordered_map<size_t, uint64_t> places;  // how often
  std::atomic<uint64_t> told{0};
  std::atomic<bool> warn{false};
};
State& state() {
  static auto* s = new State;
  return *s;
}

// Where findings go: the standard error, or the end of the file that ANYNPU_STRICT_LOG names.
int Output() {
  static const int output = [] {
    const char* file = std::getenv("ANYNPU_STRICT_LOG");
    const int opened = file == nullptr || *file == 0 ? -1 : open(file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    return opened >= 0 ? opened : STDERR_FILENO;
  }();
  return output;
}

void Write(const std::string& text) {
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t n = write(Output(), text.data() + done, text.size() - done);
    if (n <= 0) return;
    done += static_cast<size_t>(n);
  }
}

void TellAt(const Finding& finding, const std::string& where, size_t place) {
  State& s = state();
  uint64_t number = 0;
  {
    const std::lock_guard lock(s.mutex);
    number = s.told.fetch_add(1, std::memory_order_relaxed) + 1;
    if (s.places[place]++ != 0 || s.places.size() > kMostTold) return;
  }
  Write(fmt::format("anynpu strict: finding {}: {}\n    {}\n{}{}    remedy: {}\n", number, finding.kind, finding.what, finding.more, where,
                    finding.remedy));
}

size_t Mix(size_t a, size_t b) { return a * 1099511628211ull + b; }

}  // namespace

void Tell(const Finding& finding) {
  const Stack stack = Stack::Here();
  std::string where;
  size_t place = Mix(std::hash<std::string_view>{}(finding.kind), std::hash<std::string_view>{}(finding.call));
  for (const std::string& frame : os::ScriptFrames(6)) {
    where += fmt::format("        {}\n", frame);
    place = Mix(place, std::hash<std::string>{}(frame));
  }
  if (!where.empty()) where = "    here, in Python:\n" + where;
  if (where.empty()) {
    where = "    here:\n" + stack.Tell("        ");
    place = Mix(place, reinterpret_cast<size_t>(stack.Caller()));
  }
  TellAt(finding, where, place);
}

void TellBare(const Finding& finding) {
  TellAt(finding, "", Mix(std::hash<std::string_view>{}(finding.kind), std::hash<std::string_view>{}(finding.call)));
}

void TellLast(const Finding& finding) { TellAt(finding, "", std::hash<std::string>{}(finding.what + finding.more)); }

uint64_t Told() { return state().told.load(std::memory_order_relaxed); }
bool WarnOnly() { return state().warn.load(std::memory_order_relaxed); }
void SetWarnOnly(bool warn) { state().warn.store(warn, std::memory_order_relaxed); }

}  // namespace npu::strict
