#include "tools/doctor/explain/log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "tools/doctor/table.h"

namespace npu::doctor {
namespace {

constexpr size_t kChunk = 1 << 20;
constexpr size_t kLongestLine = 64 << 10;  // a longer line is read in pieces
constexpr size_t kShownLine = 300;
constexpr uint64_t kMessageLines = 40;  // how far the lines of one CANN message reach

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Lines that report something else than a failure. Levels are those of plog ([ERROR] MODULE(pid,...)) and of torch
// ([W1130 ...).
enum class Level { failure, warning, quiet };
Level LevelOf(std::string_view line) {
  const std::string_view head = line.substr(0, 80);
  for (std::string_view quiet : {"[INFO]", "[DEBUG]", "[EVENT]", "[TRACE]", " INFO ", "DEBUG ", "INFO:"}) {
    if (Contains(head, quiet)) return Level::quiet;
  }
  if (Contains(head, "[WARNING]") || Contains(head, "WARNING") || Contains(line.substr(0, 300), "Warning:"))
    return Level::warning;
  if (line.size() > 3 && line[0] == '[' && line[1] == 'W' && IsDigit(line[2])) return Level::warning;
  return Level::failure;
}

// "ValueError: ..." or "[rank3]: pkg.SomeError: ..." at the end of a traceback. The exceptions that only pass on what
// happened elsewhere are left to the phrases.
bool IsException(std::string_view line) {
  if (line.starts_with('[')) {
    const size_t end = line.find("]: ");
    if (end == line.npos) return false;
    line.remove_prefix(end + 3);
  }
  const size_t colon = line.find(": ");
  if (colon == line.npos || colon == 0 || colon > 80) return false;
  const std::string_view name = line.substr(0, colon);
  for (char c : name) {
    if (!isalnum(static_cast<unsigned char>(c)) && c != '.' && c != '_') return false;
  }
  if (!name.ends_with("Error") && !name.ends_with("Exception")) return false;
  for (std::string_view echo : {"DistBackendError", "DistStoreError", "DistNetworkError", "ChildFailedError",
                                "CalledProcessError", "ProcessExitedException", "ProcessRaisedException"}) {
    if (name.ends_with(echo)) return false;
  }
  return isupper(static_cast<unsigned char>(name[name.rfind('.') == name.npos ? 0 : name.rfind('.') + 1])) != 0;
}

bool Earlier(const Place& a, const Place& b) {
  if (a.file != b.file && !a.time.empty() && !b.time.empty() && a.time != b.time) return a.time < b.time;
  return a.order < b.order;
}

// Causes of numbers that stand before most texts of a library, whatever happened.
bool General(const Answer& answer) {
  for (std::string_view key : {"bad-argument", "runtime-internal", "op-internal", "driver-internal", "not-supported"}) {
    if (answer.cause->key == key) return true;
  }
  return false;
}

// What a program meets that goes on after a failed call: no context, handles that were never made. It is no root of the
// fault before it.
bool FollowsFromAFault(const Answer& answer) {
  for (std::string_view key : {"no-context", "bad-handle", "wrong-context"}) {
    if (answer.cause->key == key) return true;
  }
  return General(answer);
}

// On one line a phrase says more than the code that stands beside it, and a code with a cause of its own more than the
// number that begins the text of every refused argument.
bool Before(const Finding& a, const Finding& b) {
  if (a.first.file != b.first.file || a.first.line != b.first.line) return Earlier(a.first, b.first);
  if (a.kind != Kind::root && a.kind != Kind::fault) return false;
  if (a.answer->code.empty() != b.answer->code.empty()) return a.answer->code.empty();
  return !General(*a.answer) && General(*b.answer);
}

}  // namespace

std::string TimeOf(std::string_view line) {
  // 2026-11-30-14:00:01.123 (plog), 2026-11-30 14:00:01,123 and 2026-11-30T14:00:01.
  const size_t last = std::min<size_t>(line.size(), 200);
  for (size_t i = 0; i + 19 <= last; ++i) {
    if (line[i] != '2' || line[i + 4] != '-' || line[i + 7] != '-' || line[i + 13] != ':' || line[i + 16] != ':')
      continue;
    std::string digits;
    for (size_t k = i; k < std::min(line.size(), i + 27); ++k) {
      if (IsDigit(line[k]))
        digits += line[k];
      else if (k >= i + 19 && line[k] != '.' && line[k] != ',')
        break;
    }
    if (digits.size() < 14) continue;
    digits.resize(std::min<size_t>(digits.size(), 20));
    digits.append(20 - digits.size(), '0');
    return digits;
  }
  return {};
}

void LogReader::Note(const Answer* answer, Kind kind, std::string_view line) {
  Finding& finding = findings_[{answer, kind}];
  if (finding.count++ > 0 && file_ == finding.first.file) return;
  const bool first = finding.count == 1;
  Finding now{answer, kind, {file_, line_, time_, std::string(line.substr(0, kShownLine)), order_}, finding.count};
  if (first || Earlier(now.first, finding.first)) finding = now;
  if (kind == Kind::fault && (!fault_ || (file_ != fault_->first.file && Earlier(now.first, fault_->first)))) {
    fault_ = now;
    fault_root_.reset();
  } else if (kind == Kind::root && fault_ && !fault_root_ && file_ == fault_->first.file &&
             !FollowsFromAFault(*answer) && line_ <= fault_->first.line + kMessageLines) {
    fault_root_ = now;
  }
}

// "hcclCommInitRootInfoConfig ... error code is 9", "hcclRet -> 7", "HCCL function error: ..., error code is 6": small
// numbers that are HcclResult in such a line only.
void LogReader::NoteHcclResult(std::string_view line) {
  const std::string lower = Lower(line);
  if (!Contains(lower, "hccl")) return;
  for (std::string_view word : {"error code is", "hcclret", "errno", "error code:", "error", "ret"}) {
    const size_t at = lower.find(word);
    if (at == lower.npos) continue;
    size_t i = at + word.size();
    while (i < lower.size() && std::strchr(" ->:=[(", lower[i])) ++i;
    size_t end = i;
    while (end < lower.size() && IsDigit(lower[end])) ++end;
    if (end == i || end - i > 2 || (end < lower.size() && isalnum(static_cast<unsigned char>(lower[end])))) continue;
    const Answer* answer = Knowledge::Get().Find("hccl", std::string_view(lower).substr(i, end - i));
    // A result that was passed up: a code or phrase of the layer below says more, wherever it stands.
    if (answer) Note(answer, Kind::shell, line);
    return;
  }
}

void LogReader::ReadLine(std::string_view line) {
  ++line_;
  ++order_;
  while (!line.empty() && (line.back() == '\r' || line.back() == '\n')) line.remove_suffix(1);
  hits_.clear();
  matcher_.Match(line, hits_);
  const bool exception = hits_.empty() && IsException(line);
  const bool hccl = line.size() < 2000 && (Contains(line, "ccl") || Contains(line, "CCL"));
  if (hits_.empty() && !exception && !hccl) return;
  const Level level = LevelOf(line);
  if (level == Level::quiet) return;
  std::string time = TimeOf(line);
  if (!time.empty()) time_ = std::move(time);
  for (const Hit& hit : hits_) {
    Note(hit.answer, level == Level::warning ? Kind::note : hit.answer->cause->kind, line);
  }
  if (level != Level::failure) return;
  // A RuntimeError without a known word may be the first line of a CANN message whose codes follow.
  if (exception)
    Note(Knowledge::Get().exception(), Contains(line.substr(0, 40), "RuntimeError") ? Kind::fault : Kind::root, line);
  if (hccl) NoteHcclResult(line);
}

void LogReader::ReadDescriptor(int fd, const std::string& name) {
  file_ = name;
  time_.clear();
  line_ = 0;
  std::vector<char> buffer(kChunk + kLongestLine);
  size_t kept = 0;
  bool in_line = false;  // a piece of the current line has been read already
  for (;;) {
    const ssize_t got = read(fd, buffer.data() + kept, kChunk);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) errors_.push_back(fmt::format("{}: {}", name, std::strerror(errno)));
    if (got <= 0) break;
    bytes_ += static_cast<uint64_t>(got);
    std::string_view rest(buffer.data(), kept + static_cast<size_t>(got));
    for (size_t end; (end = rest.find('\n')) != rest.npos; rest.remove_prefix(end + 1)) {
      if (in_line) --line_;
      ReadLine(rest.substr(0, end));
      in_line = false;
    }
    while (rest.size() >= kLongestLine) {
      if (in_line) --line_;
      ReadLine(rest.substr(0, kLongestLine));
      rest.remove_prefix(kLongestLine);
      in_line = true;
    }
    kept = rest.size();
    std::memmove(buffer.data(), rest.data(), kept);
  }
  if (kept > 0) ReadLine({buffer.data(), kept});
}

bool LogReader::ReadFile(const std::string& path) {
  // O_NONBLOCK: a named pipe without a writer must not hold us.
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) {
    errors_.push_back(fmt::format("{}: {}", path, std::strerror(errno)));
    return false;
  }
  const size_t before = errors_.size();
  ReadDescriptor(fd, path);
  close(fd);
  return errors_.size() == before;
}

Verdict LogReader::Conclude() const {
  Verdict verdict;
  verdict.lines = order_;
  verdict.bytes = bytes_;
  std::array<const Finding*, 5> first{};
  for (const auto& [key, finding] : findings_) {
    const Finding*& best = first[static_cast<size_t>(finding.kind)];
    if (!best || Before(finding, *best)) best = &finding;
  }
  const auto at = [&](Kind kind) { return first[static_cast<size_t>(kind)]; };
  const Finding* cause = at(Kind::root);
  if (at(Kind::fault) && (!cause || Earlier(at(Kind::fault)->first, cause->first))) {
    cause = fault_root_ ? &*fault_root_ : at(Kind::fault);
  }
  for (Kind kind : {Kind::echo, Kind::shell, Kind::note}) {
    if (!cause) cause = at(kind);
  }
  // "Not supported" stands some lines above the text that says who does not support it. That it is this software and no
  // card changes what to do next.
  if (cause && cause->answer->cause->key == "not-supported") {
    for (const auto& [key, finding] : findings_) {
      if (finding.answer->cause->key == "simulator-gap" && finding.first.file == cause->first.file &&
          finding.first.line >= cause->first.line && finding.first.line <= cause->first.line + kMessageLines) {
        cause = &finding;
        break;
      }
    }
  }
  if (cause) verdict.cause = *cause;
  for (const auto& [key, finding] : findings_) {
    if (!cause || finding.answer != cause->answer)
      verdict.others.push_back(finding);
    else
      verdict.cause->count = std::max(verdict.cause->count, finding.count);
  }
  std::sort(verdict.others.begin(), verdict.others.end(),
            [](const Finding& a, const Finding& b) { return Earlier(a.first, b.first); });
  return verdict;
}

}  // namespace npu::doctor
