#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "tools/check/call.h"
#include "tools/check/operators.h"
#include "tools/check/report.h"

namespace npu::check {
namespace {

using ::testing::HasSubstr;
constexpr auto kLimit = std::chrono::seconds(20);

TEST(Report, ItemsComeThroughAsTheyWereSent) {
  const Part part = RunPart("part", kLimit, [](Sink& sink) {
    sink.Passed("first");
    sink.Failed("second", "because\tof\nthis");
    sink.LeftOut("third", "not here");
    sink.Note("two cards");
  });
  ASSERT_EQ(part.items.size(), 3u);
  EXPECT_EQ(part.note, "two cards");
  EXPECT_EQ(part.items[1].detail, "because of this");
  EXPECT_EQ(part.Count(Verdict::kPassed), 1);
  EXPECT_EQ(Score({part}), 50) << "what was left out counts for neither side";
  EXPECT_THAT(Table({part}), ::testing::AllOf(HasSubstr("failed: part: second: because of this"),
                                              HasSubstr("left out: part: third"), HasSubstr("score 50 of 100")));
  EXPECT_EQ(nlohmann::json::parse(Json({part}))["parts"][0]["items"].size(), 3u);
}

TEST(Report, ACrashIsAFindingThatNamesWhatCameBefore) {
  const Part part = RunPart("part", kLimit, [](Sink& sink) {
    sink.Passed("the last good thing");
    raise(SIGKILL);
  });
  ASSERT_EQ(part.items.size(), 2u);
  EXPECT_EQ(part.items[1].verdict, Verdict::kFailed);
  EXPECT_THAT(part.items[1].detail, ::testing::AllOf(HasSubstr("signal 9"), HasSubstr("the last good thing")));
}

TEST(Report, AHangIsAFinding) {
  const Part part = RunPart("part", std::chrono::seconds(1), [](Sink&) { pause(); });
  ASSERT_EQ(part.items.size(), 1u);
  EXPECT_THAT(part.items[0].detail, HasSubstr("no end within 1 s"));
  EXPECT_EQ(Score({part}), 0);
}

TEST(Report, ThrownThingsAreFindings) {
  const Part part = RunPart("part", kLimit, [](Sink&) { throw std::runtime_error("boom"); });
  ASSERT_EQ(part.items.size(), 1u);
  EXPECT_THAT(part.items[0].detail, HasSubstr("boom"));
}

TEST(Call, HalvesAreRoundedToTheNearest) {
  EXPECT_EQ(AsType(1 + std::ldexp(1, -11), kHalf), 1) << "half way goes to the even";
  EXPECT_EQ(AsType(1 + std::ldexp(3, -11), kHalf), 1 + std::ldexp(1, -9));
  EXPECT_EQ(AsType(-1 - std::ldexp(1, -7), kBf16), -1 - std::ldexp(1, -7));
  EXPECT_EQ(AsType(1 + std::ldexp(1, -8), kBf16), 1);
  EXPECT_EQ(AsType(std::ldexp(1, -25), kHalf), 0);
  EXPECT_EQ(AsType(std::ldexp(3, -25), kHalf), std::ldexp(1, -23)) << "below the normal range";
  EXPECT_EQ(AsType(0, kHalf), 0);
}

// The letters of each case against the signature in abi/aclnn.tsv: a wrong one would call through a wrong prototype.
TEST(Operators, CasesHaveTheSignaturesOfTheTable) {
  std::map<std::string, std::string> letters;
  std::ifstream table(std::string(NPU_SOURCE_DIR) + "/abi/aclnn.tsv");
  for (std::string line; std::getline(table, line);) {
    std::istringstream cells(line);
    std::string name, signature, entry;
    std::getline(cells, name, '\t');
    std::getline(cells, signature, '\t');
    std::istringstream entries(signature);
    while (std::getline(entries, entry, ',')) {
      std::istringstream parts(entry);
      std::string role, kind;
      parts >> role;
      if (role != "out" && role != "inout") kind = role, role = "in";
      if (kind.empty()) parts >> kind;
      const bool list = kind.rfind("tensorlist", 0) == 0, scalar = kind.rfind("scalar", 0) == 0;
      letters[name] += role == "inout" ? 'r' : scalar ? 's' : role == "out" ? (list ? 'O' : 'o') : list ? 'L' : 't';
    }
  }
  std::set<std::string> names;
  for (const OperatorCase& c : ElementwiseCases()) {
    EXPECT_EQ(letters[c.name], c.shape) << c.name;
    EXPECT_TRUE(names.insert(c.name).second) << c.name << " stands twice";
  }
  EXPECT_GE(names.size(), 190u);
}

}  // namespace
}  // namespace npu::check
