#include "base/parity/parity.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>

#include "base/os/fd.h"
#include "base/os/process.h"
#include "base/os/script_line.h"

namespace npu::parity {
namespace {

constexpr size_t kMostFindings = 10'000;

Mode FromEnvironment() {
  const char* text = std::getenv("ANYNPU_PARITY");
  if (text == nullptr) return Mode::kOff;
  const std::string_view word(text);
  return word == "warn" ? Mode::kWarn : word == "refuse" ? Mode::kRefuse : Mode::kOff;
}

// A field of a line: no tabs and no line ends.
std::string Field(std::string_view text) {
  std::string field(text);
  for (char& c : field) {
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  }
  return field;
}

// What one process has found. A forked child begins anew: its parent tells what it found itself.
class Book {
 public:
  bool Forked() const { return fork_.Forked(); }

  // `kind` is "finding" or "doubt".
  void Add(std::string_view kind, const Finding& finding, int32_t code) {
    const std::string where = os::ScriptLine();
    std::string key = fmt::format("{}\t{}\t{}\t{}", kind, finding.call, finding.what, where);
    const std::lock_guard lock(mutex_);
    const auto known = counts_.find(key);
    if (known != counts_.end()) {
      ++known->second.times;
      return;
    }
    if (counts_.size() >= kMostFindings) {
      ++left_out_;
      return;
    }
    const size_t number = counts_.size() + 1;
    counts_.emplace(std::move(key), Counted{number, 1});
    if (Open()) {
      Append(fmt::format("{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\n", kind, number, Field(finding.rule), code,
                         Field(finding.call), Field(finding.what), Field(finding.change), Field(where),
                         Field(finding.source)));
    } else {
      fmt::print(stderr, "anynpu parity: {}{}{}: {} ({}). {}\n", where, where.empty() ? "" : ": ", finding.call,
                 finding.what, code, finding.change);
    }
  }

  void AddUnknown(std::string_view what, std::string_view call) {
    const std::lock_guard lock(mutex_);
    auto& calls = unknown_.try_emplace(std::string(what)).first->second;
    const auto known = calls.find(call);
    if (known != calls.end()) {
      ++known->second;
      return;
    }
    if (calls.size() >= kMostFindings) return;
    calls.emplace(call, 1);
    if (Open()) Append(fmt::format("unknown\t{}\t{}\n", Field(what), Field(call)));
  }

  void Look() { looked_.fetch_add(1, std::memory_order_relaxed); }

  // At the end of the process: how often each was met.
  void Close() {
    const std::lock_guard lock(mutex_);
    if (!Open()) return;
    std::string text = fmt::format("looked\t{}\n", looked_.load(std::memory_order_relaxed));
    for (const auto& [key, counted] : counts_) text += fmt::format("times\t{}\t{}\n", counted.number, counted.times);
    for (const auto& [what, calls] : unknown_) {
      for (const auto& [call, times] : calls)
        text += fmt::format("unknown_times\t{}\t{}\t{}\n", Field(what), Field(call), times);
    }
    if (left_out_ > 0) text += fmt::format("left_out\t{}\n", left_out_);
    Append(text);
  }

 private:
  struct Counted {
    size_t number;
    uint64_t times;
  };

  bool Open() {
    if (opened_) return static_cast<bool>(file_);
    opened_ = true;
    const char* folder = std::getenv("ANYNPU_PARITY_REPORT");
    if (folder == nullptr || *folder == 0) return false;
    const std::string path = fmt::format("{}/parity-{}.tsv", folder, getpid());
    file_.Reset(open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0640));
    return static_cast<bool>(file_);
  }
  void Append(const std::string& text) {
    [[maybe_unused]] const ssize_t written = ::write(file_.get(), text.data(), text.size());
  }

  std::mutex mutex_;
  os::ForkGuard fork_;
  bool opened_ = false;
  os::Fd file_;
  std::map<std::string, Counted> counts_;
  std::map<std::string, std::map<std::string, uint64_t, std::less<>>> unknown_;  // what, call, times
  std::atomic<uint64_t> looked_{0};
  uint64_t left_out_ = 0;
};

std::atomic<Book*> book{nullptr};

// Lives for ever: findings may come from exit handlers. A child leaves its parent's book, whose lock may be held.
Book& TheBook() {
  Book* known = book.load(std::memory_order_acquire);
  if (known != nullptr && !known->Forked()) return *known;
  auto* fresh = new Book;
  if (book.compare_exchange_strong(known, fresh, std::memory_order_acq_rel)) return *fresh;
  delete fresh;
  return *known;
}

// Written when the library's process ends.
struct AtExit {
  ~AtExit() {
    if (!On()) return;
    try {
      TheBook().Close();
    } catch (...) {
      // No memory while the process ends: the numbers of times are lost.
    }
  }
} at_exit;

}  // namespace

std::atomic<Mode> mode{FromEnvironment()};

namespace {
int32_t CodeOf(const Finding& finding) {
  if (finding.call.starts_with("Hccl")) return HcclCode(finding.code);
  return finding.call.starts_with("aclnn") ? NnCode(finding.code) : AclCode(finding.code);
}
}  // namespace

Status Judge(const Finding& finding) {
  TheBook().Add("finding", finding, CodeOf(finding));
  if (mode.load(std::memory_order_relaxed) == Mode::kWarn) return {};
  return Error(finding.code, "{}: {}", finding.call, finding.what)
      .Remedy("{} (parity mode: {}; anynpu run --parity=warn goes on)", finding.change, finding.source);
}

void Doubt(const Finding& finding) { TheBook().Add("doubt", finding, CodeOf(finding)); }
void Unknown(std::string_view what, std::string_view call) { TheBook().AddUnknown(what, call); }
void Looked() {
  os::RememberMainThread();
  TheBook().Look();
}

void Reload() {
  mode.store(FromEnvironment(), std::memory_order_relaxed);
  book.store(nullptr, std::memory_order_release);
}

}  // namespace npu::parity
