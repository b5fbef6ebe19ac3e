#include "tools/launch/parity.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <tuple>

namespace npu::launch {
namespace fs = std::filesystem;
namespace {

constexpr size_t kToldUnknown = 8, kToldDoubts = 20;

std::vector<std::string> Split(const std::string& line) {
  std::vector<std::string> fields;
  std::istringstream parts(line);
  for (std::string field; std::getline(parts, field, '\t');) fields.push_back(field);
  return fields;
}

unsigned long long Number(const std::string& text) { return std::strtoull(text.c_str(), nullptr, 10); }

}  // namespace

ParityReport ReadParity(const fs::path& folder) {
  ParityReport report;
  std::map<std::tuple<std::string, std::string, std::string, std::string>, size_t> known;  // kind, call, what, where
  std::error_code error;
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder, error)) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  for (const fs::path& path : files) {
    std::ifstream file(path);
    struct Local {
      std::vector<ParityFinding>* list;
      size_t at;
      bool counted = false;
    };
    std::map<std::string, Local> of_this;  // number in this file
    for (std::string line; std::getline(file, line);) {
      const std::vector<std::string> f = Split(line);
      if (f.size() >= 9 && (f[0] == "finding" || f[0] == "doubt")) {
        auto& list = f[0] == "doubt" ? report.doubts : report.findings;
        const auto [place, fresh] = known.try_emplace({f[0], f[4], f[5], f[7]}, list.size());
        if (fresh)
          list.push_back({f[2], f[3], f[4], f[5], f[6], f[7], f[8], 1});
        else
          ++list[place->second].times;
        of_this[f[1]] = {&list, place->second};
      } else if (f.size() == 3 && f[0] == "times") {
        const auto found = of_this.find(f[1]);
        if (found == of_this.end() || found->second.counted) continue;
        found->second.counted = true;
        (*found->second.list)[found->second.at].times += std::max(Number(f[2]), 1ull) - 1;
      } else if (f.size() == 3 && f[0] == "unknown") {
        ++report.unknown[f[1]].calls[f[2]];  // once; the end of the process tells how often
      } else if (f.size() == 4 && f[0] == "unknown_times") {
        report.unknown[f[1]].calls[f[2]] += std::max(Number(f[3]), 1ull) - 1;
      } else if (f.size() == 2 && f[0] == "looked") {
        report.looked += Number(f[1]);
      } else if (f.size() == 2 && f[0] == "left_out") {
        report.left_out += Number(f[1]);
      }
    }
    for (const auto& [number, local] : of_this) {
      if (!local.counted) (*local.list)[local.at].at_least = true;
    }
  }
  return report;
}

namespace {

// Rules of abi/parity.tsv that calls met without an answer, in the order of the report.
constexpr std::pair<const char*, const char*> kUnknown[] = {
    {"function", "functions without facts"},
    {"combination-unread", "types that depend on each other (only lists were compared)"},
    {"by-name", "single operators by name"},
    {"number", "types of number arguments"},
    {"int64", "how int64 is computed"},
};

std::string OneFinding(size_t n, const ParityFinding& f) {
  std::string text = fmt::format("{:>3}. {} ({}): {}\n", n, f.call, f.code, f.what);
  text += fmt::format("     where   {}, {}{} {}\n",
                      f.where.empty() ? "no line of Python known (a thread without one, or a C++ program)" : f.where,
                      f.at_least ? "at least " : "", f.times, f.times == 1 ? "time" : "times");
  return text + fmt::format("     change  {}\n     source  {}\n", f.change, f.source);
}

// One call at one place may have several findings: each of its tensors has a type that the card refuses.
size_t CallsOf(const std::vector<ParityFinding>& findings) {
  std::set<std::pair<std::string_view, std::string_view>> calls;
  for (const ParityFinding& f : findings) calls.emplace(f.call, f.where);
  return calls.size();
}

std::string UnknownText(const ParityReport& report, const std::string& soc) {
  std::string text;
  for (const auto& [what, words] : kUnknown) {
    const auto found = report.unknown.find(what);
    if (found == report.unknown.end()) continue;
    std::vector<std::pair<unsigned long long, std::string>> calls;
    unsigned long long all = 0;
    for (const auto& [call, times] : found->second.calls) {
      calls.emplace_back(times, call);
      all += times;
    }
    std::sort(calls.begin(), calls.end(), [](const auto& a, const auto& b) {
      return a.first != b.first ? a.first > b.first : a.second < b.second;
    });
    text += fmt::format("  {}: {} {} of", words, all, all == 1 ? "call" : "calls");
    for (size_t i = 0; i < calls.size() && i < kToldUnknown; ++i) text += (i > 0 ? ", " : " ") + calls[i].second;
    text += calls.size() > kToldUnknown ? fmt::format(" and {} more\n", calls.size() - kToldUnknown) : "\n";
  }
  return text.empty() ? text : fmt::format("Unknown of {}, and so not refused:\n", soc) + text;
}

}  // namespace

std::string ParityText(const ParityReport& report, const std::string& soc, bool refused) {
  std::string text;
  if (report.findings.empty()) {
    text =
        fmt::format("anynpu parity: nothing of what {} is known to refuse was met ({} calls of operators looked at).\n",
                    soc, report.looked);
  } else {
    const size_t calls = CallsOf(report.findings), reasons = report.findings.size();
    text = fmt::format("anynpu parity: {} {} {}{}:\n", calls, calls == 1 ? "call" : "calls",
                       refused ? (calls == 1 ? "was refused as " : "were refused as ") + soc +
                                     (calls == 1 ? " refuses it" : " refuses them")
                               : "would have failed on " + soc,
                       reasons > calls ? fmt::format(", for {} reasons", reasons) : "");
    size_t n = 0;
    for (const ParityFinding& f : report.findings) text += OneFinding(++n, f);
    if (report.left_out > 0) text += fmt::format("     and {} more that are not listed\n", report.left_out);
  }
  if (!report.doubts.empty()) {
    text += fmt::format("{} more {} what a page forbids; whether {} enforces it is not known, so it was not refused:\n",
                        report.doubts.size(), report.doubts.size() == 1 ? "call does" : "calls do", soc);
    for (size_t i = 0; i < report.doubts.size() && i < kToldDoubts; ++i) text += OneFinding(i + 1, report.doubts[i]);
    if (report.doubts.size() > kToldDoubts)
      text += fmt::format("     and {} more that are not listed\n", report.doubts.size() - kToldDoubts);
  }
  text += UnknownText(report, soc);
  return text;
}

}  // namespace npu::launch
