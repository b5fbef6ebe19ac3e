#include "tools/monitor/collect/port.h"

#include <fmt/format.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <sstream>

#include "tools/monitor/collect/command.h"
#include "tools/monitor/collect/units.h"

namespace npu::monitor {
namespace {

constexpr const char* kDriversTool = "/usr/local/Ascend/driver/tools/hccn_tool";
constexpr auto kPatience = std::chrono::seconds(5);
constexpr size_t kMostText = 64 << 10, kMostCounters = 512;

std::vector<std::string> WordsOf(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

template <class Take>
void EachLine(const std::string& text, Take&& take) {
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    take(line);
  }
}

std::string Trimmed(const std::string& text) {
  const size_t first = text.find_first_not_of(" \t"), last = text.find_last_not_of(" \t");
  return first == std::string::npos ? std::string() : text.substr(first, last - first + 1);
}

// A number and its unit, turned into the base unit; nothing for another unit.
std::optional<double> Measured(const std::string& text, std::initializer_list<std::pair<const char*, double>> units) {
  const std::vector<std::string> words = WordsOf(text);
  if (words.size() != 2) return std::nullopt;
  const auto number = PlainNumber(words[0]);
  for (const auto& [unit, factor] : units) {
    if (number && words[1] == unit) return *number * factor;
  }
  return std::nullopt;
}

}  // namespace

std::optional<bool> LinkIn(const std::string& text) {
  const auto words = WordsOf(text);
  if (words.size() != 3 || words[0] != "link" || words[1] != "status:") return std::nullopt;
  if (words[2] == "UP") return true;
  return words[2] == "DOWN" ? std::optional<bool>(false) : std::nullopt;
}

std::optional<double> SpeedIn(const std::string& text) {
  const auto words = WordsOf(text);
  if (words.size() != 3 || words[0] != "Speed:" || words[2] != "Mb/s") return std::nullopt;
  const auto number = WholeNumber(words[1]);
  return number ? std::optional<double>(static_cast<double>(*number) * 1e6) : std::nullopt;
}

std::optional<uint64_t> TimesUpIn(const std::string& text) {
  std::optional<uint64_t> found;
  EachLine(text, [&](const std::string& line) {
    const auto words = WordsOf(line);
    if (line.find("link up count") != std::string::npos && words.size() == 6) found = WholeNumber(words[5]);
  });
  return found;
}

void BandwidthIn(const std::string& text, Link& link) {
  EachLine(text, [&](const std::string& line) {
    const auto words = WordsOf(line);
    if (words.size() != 4 || words[0] != "Bandwidth" || words[3] != "MB/sec") return;
    const auto number = PlainNumber(words[2]);
    if (!number) return;
    if (words[1] == "TX:") link.send_bytes_per_s = *number * 1e6;
    if (words[1] == "RX:") link.receive_bytes_per_s = *number * 1e6;
  });
}

std::vector<std::pair<std::string, uint64_t>> CountersIn(const std::string& text) {
  std::vector<std::pair<std::string, uint64_t>> counters;
  EachLine(text, [&](const std::string& line) {
    const size_t colon = line.find(':');
    if (colon == std::string::npos || counters.size() >= kMostCounters) return;
    const std::string name = line.substr(0, colon);
    const bool plain =
        !name.empty() && name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") == std::string::npos;
    const auto number = WholeNumber(line.substr(colon + 1));
    if (plain && number) counters.emplace_back(name, *number);
  });
  return counters;
}

std::optional<Optical> OpticalIn(const std::string& text) {
  Optical optical;
  bool any = false;
  EachLine(text, [&](const std::string& line) {
    const size_t colon = line.find(':');
    if (colon == std::string::npos) return;
    const std::string key = Trimmed(line.substr(0, colon)), value = Trimmed(line.substr(colon + 1));
    if (key == "present" && (value == "present" || value == "not present")) optical.present = value == "present";
    if (key == "temperature") optical.temperature_c = Measured(value, {{"C", 1}});
    if (key == "Vcc") optical.supply_v = Measured(value, {{"mV", 1e-3}, {"V", 1}});
    for (size_t lane = 0; lane < optical.send_w.size(); ++lane) {
      if (key == fmt::format("Tx_Power{}", lane)) optical.send_w[lane] = Measured(value, {{"mW", 1e-3}, {"W", 1}});
      if (key == fmt::format("Rx_Power{}", lane)) optical.receive_w[lane] = Measured(value, {{"mW", 1e-3}, {"W", 1}});
    }
    any = any || optical.present.has_value();
  });
  return any ? std::optional<Optical>(optical) : std::nullopt;
}

std::string FindPortTool(const std::string& given) {
  if (!given.empty()) return given == "off" ? std::string() : given;
  if (access(kDriversTool, X_OK) == 0) return kDriversTool;
  const char* path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    const std::string file = folder + "/hccn_tool";
    if (!folder.empty() && access(file.c_str(), X_OK) == 0) return file;
  }
  return {};
}

PortReading AskPortTool(const std::string& tool, int device) {
  PortReading port;
  const auto ask = [&](const char* question) -> std::optional<std::string> {
    if (!port.problem.empty()) return std::nullopt;
    Result<std::string> text = Output({tool, "-i", fmt::format("{}", device), question, "-g"}, kPatience, kMostText);
    if (text.ok()) return std::move(*text);
    // A refusal is an answer: a card without a port, a driver without the question.
    if (text.status().code() != Code::kNotSupported) port.problem = text.status().text();
    return std::nullopt;
  };
  if (const auto text = ask("-link")) port.link.up = LinkIn(*text);
  if (const auto text = ask("-speed")) port.link.speed_bits_per_s = SpeedIn(*text);
  if (const auto text = ask("-link_stat")) port.link.times_up = TimesUpIn(*text);
  if (const auto text = ask("-bandwidth")) BandwidthIn(*text, port.link);
  if (const auto text = ask("-stat")) port.counters = CountersIn(*text);
  if (const auto text = ask("-optical")) port.optical = OpticalIn(*text);
  return port;
}

}  // namespace npu::monitor
