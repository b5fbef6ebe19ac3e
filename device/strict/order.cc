#include "device/strict/order.h"

#include <algorithm>

namespace npu::strict {

uint32_t Order::NewLine() {
  if (!spare_.empty()) {
    const uint32_t line = spare_.back();
    spare_.pop_back();
    return line;
  }
  lines_.emplace_back();
  return static_cast<uint32_t>(lines_.size() - 1);
}

// Its number serves another stream, whose work counts as ordered behind that of this one.
void Order::GiveLine(uint32_t line) { spare_.push_back(line); }

void Order::Join(uint32_t line, const Clock& other) {
  Clock& clock = lines_[line].clock;
  if (clock.size() < other.size()) clock.resize(other.size());
  for (size_t i = 0; i < other.size(); ++i) clock[i] = std::max(clock[i], other[i]);
}

void Order::JoinAll(uint32_t line) {
  for (uint32_t other = 0; other < lines_.size(); ++other) {
    if (other != line) Join(line, lines_[other].clock);
  }
}

uint32_t Order::Step(uint32_t line) {
  if (line != 0) Join(line, lines_[0].clock);
  Clock& clock = lines_[line].clock;
  if (clock.size() <= line) clock.resize(line + 1);
  return ++clock[line];
}

void Order::See(uint32_t line) {
  Join(0, lines_[line].clock);
  lines_[line].blind = false;
}

bool Order::Ordered(const Mark& before, uint32_t line) const {
  return before.line == kNone || before.line == line || before.time <= At(lines_[line].clock, before.line) ||
         lines_[before.line].blind || lines_[line].blind;
}

void Order::SplitAt(uintptr_t at) {
  auto next = cells_.upper_bound(at);
  if (next == cells_.begin()) return;
  auto cell = std::prev(next);
  if (cell->first >= at || cell->second.end <= at) return;
  Cell right = cell->second;
  cell->second.end = at;
  cells_.emplace_hint(next, at, std::move(right));
}

std::optional<Mark> Order::Touch(uintptr_t begin, uintptr_t end, const Mark& mark) {
  std::optional<Mark> race;
  if (begin >= end) return race;
  // The common case first: exactly one cell.
  auto first = cells_.lower_bound(begin);
  if (first == cells_.end() || first->first != begin || first->second.end != end) {
    SplitAt(begin);
    SplitAt(end);
    first = cells_.lower_bound(begin);
  }
  const auto look = [&](const Cell& cell) {
    if (race) return;
    if (!Ordered(cell.write, mark.line)) race = cell.write;
    if (!mark.writes) return;
    for (const Mark& read : cell.reads) {
      if (!race && !Ordered(read, mark.line)) race = read;
    }
  };
  if (mark.writes) {
    auto at = first;
    for (; at != cells_.end() && at->first < end; ++at) look(at->second);
    if (first != at && first->first == begin) {
      cells_.erase(std::next(first), at);
      first->second.end = end;
      first->second.write = mark;
      first->second.reads.clear();
    } else {
      at = cells_.erase(first, at);
      cells_.emplace_hint(at, begin, Cell{end, mark, {}});
    }
    return race;
  }
  uintptr_t here = begin;
  for (auto at = first; here < end; ++at) {
    if (at == cells_.end() || at->first > here) {  // nobody was here before
      const uintptr_t until = at == cells_.end() ? end : std::min(end, at->first);
      Cell cell;
      cell.end = until;
      cell.write.line = kNone;
      cell.reads.push_back(mark);
      at = cells_.emplace_hint(at, here, std::move(cell));
      here = until;
      continue;
    }
    look(at->second);
    auto& reads = at->second.reads;
    std::erase_if(reads, [&](const Mark& read) { return Ordered(read, mark.line) && !lines_[read.line].blind; });
    reads.push_back(mark);
    here = at->second.end;
  }
  return race;
}

std::optional<Mark> Order::Pending(uintptr_t begin, uintptr_t end) const {
  auto at = cells_.upper_bound(begin);
  if (at != cells_.begin() && std::prev(at)->second.end > begin) --at;
  for (; at != cells_.end() && at->first < end; ++at) {
    if (!Ordered(at->second.write, 0)) return at->second.write;
    for (const Mark& read : at->second.reads) {
      if (!Ordered(read, 0)) return read;
    }
  }
  return std::nullopt;
}

void Order::Forget(uintptr_t begin, uintptr_t end) {
  SplitAt(begin);
  SplitAt(end);
  cells_.erase(cells_.lower_bound(begin), cells_.lower_bound(end));
}

}  // namespace npu::strict
