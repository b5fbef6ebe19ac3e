#include "tools/check/report.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <exception>
#include <nlohmann/json.hpp>

namespace npu::check {
namespace {

constexpr size_t kLongestDetail = 600, kToldOfAPart = 20;
constexpr char kNoteMark = 'n';

std::string Field(std::string_view text) {
  std::string field(text.substr(0, kLongestDetail));
  for (char& c : field) {
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  }
  return field;
}

void WriteAll(int fd, const std::string& text) {
  for (size_t done = 0; done < text.size();) {
    const ssize_t n = ::write(fd, text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;
    done += static_cast<size_t>(n);
  }
}

// A line of the pipe: verdict, name and detail with tabs between.
void TakeLine(const std::string& line, Part* part) {
  const size_t first = line.find('\t'), second = line.find('\t', first + 1);
  if (first != 1 || second == std::string::npos) return;
  if (line[0] == kNoteMark) {
    part->note = line.substr(first + 1, second - first - 1);
    return;
  }
  const auto verdict = line[0] == 'p' ? Verdict::kPassed : line[0] == 'f' ? Verdict::kFailed : Verdict::kLeftOut;
  part->items.push_back({line.substr(first + 1, second - first - 1), verdict, line.substr(second + 1)});
}

std::string Ending(int status) {
  if (WIFSIGNALED(status))
    return fmt::format("it was ended by signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)));
  return fmt::format("it ended with status {}", WEXITSTATUS(status));
}

const char* Word(Verdict verdict) {
  return verdict == Verdict::kPassed ? "passed" : verdict == Verdict::kFailed ? "failed" : "left out";
}

}  // namespace

void Sink::Send(std::string_view name, Verdict verdict, std::string_view detail) {
  const char letter = verdict == Verdict::kPassed ? 'p' : verdict == Verdict::kFailed ? 'f' : 'l';
  WriteAll(fd_, fmt::format("{}\t{}\t{}\n", letter, Field(name), Field(detail)));
}

void Sink::Note(std::string_view note) { WriteAll(fd_, fmt::format("{}\t{}\t\n", kNoteMark, Field(note))); }

int Part::Count(Verdict verdict) const {
  int n = 0;
  for (const Item& item : items) n += item.verdict == verdict ? 1 : 0;
  return n;
}

Part RunPart(const std::string& name, std::chrono::seconds limit, const std::function<void(Sink&)>& body) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now(), end = start + limit;
  Part part{name, {}, {}, 0};
  int ends[2];
  if (pipe(ends) != 0) {
    part.items.push_back({name, Verdict::kFailed, fmt::format("no pipe: {}", std::strerror(errno))});
    return part;
  }
  const pid_t pid = fork();
  if (pid == 0) {
    close(ends[0]);
    Sink sink(ends[1]);
    try {
      body(sink);
    } catch (const std::exception& e) {
      sink.Failed(name, fmt::format("a fault of the check itself: {}", e.what()));
    }
    _exit(0);
  }
  close(ends[1]);
  if (pid < 0) part.items.push_back({name, Verdict::kFailed, fmt::format("no process: {}", std::strerror(errno))});
  std::string buffer;
  bool late = false;
  for (char chunk[4096]; pid > 0;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
    pollfd waiting{ends[0], POLLIN, 0};
    const int ready = left > 0 ? poll(&waiting, 1, static_cast<int>(left)) : 0;
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) {
      late = true;
      break;
    }
    const ssize_t n = read(ends[0], chunk, sizeof chunk);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    buffer.append(chunk, static_cast<size_t>(n));
    for (size_t at; (at = buffer.find('\n')) != std::string::npos; buffer.erase(0, at + 1))
      TakeLine(buffer.substr(0, at), &part);
  }
  close(ends[0]);
  if (pid > 0) {
    if (late) kill(pid, SIGKILL);
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    const std::string after = part.items.empty() ? "at its start" : "after \"" + part.items.back().name + "\"";
    if (late)
      part.items.push_back(
          {"the part ends", Verdict::kFailed, fmt::format("no end within {} s, {}", limit.count(), after)});
    else if (status != 0)
      part.items.push_back({"the part ends", Verdict::kFailed, fmt::format("{}, {}", Ending(status), after)});
  }
  part.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  return part;
}

int Score(const std::vector<Part>& parts) {
  int passed = 0, tried = 0;
  for (const Part& part : parts) {
    passed += part.Count(Verdict::kPassed);
    tried += part.Count(Verdict::kPassed) + part.Count(Verdict::kFailed);
  }
  return tried == 0 ? -1 : 100 * passed / tried;
}

std::string Table(const std::vector<Part>& parts) {
  std::string text =
      fmt::format("{:<12} {:>6} {:>6} {:>8} {:>7}  {}\n", "part", "passed", "failed", "left out", "seconds", "");
  for (const Part& part : parts) {
    text += fmt::format("{:<12} {:>6} {:>6} {:>8} {:>7.1f}  {}\n", part.name, part.Count(Verdict::kPassed),
                        part.Count(Verdict::kFailed), part.Count(Verdict::kLeftOut), part.seconds, part.note);
  }
  for (const Verdict verdict : {Verdict::kFailed, Verdict::kLeftOut}) {
    for (const Part& part : parts) {
      size_t told = 0;
      for (const Item& item : part.items) {
        if (item.verdict != verdict) continue;
        if (++told > kToldOfAPart) continue;
        text += fmt::format("{}: {}: {}: {}\n", Word(verdict), part.name, item.name, item.detail);
      }
      if (told > kToldOfAPart)
        text += fmt::format("{}: {}: and {} more (--json has all)\n", Word(verdict), part.name, told - kToldOfAPart);
    }
  }
  text += Score(parts) < 0 ? std::string("no score: nothing could be tried\n")
                           : fmt::format("score {} of 100\n", Score(parts));
  return text;
}

std::string Json(const std::vector<Part>& parts) {
  nlohmann::json all = nlohmann::json::array();
  for (const Part& part : parts) {
    nlohmann::json items = nlohmann::json::array();
    for (const Item& item : part.items)
      items.push_back({{"name", item.name}, {"verdict", Word(item.verdict)}, {"detail", item.detail}});
    all.push_back({{"part", part.name}, {"note", part.note}, {"seconds", part.seconds}, {"items", items}});
  }
  return nlohmann::json{{"score", Score(parts)}, {"parts", all}}.dump(2, ' ', false,
                                                                      nlohmann::json::error_handler_t::replace) +
         "\n";
}

}  // namespace npu::check
