#include "tools/monitor/top/screen.h"

#include <fmt/format.h>

#include <algorithm>

namespace npu::monitor {
namespace {

constexpr size_t kHistory = 240, kSpark = 16;
constexpr double kGigabyte = 1024.0 * 1024 * 1024;
enum Colour { kPlain = 0, kRed = 31, kGreen = 32, kYellow = 33, kDim = 2, kBold = 1 };

std::string Cut(std::string text, int columns) {
  size_t at = 0;
  for (int places = 0; at < text.size() && places < columns; ++places) {
    ++at;
    while (at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) ++at;
  }
  text.resize(at);
  return text;
}

std::string Paint(const std::string& text, int code, bool colour) {
  return colour && code != kPlain ? fmt::format("\x1b[{}m{}\x1b[0m", code, text) : text;
}

std::string Bar(double share, size_t width) {
  const auto full = static_cast<size_t>(std::clamp(share, 0.0, 1.0) * static_cast<double>(width) + 0.5);
  std::string bar;
  for (size_t i = 0; i < width; ++i) bar += i < full ? "█" : "·";
  return bar;
}

std::string Number(const std::optional<double>& value, const char* format) {
  return value ? fmt::format(fmt::runtime(format), *value) : "NA";
}

int HealthColour(const Card& card) {
  if (!card.answers || card.health.value_or(0) >= 2) return kRed;
  return card.health.value_or(0) == 1 ? kYellow : kGreen;
}
const char* HealthWord(const Card& card) {
  constexpr const char* kWords[] = {"OK", "Warning", "Alarm", "Critical"};
  if (!card.answers) return "LOST";
  return card.health && *card.health < 4 ? kWords[*card.health] : "NA";
}

}  // namespace

std::string Sparkline(const std::deque<double>& values, size_t width) {
  constexpr const char* kBlocks[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  std::string out;
  const size_t shown = std::min(values.size(), width);
  for (size_t i = shown; i < width; ++i) out += " ";
  for (size_t i = values.size() - shown; i < values.size(); ++i)
    out += kBlocks[std::min(7, static_cast<int>(std::clamp(values[i], 0.0, 1.0) * 8))];
  return out;
}

void Screen::Add(const Reading& reading, double seconds) {
  now_ = reading;
  for (const Card& card : reading.cards) {
    auto& use = use_[card.id];
    use.push_back(card.core_use.value_or(0));
    if (use.size() > kHistory) use.pop_front();
  }
  rates_.clear();
  double all = 0;
  for (const Operator& op : reading.operators) {
    double count = 0;
    for (const uint64_t c : op.counts) count += static_cast<double>(c);
    auto& [count_before, sum_before] = before_[op.name];
    const double calls = count - count_before, sum = op.sum_us - sum_before;
    if (seconds > 0 && calls > 0) rates_.push_back({op.name, calls / seconds, sum / calls, sum});
    if (seconds > 0) all += std::max(0.0, sum);
    count_before = count;
    sum_before = op.sum_us;
  }
  for (Rate& rate : rates_) rate.share = all > 0 ? rate.share / all : 0;
  std::sort(rates_.begin(), rates_.end(), [](const Rate& a, const Rate& b) { return a.share > b.share; });
  core_use_.clear();
  std::map<std::pair<int, int>, double> core;
  for (const Card& card : reading.cards) {
    for (const Process& process : card.processes) {
      if (!process.core_s) continue;
      const std::pair who(card.id, process.pid);
      core[who] = *process.core_s;
      const auto before = core_before_.find(who);
      if (before != core_before_.end() && seconds > 0)
        core_use_[who] = std::clamp((*process.core_s - before->second) / seconds, 0.0, 1.0);
    }
  }
  core_before_ = std::move(core);
  for (const Rank& rank : reading.ranks) {
    const std::pair who(rank.rank, rank.card);
    auto& [steps, own, wall] = steps_before_[who];
    const double fresh = static_cast<double>(rank.steps) - steps;
    // Without a new step, as in the first picture: the mean of all steps.
    const double total = std::max(static_cast<double>(rank.steps), 1.0);
    step_rates_[who] = seconds > 0 && fresh > 0
                           ? std::tuple(fresh / seconds, (rank.own_s - own) / fresh, (rank.wall_s - wall) / fresh)
                           : std::tuple(0.0, rank.own_s / total, rank.wall_s / total);
    steps = static_cast<double>(rank.steps);
    own = rank.own_s;
    wall = rank.wall_s;
  }
}

std::vector<std::string> Screen::Draw(int columns, int rows, bool colour) const {
  std::vector<std::pair<std::string, int>> lines;
  const auto add = [&](std::string text, int code = kPlain) { lines.emplace_back(std::move(text), code); };
  add(fmt::format("anynpu top   source {}   driver {}   cards {}", now_.source, now_.driver, now_.cards.size()), kBold);
  for (const std::string& problem : now_.problems) add("! " + problem, kRed);
  if (!now_.faults.empty()) add(fmt::format("injected faults: {}", fmt::join(now_.faults, ", ")), kYellow);
  add("");
  add("NPU  Model             Health    Power W  Temp C  MHz   AI core                          HBM GB                 "
      "   Send/Recv",
      kDim);
  for (const Card& card : now_.cards) {
    const auto& used = card.hbm_used_bytes ? card.hbm_used_bytes : card.ddr_used_bytes;
    const auto& total = card.hbm_total_bytes ? card.hbm_total_bytes : card.ddr_total_bytes;
    const double share = used && total && *total > 0 ? static_cast<double>(*used) / static_cast<double>(*total) : 0;
    const auto history = use_.find(card.id);
    add(fmt::format("{:<4} {:<17} {:<9} {:>7} {:>7} {:>5} {:>4} {} {}  {} {:>5}/{:<5}  {}/{}", card.id,
                    card.model.substr(0, 17), HealthWord(card), Number(card.power_w, "{:.1f}"),
                    Number(card.temperature_c, "{:.0f}"), Number(card.core_mhz, "{:.0f}"),
                    card.core_use ? fmt::format("{:.0f}%", *card.core_use * 100) : "NA",
                    Bar(card.core_use.value_or(0), 8), history != use_.end() ? Sparkline(history->second, kSpark) : "",
                    Bar(share, 10), used ? fmt::format("{:.1f}", static_cast<double>(*used) / kGigabyte) : "NA",
                    total ? fmt::format("{:.1f}", static_cast<double>(*total) / kGigabyte) : "NA",
                    card.send_queue ? fmt::format("{}", *card.send_queue) : "NA",
                    card.receive_queue ? fmt::format("{}", *card.receive_queue) : "NA"),
        HealthColour(card) == kGreen ? kPlain : HealthColour(card));
  }
  add("");
  add("NPU  Pid        Memory MB  AI core  Process          Container", kDim);
  bool any = false;
  for (const Card& card : now_.cards) {
    for (const Process& process : card.processes) {
      any = true;
      const auto use = core_use_.find({card.id, process.pid});
      add(fmt::format("{:<4} {:<10} {:>9} {:>8}  {:<16} {}", card.id, process.pid, process.memory_bytes >> 20,
                      use != core_use_.end() ? fmt::format("{:.0f}%", use->second * 100) : "NA",
                      process.name.substr(0, 16), process.container_id.substr(0, 12)));
    }
  }
  if (!any) add("     no processes");
  if (!now_.ranks.empty()) {
    add("");
    add("Rank NPU   Steps  Steps/s  Own work ms   Wall ms", kDim);
    for (const Rank& rank : now_.ranks) {
      const auto at = step_rates_.find({rank.rank, rank.card});
      const auto [rate, own, wall] = at != step_rates_.end() ? at->second : std::tuple(0.0, 0.0, 0.0);
      add(fmt::format("{:<4} {:<4} {:>6} {:>8.1f} {:>12.2f} {:>9.2f}", rank.rank, rank.card, rank.steps, rate,
                      own * 1e3, wall * 1e3));
    }
  }
  if (!rates_.empty()) {
    add("");
    add("Operator                        Calls/s    Mean us  Share", kDim);
    for (const Rate& rate : rates_)
      add(fmt::format("{:<28} {:>10.0f} {:>10.1f}  {:>4.0f}%", rate.name.substr(0, 28), rate.calls_per_s, rate.mean_us,
                      rate.share * 100));
  }
  std::vector<std::string> out;
  for (const auto& [text, code] : lines) {
    if (rows > 0 && static_cast<int>(out.size()) == rows) break;
    out.push_back(Paint(Cut(text, columns), code, colour));
  }
  return out;
}

}  // namespace npu::monitor
