#include "tools/trace/summary.h"

#include <algorithm>
#include <map>

namespace npu::trace {
namespace {

constexpr size_t kWidest = 120;  // of the arguments in a row

struct Row {
  std::string op, kernel, text;
  size_t calls = 0;
  double us = 0;
};

std::vector<Row> Grouped(const std::vector<Record>& records) {
  std::map<std::string, Row> by_call;
  for (const Record& r : records) {
    if (!r.refused.empty()) continue;
    Row& row = by_call[r.Key()];
    if (row.calls == 0) row = {r.op, r.kernel, r.Text()};
    ++row.calls;
    row.us += r.us;
  }
  std::vector<Row> rows;
  for (auto& [key, row] : by_call) rows.push_back(std::move(row));
  std::sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a.us > b.us; });
  return rows;
}

}  // namespace

std::string Table(const std::vector<Record>& records, size_t rows) {
  std::vector<Row> all = Grouped(records);
  double us = 0;
  size_t calls = 0;
  for (const Row& row : all) us += row.us, calls += row.calls;
  std::string out = fmt::format("{} calls of aclnn operators ran in {:.3f} ms of kernel time.\n", calls, us / 1e3);
  if (!all.empty())
    out += fmt::format("{:>8} {:>11} {:>10} {:>6}  {:<32} {:<24} arguments\n", "calls", "total ms", "mean us", "share",
                       "operator", "kernel");
  for (size_t i = 0; i < std::min(rows, all.size()); ++i) {
    const Row& row = all[i];
    const bool cut = row.text.size() > kWidest;
    out += fmt::format("{:>8} {:>11.3f} {:>10.2f} {:>5.1f}%  {:<32} {:<24} {}{}\n", row.calls, row.us / 1e3,
                       row.us / static_cast<double>(row.calls), us > 0 ? 100 * row.us / us : 0, row.op, row.kernel,
                       row.text.substr(0, kWidest), cut ? " ..." : "");
  }
  if (all.size() > rows) out += fmt::format("{} more rows; --top shows more.\n", all.size() - rows);
  std::map<std::string, size_t> refused;
  for (const Record& r : records) {
    if (!r.refused.empty()) ++refused[r.refused];
    if (!r.failed.empty()) ++refused["while it ran: " + r.failed];
  }
  if (!refused.empty()) out += "Refused or failed:\n";
  for (const auto& [why, times] : refused) out += fmt::format("{:>8} {}\n", times, why);
  return out;
}

std::string ChromeTrace(const std::vector<Record>& records) {
  nlohmann::json events = nlohmann::json::array();
  for (const Record& r : records) {
    if (!r.refused.empty()) continue;
    events.push_back({{"name", r.op},
                      {"cat", r.kernel},
                      {"ph", "X"},
                      {"ts", r.start_us},
                      {"dur", r.us},
                      {"pid", r.pid},
                      {"tid", r.tid},
                      {"args", {{"call", r.Text()}}}});
  }
  return nlohmann::json{{"displayTimeUnit", "ns"}, {"traceEvents", std::move(events)}}.dump();
}

}  // namespace npu::trace
