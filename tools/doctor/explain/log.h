// Reads logs of any size in constant memory and says which failure came first.
//
//   LogReader reader;
//   reader.ReadFile("train.log");                       // as often as wanted
//   Verdict verdict = reader.Conclude();
//
// Ranking (Kind in knowledge.h): the earliest root or fault is the cause; a root that stands within the same message
// block as the earliest fault (the next lines) is preferred to it, since it says why the card failed. Only when there
// is neither, the earliest echo, then the earliest shell. Lines of one file stand in their order; lines of several
// files are compared by their time stamps.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/doctor/explain/matcher.h"

namespace npu::doctor {

struct Place {
  std::string file;
  uint64_t line = 0;
  std::string time;    // digits of the last time stamp at or before the line; empty when there is none
  std::string text;    // the line, cut
  uint64_t order = 0;  // number of the line over all files
};

struct Finding {
  const Answer* answer = nullptr;
  Kind kind = Kind::note;
  Place first;
  uint64_t count = 0;
};

struct Verdict {
  std::optional<Finding> cause;
  std::vector<Finding> others;  // by their first place
  uint64_t lines = 0, bytes = 0;
};

class LogReader {
 public:
  // False when the file cannot be read; errors() says why.
  bool ReadFile(const std::string& path);
  void ReadDescriptor(int fd, const std::string& name);
  void ReadLine(std::string_view line);  // of the current file
  Verdict Conclude() const;
  const std::vector<std::string>& errors() const { return errors_; }

 private:
  void Note(const Answer* answer, Kind kind, std::string_view line);
  void NoteHcclResult(std::string_view line);

  Matcher matcher_;
  std::vector<Hit> hits_;
  std::map<std::pair<const Answer*, Kind>, Finding> findings_;  // as many as there are answers, whatever the log's size
  // The earliest fault, and the first root within its message block.
  std::optional<Finding> fault_, fault_root_;
  std::string file_, time_;
  uint64_t line_ = 0, order_ = 0, bytes_ = 0;
  std::vector<std::string> errors_;
};

// Digits of the first time stamp of a line, e.g. 20261130140001123; empty without one.
std::string TimeOf(std::string_view line);

}  // namespace npu::doctor
