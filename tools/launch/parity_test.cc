#include "tools/launch/parity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <fstream>

#include "tools/launch/child.h"

namespace npu::launch {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class ParityTest : public ::testing::Test {
 protected:
  void Write(const char* name, const std::string& text) { std::ofstream(folder_->path() / name) << text; }
  Result<Folder> folder_ = Folder::Make("test");
};

const std::string kFinding =
    "finding\t1\tdtype\t161002\taclnnMatmul\tTensor self not implemented for DT_DOUBLE\tconvert self\ttrain.py:4 in "
    "step\tpage\n";

TEST_F(ParityTest, FindingsOfSeveralProcessesAreAdded) {
  Write("parity-1.tsv", kFinding + "looked\t10\ntimes\t1\t3\n");
  Write("parity-2.tsv",
        kFinding + "unknown\tfunction\taclnnNew\nunknown_times\tfunction\taclnnNew\t6\nlooked\t5\ntimes\t1\t4\n");
  const ParityReport report = ReadParity(folder_->path());
  ASSERT_EQ(report.findings.size(), 1u);
  EXPECT_EQ(report.findings[0].times, 7u);
  EXPECT_FALSE(report.findings[0].at_least);
  EXPECT_EQ(report.looked, 15u);
  const std::string text = ParityText(report, "Ascend910B4", /*refused=*/false);
  EXPECT_THAT(
      text,
      AllOf(
          HasSubstr("1 call would have failed on Ascend910B4"), HasSubstr("train.py:4 in step, 7 times"),
          HasSubstr("change  convert self"), HasSubstr("source  page"),
          HasSubstr("Unknown of Ascend910B4, and so not refused:\n  functions without facts: 6 calls of aclnnNew\n")));
}

TEST_F(ParityTest, ACallWithSeveralReasonsIsOneCall) {
  const std::string other =
      "finding\t2\tdtype\t161002\taclnnMatmul\tTensor mat2 not implemented for DT_DOUBLE\tconvert mat2\ttrain.py:4 in "
      "step\tpage\n";
  Write("parity-1.tsv", kFinding + other + "times\t1\t1\ntimes\t2\t1\n");
  EXPECT_THAT(ParityText(ReadParity(folder_->path()), "Ascend910B4", /*refused=*/false),
              HasSubstr("1 call would have failed on Ascend910B4, for 2 reasons:"));
}

TEST_F(ParityTest, AProcessThatWasKilledLeavesAtLeastWhatItMet) {
  Write("parity-1.tsv", kFinding);
  EXPECT_THAT(ParityText(ReadParity(folder_->path()), "Ascend910B4", true), HasSubstr("at least 1 time"));
}

TEST_F(ParityTest, DoubtsAreListedApartAndRefuseNothing) {
  Write("parity-1.tsv",
        "doubt\t1\tcontiguous\t161002\taclnnSwiGlu\tTensor x is not contiguous\tpass x.contiguous()\ta.py:2 in "
        "f\tpage\n" +
            kFinding + "times\t1\t2\n");
  const ParityReport report = ReadParity(folder_->path());
  EXPECT_EQ(report.findings.size(), 1u);
  ASSERT_EQ(report.doubts.size(), 1u);
  EXPECT_THAT(ParityText(report, "Ascend910B4", true),
              AllOf(HasSubstr("1 call was refused as"),
                    HasSubstr("1 more call does what a page forbids; whether Ascend910B4 enforces it is not known"),
                    HasSubstr("pass x.contiguous()")));
}

TEST_F(ParityTest, NothingFoundIsSaid) {
  Write("parity-1.tsv", "looked\t10\n");
  EXPECT_THAT(ParityText(ReadParity(folder_->path()), "Ascend910B4", true),
              AllOf(HasSubstr("nothing of what Ascend910B4"), HasSubstr("10 calls"), Not(HasSubstr("would"))));
}

TEST_F(ParityTest, BrokenFilesAreReadAsFarAsTheyGo) {
  Write("parity-1.tsv", "finding\t1\n\t\t\t\ntimes\tx\t-4\nlooked\tmany\n" + kFinding + kFinding +
                            "times\t9\t9\ntimes\t1\t99999999999999999999\n");
  Write("other", std::string(1000, '\0'));
  EXPECT_EQ(ReadParity(folder_->path()).findings.size(), 1u);
  EXPECT_TRUE(ReadParity("/no/such/folder").findings.empty());
}

TEST_F(ParityTest, AChildsEndIsToldAsAShellTellsIt) {
  EXPECT_EQ(RunChild("test", [] { return 7; }), 7);
  EXPECT_EQ(RunChild("test", [] { return raise(SIGKILL); }), 128 + 9);
}

}  // namespace
}  // namespace npu::launch
