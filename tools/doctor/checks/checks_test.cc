#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "tools/doctor/checks/check.h"
#include "tools/doctor/fix.h"
#include "tools/doctor/observe/elf.h"
#include "tools/doctor/observe/portrait.h"
#include "tools/doctor/observe/run.h"
#include "tools/doctor/output.h"
#include "tools/doctor/versions.h"

namespace npu::doctor {
namespace {

using testing::HasSubstr;

// A portrait of software cards with everything in order; tests take single things away.
Portrait Whole() {
  Portrait portrait;
  portrait.system.machine = "x86_64";
  portrait.system.cores = 8;
  portrait.toolkit.home = portrait.toolkit.toolkit_home = "/";
  portrait.toolkit.software = true;
  portrait.toolkit.ascendcl = {{"/lib64/libascendcl.so", MachineNumber("x86_64")}};
  portrait.acl = {.asked = true, .count = 2, .soc = "Ascend910B4"};
  portrait.python.version = "3.11.7";
  portrait.python.torch = {{"2.9.0+cpu", "/site"}};
  portrait.python.torch_npu = {{"2.9.0.post2", "/site"}};
  return portrait;
}

std::set<std::string_view> Names(const Portrait& portrait) {
  std::set<std::string_view> names;
  for (const Found& f : RunChecks(portrait).Sorted()) names.insert(f.check->name);
  return names;
}

TEST(Checks, AreDeclaredOnceAndSayWhatTheyAsk) {
  std::set<std::string_view> names;
  for (const Check& check : Checks()) {
    EXPECT_TRUE(names.insert(check.name).second) << check.name;
    EXPECT_FALSE(check.asks.empty()) << check.name;
  }
  EXPECT_GT(names.size(), 45u);
}

TEST(Checks, TheWorstOfTheLowestLayerComesFirst) {
  Portrait portrait = Whole();
  portrait.environment = {{"ASCEND_LAUNCH_BLOCKING", "1"}, {"RANK", "3"}, {"WORLD_SIZE", "2"}};
  portrait.python.torch.clear();
  portrait.python.torch_npu.clear();
  const auto sorted = RunChecks(portrait).Sorted();
  ASSERT_GE(sorted.size(), 3u);
  EXPECT_EQ(sorted[0].check->severity, Severity::kError);
  EXPECT_EQ(sorted.back().check->name, "launch-blocking");
  for (size_t i = 1; i < sorted.size(); ++i) {
    EXPECT_GE(sorted[i - 1].check->severity, sorted[i].check->severity);
    EXPECT_TRUE(sorted[i - 1].check->severity != sorted[i].check->severity ||
                sorted[i - 1].check->layer <= sorted[i].check->layer);
  }
}

TEST(Checks, SettingsTakeTheirBorders) {
  for (const auto& [value, bad] : {std::pair{"119", true},
                                   {"120", false},
                                   {"7200", false},
                                   {"7201", true},
                                   {"", true},
                                   {"12 0", true},
                                   {"999999999999999999999", true}}) {
    Portrait portrait = Whole();
    portrait.environment["HCCL_CONNECT_TIMEOUT"] = value;
    EXPECT_EQ(Names(portrait).count("setting-out-of-range"), bad ? 1u : 0u) << value;
  }
  for (const auto& [value, bad] : {std::pair{"auto", false},
                                   {"16666", false},
                                   {"16666-16700,17000", false},
                                   {"0", true},
                                   {"70000", true},
                                   {"9-1", true},
                                   {"x", true}}) {
    Portrait portrait = Whole();
    portrait.environment["HCCL_NPU_SOCKET_PORT_RANGE"] = value;
    EXPECT_EQ(Names(portrait).count("setting-out-of-range"), bad ? 1u : 0u) << value;
  }
}

TEST(Checks, TheVisibleListIsReadAsTheRuntimeReadsIt) {
  const std::vector<std::pair<const char*, const char*>> cases = {{"0,1", ""},
                                                                  {"1", ""},
                                                                  {"1,0", "visible-unordered"},
                                                                  {"0,0", "visible-unordered"},
                                                                  {"0, 1", "visible-malformed"},
                                                                  {"0,,1", "visible-malformed"},
                                                                  {"", "visible-empty"},
                                                                  {"NoDevFiles", "visible-empty"},
                                                                  {"a", "visible-malformed"}};
  for (const auto& [list, check] : cases) {
    Portrait portrait = Whole();
    portrait.environment["ASCEND_RT_VISIBLE_DEVICES"] = list;
    const auto names = Names(portrait);
    for (const char* name : {"visible-unordered", "visible-malformed", "visible-empty"})
      EXPECT_EQ(names.count(name), std::string_view(name) == check ? 1u : 0u) << list << " " << name;
  }
}

TEST(Versions, RowsOfTheTable) {
  ASSERT_TRUE(CombinationFor("2.9.0.post2+git12345"));
  EXPECT_TRUE(CombinationFor("2.9.0.post2")->exact);
  EXPECT_EQ(CombinationFor("2.9.0.post2")->torch, "2.9.0");
  const auto unlisted = CombinationFor("2.9.0.post99");
  ASSERT_TRUE(unlisted);
  EXPECT_FALSE(unlisted->exact);
  EXPECT_THAT(unlisted->cann, testing::IsSupersetOf({"8.5.0", "9.0.0", "9.1.0"}));
  EXPECT_FALSE(CombinationFor("7.0.0"));
  EXPECT_FALSE(CombinationFor("junk"));
  EXPECT_THAT(PythonsFor("2.1.0"), testing::ElementsAre("3.8", "3.9", "3.10", "3.11"));
  EXPECT_TRUE(SameRelease("8.2.RC1.alpha003", "8.2.RC1"));
  EXPECT_TRUE(SameRelease("9.1.0", "9.1.0"));
  EXPECT_FALSE(SameRelease("8.2.RC10", "8.2.RC1"));
  EXPECT_FALSE(SameRelease("9.0.0", "9.1.0"));
  EXPECT_TRUE(Older("2.9.0", "2.10.0"));
  EXPECT_FALSE(Older("2.10.0", "2.9.0"));
}

TEST(Smi, TheTableIsReadAndOtherTextsGiveNothing) {
  const std::string text =
      "| npu-smi 25.5.2                   Version: 25.5.2                                               |\n"
      "| 0     910B4               | OK            | 89.9        39                0    / 0             |\n"
      "| 0                         | 0000:41:00.0  | 0           0    / 0          2922 / 32768         |\n"
      "| 1     910B4               | Alarm         | 89.9        39                0    / 0             |\n"
      "| 0                         | 0000:42:00.0  | 7           0    / 0          30000/ 32768         |\n"
      "| NPU     Chip              | Process id    | Process name             | Process memory(MB)      |\n"
      "| 1       0                 | 4711          | python                   | 27000                   |\n";
  const Smi smi = ParseSmi(text);
  ASSERT_EQ(smi.cards.size(), 2u);
  EXPECT_EQ(smi.version, "25.5.2");
  EXPECT_EQ(smi.cards[1].health, "Alarm");
  EXPECT_EQ(smi.cards[0].hbm_used_mb, 2922u);
  EXPECT_EQ(smi.cards[1].hbm_used_mb, 30000u);
  EXPECT_EQ(smi.cards[1].hbm_total_mb, 32768u);
  EXPECT_THAT(smi.cards[1].processes, testing::ElementsAre("python (pid 4711)"));
  EXPECT_TRUE(ParseSmi("dcmi module initialize failed. ret is -8005\n").cards.empty());
  EXPECT_TRUE(ParseSmi(std::string("|||\n| 99999999999999999999 x | | /\n\0|", 34)).cards.size() <= 1);
}

TEST(Run, ProgramsHaveALimitAndCrashesAreSeen) {
  EXPECT_TRUE(RunProgram({"sleep", "60"}, 100).timed_out);
  EXPECT_FALSE(RunProgram({"/no/such/program"}, 10'000).started);
  const Ran echo = RunProgram({"echo", "word"}, 10'000);
  EXPECT_EQ(echo.out, "word\n");
  EXPECT_EQ(echo.code, 0);
  EXPECT_EQ(RunInChild(
                [] {
                  abort();
                  return std::string();
                },
                10'000)
                .signal,
            6);
  EXPECT_EQ(RunInChild([] { return std::string("answer"); }, 10'000).out, "answer");
}

TEST(Fix, QuotesValuesForTheShell) {
  static const Check check{"name", Severity::kError, Layer::kEnvironment, "", nullptr};
  const std::vector<Found> found = {{&check, "", "", {Fix::kSet, "A", "it's $HOME"}},
                                    {&check, "", "", {Fix::kSet, "LD_LIBRARY_PATH", "/x y:$LD_LIBRARY_PATH"}},
                                    {&check, "", "", {Fix::kUnset, "B", ""}},
                                    {&check, "", "", {Fix::kUnset, "B", ""}}};
  const std::string script = FixScript(found);
  EXPECT_THAT(script, HasSubstr("export A='it'\\''s $HOME'\n"));
  EXPECT_THAT(script, HasSubstr("export LD_LIBRARY_PATH='/x y'\"${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}\"\n"));
  EXPECT_EQ(script.find("unset B"), script.rfind("unset B"));
  EXPECT_EQ(FixScript({}), "");
}

TEST(Elf, CutFilesAreNoLibraries) {
  EXPECT_NE(ElfMachine("/proc/self/exe"), 0);
  EXPECT_EQ(ElfMachine("/etc/passwd"), 0);
  EXPECT_EQ(ElfMachine("/no/such/file"), 0);
  EXPECT_EQ(ElfMachine("/dev/null"), 0);
  EXPECT_TRUE(ElfSymbols("/etc/passwd", "", false).empty());
}

TEST(Versions, RangesOfFirmwareTakeTheirBorders) {
  EXPECT_TRUE(InRange("7.0.0.5.1", "[7.0.0,7.7.99]"));
  EXPECT_TRUE(InRange("7.7.99.9.9", "[7.0.0,7.7.99]"));
  EXPECT_FALSE(InRange("7.8.0", "[7.0.0,7.7.99]"));
  EXPECT_FALSE(InRange("6.9.99", "[7.0.0,7.7.99]"));
  for (const char* unreadable : {"", "[", "[]", "[,]", "[a,b]", "7.0.0", "[7.0.0 7.7.99]"})
    EXPECT_TRUE(InRange("1.0", unreadable)) << unreadable;
  EXPECT_TRUE(InRange("", "[7.0.0,7.7.99]"));
}

TEST(Versions, DriversOfACannRelease) {
  EXPECT_EQ(DriversFor("9.1.0").front(), "25.2");
  EXPECT_EQ(DriversFor("8.5.0.B1").front(), "25.0");
  EXPECT_TRUE(DriversFor("7.0.0").empty());
  EXPECT_EQ(DriverSeries("24.1.rc3.b999"), "24.1");
}

}  // namespace
}  // namespace npu::doctor
