#include "tools/monitor/top/screen.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace npu::monitor {
namespace {

using ::testing::HasSubstr;

Reading Some() {
  Reading reading;
  reading.source = "software";
  reading.cards = {{.id = 0,
                    .model = "910B4-Ascend-V1",
                    .power_w = 120.5,
                    .temperature_c = 44.0,
                    .core_use = 0.5,
                    .hbm_used_bytes = uint64_t{3} << 30,
                    .hbm_total_bytes = uint64_t{32} << 30,
                    .health = 0,
                    .processes = {{77, "python", uint64_t{512} << 20, "", 1.0}}},
                   {.id = 1, .answers = false}};
  reading.operators = {{.name = "MatMul", .sum_us = 1000, .counts = {0, 0, 10}}};
  reading.ranks = {{.card = 0, .rank = 3, .ranks = 4, .steps = 10, .own_s = 1, .wall_s = 2}};
  return reading;
}

std::string Text(const Screen& screen, int columns, int rows, bool colour = false) {
  std::string text;
  for (const std::string& line : screen.Draw(columns, rows, colour)) text += line + "\n";
  return text;
}

TEST(Screen, ShowsCardsProcessesRanksAndRates) {
  Screen screen;
  screen.Add(Some(), 0);
  Reading later = Some();
  later.operators[0].counts[2] = 30;
  later.operators[0].sum_us = 5000;
  later.cards[0].processes[0].core_s = 1.5;
  later.ranks[0].steps = 20;
  later.ranks[0].own_s = 1.5;
  later.ranks[0].wall_s = 4;
  screen.Add(later, 2);
  const std::string text = Text(screen, 200, 0);
  EXPECT_THAT(text, HasSubstr("910B4-Ascend-V1"));
  EXPECT_THAT(text, HasSubstr("120.5"));
  EXPECT_THAT(text, HasSubstr("LOST"));
  EXPECT_THAT(text, ::testing::ContainsRegex("77 +512 +25% +python"));
  EXPECT_THAT(text, ::testing::ContainsRegex("MatMul +10 +200.0 +100%"));
  EXPECT_THAT(text, ::testing::ContainsRegex("3 +0 +20 +5.0 +50.00 +200.00"));
}

TEST(Screen, TheFirstPictureHasTheMeanOfAllSteps) {
  Screen screen;
  screen.Add(Some(), 0);
  EXPECT_THAT(Text(screen, 200, 0), ::testing::ContainsRegex("3 +0 +10 +0.0 +100.00 +200.00"));
}

TEST(Screen, FitsTheTerminal) {
  Screen screen;
  screen.Add(Some(), 0);
  EXPECT_LE(screen.Draw(40, 5, true).size(), 5u);
  for (const std::string& line : screen.Draw(30, 0, false)) {
    size_t places = 0;
    for (const char c : line) places += (static_cast<unsigned char>(c) & 0xC0) != 0x80 ? 1 : 0;
    EXPECT_LE(places, 30u);
  }
}

TEST(Screen, SparklinesHaveAHeightForEachValue) {
  EXPECT_EQ(Sparkline({0, 0.5, 1, 7, -3}, 6), " ▁▅██▁");
  EXPECT_EQ(Sparkline({0, 1, 0}, 2), "█▁");
}

}  // namespace
}  // namespace npu::monitor
