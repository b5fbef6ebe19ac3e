#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "tools/monitor/collect/collector.h"
#include "tools/monitor/collect/files.h"
#include "tools/monitor/collect/units.h"

namespace npu::monitor {
namespace {

namespace fs = std::filesystem;

class Sysfs final : public Collector {
 public:
  explicit Sysfs(fs::path root) : root_(std::move(root)) {}

  Reading Read() override {
    Reading reading;
    reading.source = "sysfs";
    std::error_code error;
    fs::directory_iterator entries(root_, error);
    if (error) {
      reading.problems.push_back(fmt::format("{}: {}", root_.string(), error.message()));
      return reading;
    }
    for (; entries != fs::directory_iterator(); entries.increment(error)) {
      if (error) break;  // the board went while it was listed
      const std::string name = entries->path().filename().string();
      const std::optional<uint64_t> number = name.starts_with("npu") ? WholeNumber(name.substr(3)) : std::nullopt;
      if (!number || *number > 1023) continue;
      Card card;
      card.id = static_cast<int>(*number);
      card.model = "RKNPU";
      const fs::path device = entries->path() / "device";
      // The kernel's units: mW, bytes, MHz.
      if (const auto milliwatts = Field(reading, device / "power_usage"))
        card.power_w = WattsFromMilli(static_cast<double>(*milliwatts));
      card.hbm_used_bytes = Field(reading, device / "memory_usage");
      if (const auto mhz = Field(reading, device / "frequency")) card.core_mhz = static_cast<double>(*mhz);
      if (!card.power_w && !card.hbm_used_bytes && !card.core_mhz) continue;  // no board behind the name
      reading.cards.push_back(std::move(card));
    }
    std::sort(reading.cards.begin(), reading.cards.end(), [](const Card& a, const Card& b) { return a.id < b.id; });
    return reading;
  }

 private:
  // A file that is not there is a board that is not ready; one with a foreign text is named.
  static std::optional<uint64_t> Field(Reading& reading, const fs::path& path) {
    const std::optional<std::string> text = ReadSmallFile(path.string(), 64);
    if (!text) return std::nullopt;
    const std::optional<uint64_t> value = WholeNumber(*text);
    if (!value || *value > uint64_t{1} << 53) {
      reading.problems.push_back(fmt::format("{}: not a number of at least 0", path.string()));
      return std::nullopt;
    }
    return value;
  }

  const fs::path root_;
};

}  // namespace

std::unique_ptr<Collector> SysfsCollector(const CollectorOptions& options) {
  return std::make_unique<Sysfs>(options.sysfs);
}

}  // namespace npu::monitor
