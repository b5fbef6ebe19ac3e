#include "tools/doctor/versions.h"

#include <algorithm>
#include <charconv>

#include "tools/doctor/data.h"
#include "tools/doctor/table.h"

namespace npu::doctor {
namespace {

std::string MajorMinor(std::string_view version) {
  const auto parts = Split(version, '.');
  return parts.size() < 2 ? std::string(version) : std::string(parts[0]) + "." + std::string(parts[1]);
}

}  // namespace

std::string Plain(std::string_view version) { return std::string(version.substr(0, version.find('+'))); }

std::optional<Combination> CombinationFor(std::string_view torch_npu) {
  const std::string wanted = Plain(torch_npu);
  const auto parts = Split(wanted, '.');
  if (parts.size() < 3) return std::nullopt;
  const std::string torch = std::string(parts[0]) + "." + std::string(parts[1]) + "." +
                            std::string(parts[2].substr(0, parts[2].find_first_not_of("0123456789")));
  const Table matrix(data::matrix);
  std::optional<Combination> same_torch;
  for (const Row& row : matrix.rows()) {
    std::vector<std::string> cann;
    for (std::string_view release : Split(row["cann"], ',')) {
      if (!release.starts_with('~') && release != "?") cann.emplace_back(release);
    }
    if (row["torch_npu"] == wanted) return Combination{wanted, std::string(row["torch"]), cann, true};
    if (row["torch"] != torch) continue;
    if (!same_torch) same_torch = Combination{wanted, torch, {}, false};
    for (const std::string& release : cann) {
      if (std::find(same_torch->cann.begin(), same_torch->cann.end(), release) == same_torch->cann.end())
        same_torch->cann.push_back(release);
    }
  }
  return same_torch;
}

std::vector<std::string> PythonsFor(std::string_view torch) {
  const Table pythons(data::pythons);
  for (const Row& row : pythons.rows()) {
    if (row["torch"] != MajorMinor(torch)) continue;
    std::vector<std::string> versions;
    for (std::string_view version : Split(row["pythons"], ',')) versions.emplace_back(version);
    return versions;
  }
  return {};
}

std::vector<std::string> DriversFor(std::string_view cann) {
  const Table hdk(data::hdk);
  for (const Row& row : hdk.rows()) {
    if (!SameRelease(cann, row["cann"])) continue;
    std::vector<std::string> series;
    for (std::string_view one : Split(row["drivers"], ',')) series.emplace_back(one);
    return series;
  }
  return {};
}

std::string DriverSeries(std::string_view version) { return MajorMinor(version); }

bool InRange(std::string_view version, std::string_view range) {
  range = Trim(range);
  const size_t comma = range.find(',');
  if (version.empty() || range.size() < 5 || range.front() != '[' || range.back() != ']' || comma == range.npos)
    return true;
  const std::string_view lowest = Trim(range.substr(1, comma - 1));
  const std::string_view highest = Trim(range.substr(comma + 1, range.size() - comma - 2));
  const auto numbers = [](std::string_view text) { return !text.empty() && text[0] >= '0' && text[0] <= '9'; };
  if (!numbers(version) || !numbers(lowest) || !numbers(highest)) return true;
  // The range has fewer fields than a version: 7.7.99.1 lies inside 7.7.99.
  std::string shortened;
  const auto fields = Split(version, '.');
  for (size_t i = 0; i < std::min(fields.size(), Split(highest, '.').size()); ++i)
    shortened += (i > 0 ? "." : "") + std::string(fields[i]);
  return !Older(shortened, lowest) && !Older(highest, shortened);
}

bool SameRelease(std::string_view installed, std::string_view wanted) {
  const std::string a = Lower(installed), b = Lower(wanted);
  return a.starts_with(b) && (a.size() == b.size() || !isdigit(static_cast<unsigned char>(a[b.size()])));
}

bool Older(std::string_view a, std::string_view b) {
  const auto left = Split(a, '.'), right = Split(b, '.');
  for (size_t i = 0; i < std::min(left.size(), right.size()); ++i) {
    int x = 0, y = 0;
    std::from_chars(left[i].data(), left[i].data() + left[i].size(), x);
    std::from_chars(right[i].data(), right[i].data() + right[i].size(), y);
    if (x != y) return x < y;
  }
  return left.size() < right.size();
}

}  // namespace npu::doctor
