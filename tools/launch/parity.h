// `anynpu run --parity`: the command as a child whose libraries refuse, or list, what the chosen card refuses, and the
// report of all its processes afterwards.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace npu::launch {

struct ParityFinding {
  std::string rule, code, call, what, change, where, source;
  unsigned long long times = 1;
  bool at_least = false;  // a process ended before it could say how often
};

// Something that is not known of calls: a rule of abi/parity.tsv, and the functions that met it.
struct ParityUnknown {
  std::map<std::string, unsigned long long> calls;  // function -> times
};

struct ParityReport {
  std::vector<ParityFinding> findings;
  std::vector<ParityFinding> doubts;  // what a page forbids and nobody knows a card to enforce; not refused
  std::map<std::string, ParityUnknown> unknown;
  unsigned long long looked = 0, left_out = 0;
};

// Of all parity-<pid>.tsv files in the folder. What cannot be read is left out.
ParityReport ReadParity(const std::filesystem::path& folder);
// What would have failed on the card, where, and what to change; a line when there is nothing.
std::string ParityText(const ParityReport& report, const std::string& soc, bool refused);

}  // namespace npu::launch
