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

constexpr size_t kToldUnknown = 12;

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
  std::set<std::string> unknown;
  std::map<std::tuple<std::string, std::string, std::string>, size_t> known;  // call, what, where
  std::error_code error;
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder, error)) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  for (const fs::path& path : files) {
    std::ifstream file(path);
    struct Local {
      size_t at;
      bool counted = false;
    };
    std::map<std::string, Local> of_this;  // number in this file
    for (std::string line; std::getline(file, line);) {
      const std::vector<std::string> f = Split(line);
      if (f.size() >= 9 && f[0] == "finding") {
        const auto [place, fresh] = known.try_emplace({f[4], f[5], f[7]}, report.findings.size());
        if (fresh)
          report.findings.push_back({f[2], f[3], f[4], f[5], f[6], f[7], f[8], 1});
        else
          ++report.findings[place->second].times;
        of_this[f[1]] = {place->second};
      } else if (f.size() == 3 && f[0] == "times") {
        const auto found = of_this.find(f[1]);
        if (found == of_this.end() || found->second.counted) continue;
        found->second.counted = true;
        report.findings[found->second.at].times += std::max(Number(f[2]), 1ull) - 1;
      } else if (f.size() == 2 && f[0] == "unknown") {
        unknown.insert(f[1]);
      } else if (f.size() == 2 && f[0] == "looked") {
        report.looked += Number(f[1]);
      } else if (f.size() == 2 && f[0] == "left_out") {
        report.left_out += Number(f[1]);
      }
    }
    for (const auto& [number, local] : of_this) {
      if (!local.counted) report.findings[local.at].at_least = true;
    }
  }
  report.unknown.assign(unknown.begin(), unknown.end());
  return report;
}

std::string ParityText(const ParityReport& report, const std::string& soc, bool refused) {
  std::string text;
  if (report.findings.empty()) {
    text =
        fmt::format("anynpu parity: nothing of what {} is known to refuse was met ({} calls of operators looked at).\n",
                    soc, report.looked);
  } else {
    text = fmt::format("anynpu parity: {} {} {}:\n", report.findings.size(),
                       report.findings.size() == 1 ? "call" : "calls",
                       refused ? "were refused as " + soc + " refuses them" : "would have failed on " + soc);
    size_t n = 0;
    for (const ParityFinding& f : report.findings) {
      text += fmt::format("{:>3}. {} ({}): {}\n", ++n, f.call, f.code, f.what);
      text += fmt::format(
          "     where   {}, {}{} {}\n",
          f.where.empty() ? "no line of Python known (a thread without one, such as a backward pass, or a C++ program)"
                          : f.where,
          f.at_least ? "at least " : "", f.times, f.times == 1 ? "time" : "times");
      text += fmt::format("     change  {}\n     source  {}\n", f.change, f.source);
    }
    if (report.left_out > 0) text += fmt::format("     and {} more that are not listed\n", report.left_out);
  }
  if (!report.unknown.empty()) {
    text += fmt::format("Of {} {} nothing is known for {}: ", report.unknown.size(),
                        report.unknown.size() == 1 ? "function" : "functions", soc);
    for (size_t i = 0; i < report.unknown.size() && i < kToldUnknown; ++i)
      text += (i > 0 ? ", " : "") + report.unknown[i];
    text += report.unknown.size() > kToldUnknown ? ", ...\n" : "\n";
  }
  return text;
}

}  // namespace npu::launch
