#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "tools/smi/snapshot.h"

namespace npu::smi {
namespace {

std::string Golden(const std::string& name) {
  std::ifstream in(std::string(NPU_SOURCE_DIR) + "/tools/smi/testdata/" + name);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

Chip Idle(int card) {
  return {.card = card,
          .logic = card,
          .name = "910B4",
          .health = 0,
          .power_dw = 899,
          .temperature_c = 39,
          .aicore_percent = 0,
          .hbm_used_mb = 2922,
          .hbm_total_mb = 32768,
          .bus_id = card == 0 ? "0000:41:00.0" : "0000:42:00.0"};
}

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

TEST(RenderInfo, IdleMachineIsTheArticlesSample) {
  EXPECT_EQ(RenderInfo({"25.5.2", "25.5.2", {Idle(0), Idle(1)}}), Golden("idle.txt"));
}

TEST(RenderInfo, ProcessesStandUnderTheirCard) {
  Snapshot s{"25.5.2", "25.5.2", {Idle(0), Idle(1), Idle(2)}};
  s.chips[0].processes = {{4172, "python", 161ull << 20},
                          {1234567, "a-name-that-is-longer-than-its-column", 12345ull << 20}};
  s.chips[0].hbm_used_mb = 15428;
  s.chips[0].aicore_percent = 100;
  s.chips[1].health = 2;
  s.chips[1].power_dw.reset();
  EXPECT_EQ(RenderInfo(s), Golden("processes.txt"));
}

TEST(RenderInfo, WidthFollowsTheDriver) {
  for (const auto& [driver, width] :
       {std::pair<const char*, size_t>{"25.5.2", 98}, {"23.0.rc3", 98}, {"25.6.0", 99}, {"26.0.RC1", 99}}) {
    for (const std::string& line : Lines(RenderInfo({driver, driver, {Idle(0)}})))
      EXPECT_EQ(line.size(), width) << line;
  }
}

TEST(RenderInfo, ClientsCanSplitAtTheFrames) {
  // Monitors look for the words and frames of these columns and for the last `a / b` pair of a chip's second line.
  const std::vector<std::string> lines = Lines(RenderInfo({"25.5.2", "25.5.2", {Idle(0)}}));
  EXPECT_THAT(lines, testing::Contains("+" + std::string(27, '-') + "+" + std::string(15, '-') + "+" +
                                       std::string(52, '-') + "+"));
  EXPECT_THAT(lines[7], testing::MatchesRegex(".* 2922 / 32768 +\\|"));
}

}  // namespace
}  // namespace npu::smi
