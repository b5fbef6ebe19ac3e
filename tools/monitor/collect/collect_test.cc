#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "tools/monitor/collect/collector.h"
#include "tools/monitor/collect/files.h"
#include "tools/monitor/collect/smi_text.h"
#include "tools/monitor/collect/units.h"
#include "tools/smi/snapshot.h"

namespace npu::monitor {
namespace {

namespace fs = std::filesystem;

struct Folder {
  Folder() {
    char text[] = "/tmp/anynpu-monitor-XXXXXX";
    if (mkdtemp(text) == nullptr) std::abort();
    path = text;
  }
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
  void Write(const std::string& name, const std::string& text) const {
    fs::create_directories((path / name).parent_path());
    std::ofstream(path / name) << text;
  }
  fs::path path;
};

std::mt19937_64 Random() {
  const uint64_t seed = std::random_device()();
  fmt::print("seed {}\n", seed);
  return std::mt19937_64(seed);
}

TEST(Units, OneTextMeansOneValue) {
  EXPECT_EQ(Watts("35200 mW", PowerUnit::kWatt), 35.2);
  EXPECT_EQ(Watts("35.2 W", PowerUnit::kMilliwatt), 35.2);
  EXPECT_EQ(Watts("35200", PowerUnit::kMilliwatt), 35.2);
  EXPECT_EQ(Watts("35.2", PowerUnit::kWatt), 35.2);
  EXPECT_EQ(Bytes("2", MemoryUnit::kMiB), 2u << 20);
  EXPECT_EQ(Bytes("2 MB", MemoryUnit::kByte), 2u << 20);
  EXPECT_EQ(Bytes("34359738368", MemoryUnit::kByte), 34359738368u);
  EXPECT_EQ(Bytes("34359738368 B", MemoryUnit::kMiB), 34359738368u);
  for (const char* bad : {"", "-3", "x", "1e999", "nan", "3 kg", "--", "0x10 mW"}) {
    EXPECT_FALSE(Watts(bad, PowerUnit::kWatt)) << bad;
    EXPECT_FALSE(Bytes(bad, MemoryUnit::kByte)) << bad;
    EXPECT_FALSE(WholeNumber(bad)) << bad;
  }
}

TEST(Sysfs, MilliwattsBytesAndMegahertz) {
  auto random = Random();
  const uint64_t milliwatts = random() % 20000, bytes = random() % (uint64_t{8} << 30), mhz = random() % 1000;
  const Folder folder;
  folder.Write("npu0/device/power_usage", fmt::format("{}\n", milliwatts));
  folder.Write("npu0/device/memory_usage", fmt::format("{}\n", bytes));
  folder.Write("npu0/device/frequency", fmt::format("{}\n", mhz));
  folder.Write("other/device/power_usage", "5\n");
  const Reading reading = SysfsCollector({.sysfs = folder.path})->Read();
  ASSERT_EQ(reading.cards.size(), 1u);
  EXPECT_DOUBLE_EQ(reading.cards[0].power_w.value(), static_cast<double>(milliwatts) / 1000);
  EXPECT_EQ(reading.cards[0].hbm_used_bytes, bytes);
  EXPECT_EQ(reading.cards[0].core_mhz, static_cast<double>(mhz));
  EXPECT_TRUE(reading.problems.empty());
}

TEST(Sysfs, BrokenValuesAreNamedAndTheOthersShown) {
  const Folder folder;
  for (int board = 0; board < 3; ++board) folder.Write(fmt::format("npu{}/device/frequency", board), "600\n");
  folder.Write("npu0/device/power_usage", "many\n");
  folder.Write("npu1/device/power_usage", "-5\n");
  folder.Write("npu2/device/power_usage", "99999999999999999999999\n");
  folder.Write("npu2/device/memory_usage", std::string(5000, '7'));
  const Reading reading = SysfsCollector({.sysfs = folder.path})->Read();
  ASSERT_EQ(reading.cards.size(), 3u);
  EXPECT_EQ(reading.problems.size(), 4u);
  for (const Card& card : reading.cards) {
    EXPECT_FALSE(card.power_w);
    EXPECT_EQ(card.core_mhz, 600);
  }
}

TEST(Sysfs, ABoardComesAndGoes) {
  const Folder folder;
  const auto collector = SysfsCollector({.sysfs = folder.path / "npu"});
  EXPECT_EQ(collector->Read().problems.size(), 1u);  // no driver yet
  folder.Write("npu/npu0/device/frequency", "600");
  EXPECT_EQ(collector->Read().cards.size(), 1u);
  fs::remove_all(folder.path / "npu/npu0/device");
  EXPECT_TRUE(collector->Read().cards.empty());
  folder.Write("npu/npu0/device/frequency", "300");
  EXPECT_EQ(collector->Read().cards.at(0).core_mhz, 300);
}

smi::Snapshot SomeCards(std::mt19937_64& random) {
  smi::Snapshot snapshot{.tool_version = "25.5.2", .driver_version = "25.5.2"};
  for (int card = 0; card < 3; ++card) {
    smi::Chip chip{.card = card, .logic = card, .name = "910B4"};
    chip.health = static_cast<unsigned>(random() % 4);
    chip.power_dw = static_cast<int>(random() % 3000);
    chip.temperature_c = static_cast<int>(random() % 100);
    chip.aicore_percent = static_cast<unsigned>(random() % 101);
    chip.hbm_used_mb = random() % 32768;
    chip.hbm_total_mb = 32768;
    chip.bus_id = fmt::format("0000:{:02X}:00.0", 0x41 + card);
    if (card != 1)
      chip.processes.push_back({static_cast<int>(random() % 90000) + 1, "python", (random() % 1000) << 20});
    snapshot.chips.push_back(chip);
  }
  return snapshot;
}

TEST(SmiText, TheBoxReadsBackWhatWasPrinted) {
  auto random = Random();
  const smi::Snapshot printed = SomeCards(random);
  const Reading reading = ParseInfo(smi::RenderInfo(printed));
  EXPECT_TRUE(reading.problems.empty()) << fmt::format("{}", fmt::join(reading.problems, "; "));
  EXPECT_EQ(reading.driver, "25.5.2");
  ASSERT_EQ(reading.cards.size(), printed.chips.size());
  for (size_t i = 0; i < reading.cards.size(); ++i) {
    const Card& card = reading.cards[i];
    const smi::Chip& chip = printed.chips[i];
    EXPECT_DOUBLE_EQ(card.power_w.value(), *chip.power_dw / 10.0);
    EXPECT_EQ(card.temperature_c, *chip.temperature_c);
    EXPECT_EQ(card.health, chip.health);
    EXPECT_DOUBLE_EQ(card.core_use.value(), *chip.aicore_percent / 100.0);
    EXPECT_EQ(card.hbm_used_bytes, *chip.hbm_used_mb << 20);
    EXPECT_EQ(card.hbm_total_bytes, *chip.hbm_total_mb << 20);
    EXPECT_EQ(card.bus, chip.bus_id);
    ASSERT_EQ(card.processes.size(), chip.processes.size()) << smi::RenderInfo(printed);
    if (!card.processes.empty()) {
      EXPECT_EQ(card.processes[0].pid, chip.processes[0].pid);
      EXPECT_EQ(card.processes[0].memory_bytes, chip.processes[0].memory_bytes);
    }
  }
}

TEST(SmiText, EveryHalfOfItIsReadWithoutHarm) {
  auto random = Random();
  const std::string whole = smi::RenderInfo(SomeCards(random));
  for (size_t length = 0; length < whole.size(); length += 7) {
    const Reading reading = ParseInfo(whole.substr(0, length));
    EXPECT_LE(reading.cards.size(), 3u);
    for (const Card& card : reading.cards) EXPECT_TRUE(card.power_w.has_value());  // whole cards only
    const bool cut_in_line = length == 0 || whole[length - 1] != '\n';
    EXPECT_TRUE(!cut_in_line || !reading.problems.empty()) << length;
  }
  std::string noise = whole;
  for (int round = 0; round < 200; ++round) {
    noise[random() % noise.size()] = static_cast<char>(random());
    ParseInfo(noise);
    ParseQuery(noise);
  }
}

TEST(SmiText, TheQueryMixesUnitsAndIsReadOnce) {
  const Reading reading = ParseQuery(
      R"({"npu": [{"id": 0, "name": "910B4", "power_usage": 89900, "temperature": 39,
          "memory": {"Used": 2922, "Total": 34359738368, "Fragmentation": 12.5}}]})");
  ASSERT_EQ(reading.cards.size(), 1u);
  EXPECT_DOUBLE_EQ(reading.cards[0].power_w.value(), 89.9);
  EXPECT_EQ(reading.cards[0].hbm_used_bytes, uint64_t{2922} << 20);
  EXPECT_EQ(reading.cards[0].hbm_total_bytes, 34359738368u);
  EXPECT_DOUBLE_EQ(reading.cards[0].fragmentation.value(), 0.125);
  for (const char* half : {"{", "{\"npu\": [{\"id\"", "[]", "{\"npu\": 3}", "null"}) {
    EXPECT_EQ(ParseQuery(half).problems.size(), 1u) << half;
  }
  EXPECT_FALSE(ParseQuery(R"({"npu": [{"power_usage": -1, "memory": {"Fragmentation": 300}}, 5, {"memory": 7}]})")
                   .cards.at(0)
                   .fragmentation);
}

TEST(SmiText, ACommandThatFailsOrHangsIsNamed) {
  EXPECT_THAT(SmiTextCollector({.npu_smi = "/nonexistent/npu-smi"})->Read().problems,
              ::testing::ElementsAre(::testing::HasSubstr("/nonexistent/npu-smi")));
  EXPECT_THAT(SmiTextCollector({.npu_smi = "/bin/false"})->Read().problems,
              ::testing::ElementsAre(::testing::HasSubstr("status 1")));
}

TEST(Containers, IdsOfEveryTool) {
  const std::string id(64, 'a');
  for (const std::string& path : {"0::/system.slice/docker-" + id + ".scope",
                                  "0::/kubepods.slice/kubepods-pod1.slice/cri-containerd-" + id + ".scope",
                                  "12:devices:/docker/" + id, "0::/user.slice/libpod-" + id + ".scope/container"}) {
    EXPECT_EQ(ContainerIn(path + "\n"), id) << path;
  }
  EXPECT_EQ(ContainerIn("0::/lxc/web/init\n"), "web");
  for (const char* host : {"0::/user.slice/user-0.slice/session-1.scope\n", "", "0", "0::", "::\n:\n"})
    EXPECT_EQ(ContainerIn(host), "") << host;
}

}  // namespace
}  // namespace npu::monitor
