// Finds codes and known phrases in lines of a log: one automaton over all of them, so the time does not grow with the
// tables.
//
//   Matcher matcher;
//   matcher.Match("[ERROR] ... EI0006: Getting socket times out", hits);   // one hit for each code or phrase
//
// A phrase is text with * for "anything on this line", ^ for the line's begin and $ for its end; letters of both cases
// are alike.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tools/doctor/explain/knowledge.h"

namespace npu::doctor {

struct Hit {
  const Answer* answer;
  size_t begin, end;  // where in the line
};

class Matcher {
 public:
  Matcher();
  // Appends the hits of a line in their order; of hits that overlap only the longest stays.
  void Match(std::string_view line, std::vector<Hit>& hits) const;

 private:
  struct Wanted {
    const Answer* answer;
    std::string pattern;  // lower case; with the stars of a phrase
    bool code;
    size_t size;  // of the anchor, the piece that the automaton looks for
  };
  void Add(std::string anchor, Wanted wanted);
  void Build();
  bool Fits(const Wanted& wanted, std::string_view line, std::string_view lower, size_t begin, size_t end) const;

  static constexpr int kClasses = 64;
  std::array<uint8_t, 256> class_{};
  int classes_ = 1;
  std::vector<std::array<uint16_t, kClasses>> next_;
  std::vector<std::vector<uint16_t>> ends_;  // wanted things whose anchor ends in this state
  std::vector<uint16_t> fail_;
  std::vector<uint8_t> hit_;  // whether ends_ is not empty, small and dense
  std::vector<Wanted> wanted_;
};

}  // namespace npu::doctor
