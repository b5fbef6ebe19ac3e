// Who is ordered behind whom, and which bytes were last used by whom: a race is two uses of one byte, one of them a
// write, by two lines of which neither is ordered behind the other.
//
// Line 0 is the host. Not thread-safe: the checker's lock guards it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "device/strict/strict.h"

namespace npu::strict {

using Clock = std::vector<uint32_t>;

// One use, as a later report tells it.
struct Mark {
  uint32_t line = 0, time = 0;
  int stream = -1, card = -1;
  bool writes = false;
  std::string_view call, param;
};

class Order {
 public:
  Order() : lines_(1) {}
  uint32_t NewLine();
  void GiveLine(uint32_t line);
  // The line's next moment, behind everything the host has seen.
  uint32_t Step(uint32_t line);
  Stamp Now(uint32_t line) const { return std::make_shared<const Clock>(lines_[line].clock); }
  void Join(uint32_t line, const Clock& other);
  void JoinAll(uint32_t line);  // behind everything that has been given to any line
  void Blind(uint32_t line) { lines_[line].blind = true; }
  void See(uint32_t line);  // the host waits for the line

  // A use of [begin, end). What it races with, if anything.
  std::optional<Mark> Touch(uintptr_t begin, uintptr_t end, const Mark& mark);
  // The first use of the range that the host has not seen.
  std::optional<Mark> Pending(uintptr_t begin, uintptr_t end) const;
  void Forget(uintptr_t begin, uintptr_t end);
  size_t cells() const { return cells_.size(); }

 private:
  struct LineState {
    Clock clock;
    bool blind = false;
  };
  struct Cell {
    uintptr_t end = 0;
    Mark write;               // line kNone: never
    std::vector<Mark> reads;  // since the write, one for each line
  };
  static constexpr uint32_t kNone = ~uint32_t{0};
  static uint32_t At(const Clock& clock, uint32_t line) { return line < clock.size() ? clock[line] : 0; }
  bool Ordered(const Mark& before, uint32_t line) const;
  void SplitAt(uintptr_t at);

  std::vector<LineState> lines_;
  std::vector<uint32_t> spare_;
  std::map<uintptr_t, Cell> cells_;
};

}  // namespace npu::strict
