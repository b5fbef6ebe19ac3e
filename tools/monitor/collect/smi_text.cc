#include "tools/monitor/collect/smi_text.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/monitor/collect/collector.h"
#include "tools/monitor/collect/command.h"
#include "tools/monitor/collect/files.h"
#include "tools/monitor/collect/units.h"

namespace npu::monitor {
namespace {

using Json = nlohmann::json;
constexpr size_t kMostText = 1 << 20;

// A bar between two numbers is a word of its own, also where a wide number has eaten the blank before it.
std::vector<std::string> Words(std::string_view text) {
  std::vector<std::string> words;
  std::string word;
  for (const char c : text) {
    const bool blank = std::isspace(static_cast<unsigned char>(c)) != 0;
    if ((blank || c == '/') && !word.empty()) words.push_back(std::exchange(word, std::string()));
    if (c == '/') words.emplace_back("/");
    if (!blank && c != '/') word += c;
  }
  if (!word.empty()) words.push_back(word);
  return words;
}

// The cells of a line "| a | b |", each as its words; nothing for any other line.
std::vector<std::vector<std::string>> Cells(std::string_view line) {
  while (!line.empty() && std::isspace(static_cast<unsigned char>(line.back())) != 0) line.remove_suffix(1);
  std::vector<std::vector<std::string>> cells;
  if (line.size() < 2 || line.front() != '|' || line.back() != '|') return cells;
  line = line.substr(1, line.size() - 2);
  for (;;) {
    const size_t bar = line.find('|');
    cells.push_back(Words(line.substr(0, bar)));
    if (bar == std::string_view::npos) break;
    line.remove_prefix(bar + 1);
  }
  return cells;
}

std::optional<unsigned> HealthOf(const std::string& word) {
  constexpr const char* kWords[] = {"OK", "Warning", "Alarm", "Critical"};
  for (unsigned i = 0; i < 4; ++i) {
    if (word == kWords[i]) return i;
  }
  return std::nullopt;
}

// "a / b", at the end of a cell that may hold two such pairs.
void LastPair(const std::vector<std::string>& words, std::optional<uint64_t>& used, std::optional<uint64_t>& total) {
  if (words.size() < 3 || words[words.size() - 2] != "/") return;
  used = Bytes(words[words.size() - 3], MemoryUnit::kMiB);
  total = Bytes(words[words.size() - 1], MemoryUnit::kMiB);
}

bool IsBusId(const std::string& word) {
  return word.size() == 12 && word[4] == ':' && word[7] == ':' && word[10] == '.';
}

struct InfoParser {
  Reading reading;
  int card_number = -1;
  bool in_processes = false;
  std::vector<std::pair<int, int>> places;  // card and chip of reading.cards
  std::optional<Card> half;                 // the first of a chip's two lines was seen

  Card* At(int card, int chip) {
    for (size_t i = 0; i < places.size(); ++i) {
      if (places[i] == std::pair(card, chip)) return &reading.cards[i];
    }
    return nullptr;
  }

  void First(const std::vector<std::vector<std::string>>& cells, int number) {
    Card card;
    card_number = number;
    card.model = cells[0].size() > 1 ? cells[0][1] : "";
    if (!cells[1].empty()) card.health = HealthOf(cells[1][0]);
    if (!cells[2].empty()) card.power_w = Watts(cells[2][0], PowerUnit::kWatt);
    if (cells[2].size() > 1) card.temperature_c = PlainNumber(cells[2][1]);
    half = std::move(card);
  }

  // Its first number is the chip's on its card or, up to driver 25.5, of all: the lines of a card are counted instead.
  void Second(const std::vector<std::vector<std::string>>& cells) {
    Card card = std::move(*half);
    half.reset();
    card.id = static_cast<int>(reading.cards.size());
    if (cells[0].size() > 1) {  // with Phy-ID
      if (const auto phy = WholeNumber(cells[0][1]); phy && *phy < 1024) card.id = static_cast<int>(*phy);
    }
    card.bus = cells[1][0];
    if (const auto percent = cells[2].empty() ? std::nullopt : PlainNumber(cells[2][0]); percent && *percent <= 100)
      card.core_use = *percent / 100;
    LastPair(cells[2], card.hbm_used_bytes, card.hbm_total_bytes);
    const auto chip =
        std::count_if(places.begin(), places.end(), [&](const auto& place) { return place.first == card_number; });
    places.emplace_back(card_number, static_cast<int>(chip));
    reading.cards.push_back(std::move(card));
  }

  void ProcessLine(const std::vector<std::vector<std::string>>& cells) {
    if (cells.size() < 4 || cells[0].size() < 2 || cells[1].empty() || cells[3].empty()) return;
    const auto card = WholeNumber(cells[0][0]), chip = WholeNumber(cells[0][1]), pid = WholeNumber(cells[1][0]);
    const auto memory = Bytes(cells[3][0], MemoryUnit::kMiB);
    if (!card || !chip || !pid || !memory || *pid > 1u << 30 || *card > 1023 || *chip > 1023) return;
    if (Card* at = At(static_cast<int>(*card), static_cast<int>(*chip)))
      at->processes.push_back({static_cast<int>(*pid), cells[2].empty() ? "NA" : cells[2][0], *memory, {}});
  }

  void Line(std::string_view line) {
    const auto cells = Cells(line);
    if (cells.empty() || cells[0].empty()) return;
    if (const size_t at = line.find("Version:"); at != std::string_view::npos && cells.size() == 1) {
      const auto words = Words(line.substr(at + 8));
      if (!words.empty()) reading.driver = words[0];
      return;
    }
    for (const auto& cell : cells) {
      if (cell.size() >= 2 && cell[0] == "Process" && cell[1] == "id") in_processes = true;
    }
    if (in_processes) return ProcessLine(cells);
    const std::optional<uint64_t> number = WholeNumber(cells[0][0]);
    if (cells.size() < 3 || !number || *number > 1023) return;
    const bool second = !cells[1].empty() && IsBusId(cells[1][0]);
    if (second && half) return Second(cells);
    if (!second) First(cells, static_cast<int>(*number));
  }
};

std::optional<double> FieldNumber(const Json& object, const char* name) {
  const auto at = object.find(name);
  if (at == object.end()) return std::nullopt;
  if (at->is_number()) {
    const double value = at->get<double>();
    return std::isfinite(value) && value >= 0 ? std::optional<double>(value) : std::nullopt;
  }
  return at->is_string() ? PlainNumber(at->get<std::string>()) : std::nullopt;
}

std::string FieldText(const Json& object, const char* name) {
  const auto at = object.find(name);
  if (at == object.end()) return {};
  if (at->is_string()) return at->get<std::string>();
  return at->is_number() ? at->dump() : std::string();
}

class SmiText final : public Collector {
 public:
  explicit SmiText(const CollectorOptions& options) : source_(options.npu_smi), proc_(options.proc) {}

  Reading Read() override {
    std::string text;
    struct stat s {};
    if (!source_.empty() && stat(source_.c_str(), &s) == 0 && S_ISREG(s.st_mode) && (s.st_mode & S_IXUSR) == 0) {
      text = ReadSmallFile(source_, kMostText).value_or("");
    } else {
      const std::string program = source_.empty() ? "npu-smi" : source_;
      // Half of what a scrape and a connection have by default, so that one that hangs is told and not cut off.
      Result<std::string> output = Output({program, "info"}, std::chrono::seconds(5), kMostText);
      if (!output.ok()) {
        Reading reading;
        reading.source = "npu-smi";
        reading.problems.emplace_back(output.status().text());
        return reading;
      }
      text = std::move(*output);
    }
    const size_t first = text.find_first_not_of(" \t\r\n");
    Reading reading = first != std::string::npos && text[first] == '{' ? ParseQuery(text) : ParseInfo(text);
    for (Card& card : reading.cards) {
      for (Process& process : card.processes) process.container_id = ContainerOf(proc_, process.pid);
    }
    return reading;
  }

 private:
  const std::string source_, proc_;
};

}  // namespace

Reading ParseInfo(const std::string& text) {
  InfoParser parser;
  parser.reading.source = "npu-smi";
  size_t begin = 0;
  while (begin < text.size()) {
    const size_t end = text.find('\n', begin);
    if (end == std::string::npos) {
      parser.reading.problems.push_back("npu-smi: the text ends inside a line");
      break;
    }
    parser.Line(std::string_view(text).substr(begin, end - begin));
    begin = end + 1;
  }
  if (parser.half) parser.reading.problems.push_back("npu-smi: the text ends inside a card");
  if (parser.reading.cards.empty()) parser.reading.problems.push_back("npu-smi: no card in the text");
  return std::move(parser.reading);
}

Reading ParseQuery(const std::string& text) {
  Reading reading;
  reading.source = "npu-smi";
  const Json root = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (root.is_discarded() || !root.is_object() || !root.contains("npu") || !root["npu"].is_array()) {
    reading.problems.push_back("npu-smi: the JSON is not whole or has no list `npu`");
    return reading;
  }
  for (const Json& npu : root["npu"]) {
    if (!npu.is_object()) continue;
    Card card;
    card.id = static_cast<int>(reading.cards.size());
    if (const auto id = FieldNumber(npu, "id"); id && *id < 1024) card.id = static_cast<int>(*id);
    card.model = FieldText(npu, "name");
    if (const std::string power = FieldText(npu, "power_usage"); !power.empty())
      card.power_w = Watts(power, PowerUnit::kMilliwatt);
    card.temperature_c = FieldNumber(npu, "temperature");
    if (const auto memory = npu.find("memory"); memory != npu.end() && memory->is_object()) {
      card.hbm_used_bytes = Bytes(FieldText(*memory, "Used"), MemoryUnit::kMiB);
      card.hbm_total_bytes = Bytes(FieldText(*memory, "Total"), MemoryUnit::kByte);
      if (const auto percent = FieldNumber(*memory, "Fragmentation"); percent && *percent <= 100)
        card.fragmentation = *percent / 100;
    }
    reading.cards.push_back(std::move(card));
  }
  return reading;
}

std::unique_ptr<Collector> SmiTextCollector(const CollectorOptions& options) {
  return std::make_unique<SmiText>(options);
}

}  // namespace npu::monitor
