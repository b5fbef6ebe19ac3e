#include "tools/doctor/explain/matcher.h"

#include <algorithm>
#include <cstdlib>
#include <deque>

#include "tools/doctor/table.h"

namespace npu::doctor {
namespace {

bool IsWord(char c) { return isalnum(static_cast<unsigned char>(c)) || c == '_'; }

char LowerChar(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// A number is a code only in a line that speaks of a failure: logs are full of other six-digit numbers.
bool SpeaksOfFailure(std::string_view lower) {
  for (std::string_view word : {"err", "ret", "code", "fail", "except", "错误", "返回", "失败"}) {
    if (Contains(lower, word)) return true;
  }
  return false;
}

bool GlobFits(std::string_view pattern, std::string_view line) {
  const bool begins = pattern.starts_with('^'), ends = pattern.ends_with('$');
  if (begins) pattern.remove_prefix(1);
  if (ends) pattern.remove_suffix(1);
  size_t at = 0;
  const std::vector<std::string_view> pieces = Split(pattern, '*');
  for (size_t i = 0; i < pieces.size(); ++i) {
    size_t found = line.find(pieces[i], at);
    // A phrase begins with a word of its own: "UCE ERROR" is not in "HcclAllreduce error".
    while (i == 0 && found != line.npos && found > 0 && !pieces[0].empty() && IsWord(pieces[0][0]) &&
           IsWord(line[found - 1])) {
      found = line.find(pieces[0], found + 1);
    }
    if (found == line.npos || (i == 0 && begins && found != 0)) return false;
    at = found + pieces[i].size();
  }
  return !ends || Trim(line.substr(at)).empty();
}

}  // namespace

Matcher::Matcher() {
  next_.emplace_back();
  ends_.emplace_back();
  for (const Answer& answer : Knowledge::Get().answers()) {
    // Numbers of one or two digits mean nothing by themselves; "hccl ... error code is 7" is read in LogReader.
    if (answer.code.empty()) continue;  // a phrase
    if (answer.code.size() >= 5) Add(Lower(answer.code), {&answer, Lower(answer.code), true, answer.code.size()});
    if (answer.name != answer.code) Add(Lower(answer.name), {&answer, Lower(answer.name), true, answer.name.size()});
  }
  for (const Knowledge::Phrase& phrase : Knowledge::Get().phrases()) {
    std::string pattern = Lower(phrase.pattern);
    std::string_view anchor;
    for (std::string_view piece : Split(pattern, '*')) {
      if (piece.starts_with('^')) piece.remove_prefix(1);
      if (piece.ends_with('$')) piece.remove_suffix(1);
      if (piece.size() > anchor.size()) anchor = piece;
    }
    Add(std::string(anchor), {phrase.answer, pattern, false, anchor.size()});
  }
  Build();
}

void Matcher::Add(std::string anchor, Wanted wanted) {
  size_t state = 0;
  for (char c : anchor) {
    uint8_t& cls = class_[static_cast<uint8_t>(c)];
    if (cls == 0) {
      if (classes_ >= kClasses) std::abort();  // more different letters in the tables than kClasses
      cls = static_cast<uint8_t>(classes_++);
      if (c >= 'a' && c <= 'z') class_[static_cast<uint8_t>(c - 'a' + 'A')] = cls;
    }
    if (next_[state][cls] == 0) {
      if (next_.size() >= 65535) std::abort();  // a state has 16 bits
      next_[state][cls] = static_cast<uint16_t>(next_.size());
      next_.emplace_back();
      ends_.emplace_back();
    }
    state = next_[state][cls];
  }
  ends_[state].push_back(static_cast<uint16_t>(wanted_.size()));
  wanted_.push_back(std::move(wanted));
}

// Aho and Corasick: transitions of a state that has none of its own are those of the longest suffix that is a state
// too.
void Matcher::Build() {
  fail_.assign(next_.size(), 0);
  std::deque<uint16_t> todo;
  for (int c = 0; c < classes_; ++c) {
    if (next_[0][c]) todo.push_back(next_[0][c]);
  }
  while (!todo.empty()) {
    const uint16_t state = todo.front();
    todo.pop_front();
    const uint16_t suffix = fail_[state];
    ends_[state].insert(ends_[state].end(), ends_[suffix].begin(), ends_[suffix].end());
    for (int c = 0; c < classes_; ++c) {
      const uint16_t child = next_[state][c];
      if (child) {
        fail_[child] = next_[suffix][c];
        todo.push_back(child);
      } else {
        next_[state][c] = next_[suffix][c];
      }
    }
  }
  hit_.resize(next_.size());
  for (size_t i = 0; i < ends_.size(); ++i) hit_[i] = !ends_[i].empty();
}

bool Matcher::Fits(const Wanted& wanted, std::string_view line, std::string_view lower, size_t begin,
                   size_t end) const {
  if (!wanted.code) return GlobFits(wanted.pattern, lower);
  if (begin > 0 &&
      (IsWord(line[begin - 1]) || (line[begin - 1] == '-' && isdigit(static_cast<unsigned char>(line[begin])))))
    return false;
  if (end < line.size() && IsWord(line[end])) return false;
  const char first = wanted.pattern[0];
  if (first == '-') return Contains(lower, "dcmi") || Contains(lower, "npu-smi") || SpeaksOfFailure(lower);
  if (!isdigit(static_cast<unsigned char>(first))) return true;
  // 107002.5 and 107002,000 are quantities.
  if (end + 1 < line.size() && (line[end] == '.' || line[end] == ',') &&
      isdigit(static_cast<unsigned char>(line[end + 1])))
    return false;
  if (begin > 0 && line[begin - 1] == '.') return false;
  return SpeaksOfFailure(lower);
}

void Matcher::Match(std::string_view line, std::vector<Hit>& hits) const {
  uint16_t state = 0;
  std::string lower;  // made when the first anchor is met; most lines have none
  const size_t first = hits.size();
  for (size_t i = 0; i < line.size(); ++i) {
    state = next_[state][class_[static_cast<uint8_t>(line[i])]];
    if (!hit_[state]) continue;
    if (lower.empty()) {
      lower.assign(line);
      for (char& c : lower) c = LowerChar(c);
    }
    for (uint16_t index : ends_[state]) {
      const Wanted& wanted = wanted_[index];
      const size_t begin = i + 1 - wanted.size;
      if (Fits(wanted, line, lower, begin, i + 1)) hits.push_back({wanted.answer, begin, i + 1});
    }
  }
  // The longest wins where several overlap: "dcmi ... ret is -8005" over "-8005"; the phrase's anchor stands for all of
  // it.
  for (size_t i = first; i < hits.size(); ++i) {
    for (size_t k = first; k < hits.size(); ++k) {
      const bool inside = hits[k].begin <= hits[i].begin && hits[i].end <= hits[k].end;
      const bool longer = hits[k].end - hits[k].begin > hits[i].end - hits[i].begin;
      if (k != i && hits[k].answer && inside && (longer || (k < i && hits[k].answer == hits[i].answer))) {
        hits[i].answer = nullptr;
        break;
      }
    }
  }
  hits.erase(std::remove_if(hits.begin() + static_cast<std::ptrdiff_t>(first), hits.end(),
                            [](const Hit& hit) { return !hit.answer; }),
             hits.end());
}

}  // namespace npu::doctor
