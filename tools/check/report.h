// What a self-test found, and how it is told.
//
// Each part of the test runs in a child process with a limit, so that a library that crashes or hangs is a finding and
// not the end. A part hands its items to the parent as lines through a pipe; the score is the share of items that
// passed, of those that could be tried.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace npu::check {

enum class Verdict { kPassed, kFailed, kLeftOut };

struct Item {
  std::string name;
  Verdict verdict = Verdict::kPassed;
  std::string detail;  // why it failed or was left out
};

// Where a part writes what it finds; every item is sent at once.
class Sink {
 public:
  explicit Sink(int fd) : fd_(fd) {}
  void Passed(std::string_view name) { Send(name, Verdict::kPassed, {}); }
  void Failed(std::string_view name, std::string_view why) { Send(name, Verdict::kFailed, why); }
  void LeftOut(std::string_view name, std::string_view why) { Send(name, Verdict::kLeftOut, why); }
  // A word for the part's line of the report: "2 x Ascend910B4".
  void Note(std::string_view note);

 private:
  void Send(std::string_view name, Verdict verdict, std::string_view detail);
  const int fd_;
};

struct Part {
  std::string name, note;
  std::vector<Item> items;
  double seconds = 0;
  int Count(Verdict verdict) const;
};

// Runs `body` in a child; what the child does not live to say becomes a failed item.
Part RunPart(const std::string& name, std::chrono::seconds limit, const std::function<void(Sink&)>& body);

// 0 to 100, rounded down: 100 only when everything that was tried passed. -1 when nothing was tried.
int Score(const std::vector<Part>& parts);
std::string Table(const std::vector<Part>& parts);
std::string Json(const std::vector<Part>& parts);

}  // namespace npu::check
