#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "tools/smi/snapshot.h"

namespace npu::smi {
namespace {

// Column widths between the bars. Drivers after 25.5 gave the last column one more place.
struct Layout {
  int first = 27, second = 15, third = 52;
  int used = 5;  // digits of a used figure in front of "/ "
  bool chip_is_logic =
      true;  // the second line begins with the logic id, as the print of a 25.5.2 shows; later the chip id
};

Layout LayoutOf(const std::string& driver) {
  int major = 0, minor = 0;
  const bool newer =
      std::sscanf(driver.c_str(), "%d.%d", &major, &minor) == 2 && (major > 25 || (major == 25 && minor > 5));
  return newer ? Layout{.third = 53, .used = 6, .chip_is_logic = false} : Layout{};
}

std::string Frame(const Layout& l, char fill) {
  return fmt::format("+{}+{}+{}+\n", std::string(l.first, fill), std::string(l.second, fill),
                     std::string(l.third, fill));
}

std::string Row(const Layout& l, const std::string& a, const std::string& b, const std::string& c) {
  return fmt::format("| {:<{}}| {:<{}}| {:<{}}|\n", a, l.first - 1, b, l.second - 1, c, l.third - 1);
}

template <class T>
std::string OrNa(const std::optional<T>& value) {
  return value ? fmt::format("{}", *value) : "NA";
}

std::string ChipRows(const Layout& l, const Chip& c) {
  std::string power = c.power_dw ? fmt::format("{:.1f}", *c.power_dw / 10.0) : "NA";
  if (c.phy && c.chip > 0) power = "-";  // the dies of a card share its figure
  const std::string ids =
      c.phy ? fmt::format("{:<5} {}", c.chip, *c.phy) : fmt::format("{}", l.chip_is_logic ? c.logic : c.chip);
  return Row(l, fmt::format("{:<5} {:<20}", c.card, c.name.substr(0, 20)), HealthWord(c.health),
             fmt::format("{:<11} {:<17} {:<{}}/ {:<13}", power, OrNa(c.temperature_c), c.hugepages_used, l.used,
                         c.hugepages_total)) +
         Row(l, ids, c.bus_id,
             fmt::format("{:<11} {:<5}/ {:<10} {:<{}}/ {:<13}", OrNa(c.aicore_percent), c.memory_used_mb,
                         c.memory_total_mb, OrNa(c.hbm_used_mb), l.used, OrNa(c.hbm_total_mb)));
}

std::string ProcessRow(const Layout& l, const std::string& ids, const std::string& pid, const std::string& name,
                       const std::string& memory) {
  return Row(l, ids, pid, fmt::format("{:<25}| {:<{}}", name.substr(0, 24), memory, l.third - 28));
}

std::string ProcessTable(const Layout& l, const std::vector<Chip>& chips) {
  std::string out =
      Frame(l, '-') + ProcessRow(l, "NPU     Chip", "Process id", "Process name", "Process memory(MB)") + Frame(l, '=');
  for (size_t i = 0; i < chips.size(); ++i) {
    const Chip& c = chips[i];
    for (const Process& p : c.processes) {
      out += ProcessRow(l, fmt::format("{:<7} {}", c.card, c.chip), fmt::format("{}", p.pid), p.name,
                        fmt::format("{}", p.memory_bytes / 1024 / 1024));
    }
    const bool others = std::any_of(chips.begin(), chips.end(),
                                    [&](const Chip& o) { return o.card == c.card && !o.processes.empty(); });
    const bool first_of_card = i == 0 || chips[i - 1].card != c.card;
    if (!others && first_of_card) {
      const int inside = l.first + l.second + l.third + 2;
      out += fmt::format("| {:<{}}|\n", fmt::format("No running processes found in NPU {}", c.card), inside - 1);
    }
    // Idle cards that follow one another share a frame, as in the product's own print of an idle machine; so do the
    // dies of a card.
    const bool idle_run = c.processes.empty() && i + 1 < chips.size() && chips[i + 1].processes.empty();
    const bool same_card = i + 1 < chips.size() && chips[i + 1].card == c.card;
    if (!idle_run && !same_card) out += Frame(l, '=');
  }
  return out;
}

}  // namespace

const char* HealthWord(std::optional<unsigned> health) {
  static constexpr const char* kWords[] = {"OK", "Warning", "Alarm", "Critical"};
  return health && *health < 4 ? kWords[*health] : "UNKNOWN";
}

std::string RenderInfo(const Snapshot& s) {
  const Layout l = LayoutOf(s.driver_version);
  const int inside = l.first + l.second + l.third + 2;
  std::string out = fmt::format("+{:->{}}+\n", "", inside);
  out += fmt::format("| npu-smi {:<24} Version: {:<{}} |\n", s.tool_version, s.driver_version, l.third);
  out += Frame(l, '-');
  out += Row(l, "NPU   Name", "Health", "Power(W)    Temp(C)           Hugepages-Usage(page)");
  const bool two_dies = !s.chips.empty() && s.chips[0].phy.has_value();
  out += Row(l, two_dies ? "Chip  Phy-ID" : "Chip", "Bus-Id", "AICore(%)   Memory-Usage(MB)  HBM-Usage(MB)");
  out += Frame(l, '=');
  for (size_t i = 0; i < s.chips.size(); ++i) {
    out += ChipRows(l, s.chips[i]);
    const bool last_of_card = i + 1 == s.chips.size() || s.chips[i + 1].card != s.chips[i].card;
    if (last_of_card) {
      out += Frame(l, '=');
    } else if (two_dies) {
      out += fmt::format("+{:->{}}+\n", "", inside);
    }
  }
  return out + ProcessTable(l, s.chips);
}

}  // namespace npu::smi
