#include "base/parity/parity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

namespace npu::parity {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

const Finding kFinding{Code::kInvalidParam, "aclnnMatmul", "Tensor self not implemented",
                       "convert self",      "dtype",       "a page"};

class ParityTest : public ::testing::Test {
 protected:
  void Switch(const char* to) {
    setenv("ANYNPU_PARITY", to, 1);
    Reload();
  }
  void SetUp() override {
    char text[] = "/tmp/anynpu-parity-XXXXXX";
    ASSERT_NE(mkdtemp(text), nullptr);
    folder_ = text;
    setenv("ANYNPU_PARITY_REPORT", text, 1);
  }
  void TearDown() override {
    unsetenv("ANYNPU_PARITY");
    unsetenv("ANYNPU_PARITY_REPORT");
    Reload();
    std::filesystem::remove_all(folder_);
  }
  std::string Written(pid_t pid = getpid()) {
    std::stringstream text;
    text << std::ifstream(folder_ + "/parity-" + std::to_string(pid) + ".tsv").rdbuf();
    return text.str();
  }
  std::string folder_;
};

TEST_F(ParityTest, IsOffUnlessAWordSwitchesItOn) {
  EXPECT_FALSE(On());
  Switch("nonsense");
  EXPECT_FALSE(On());
  Switch("warn");
  EXPECT_TRUE(On());
}

TEST_F(ParityTest, RefusesWithTheTextAndWhatToChange) {
  Switch("refuse");
  const Status status = Judge(kFinding);
  EXPECT_EQ(status.code(), Code::kInvalidParam);
  EXPECT_THAT(status.Message(), AllOf(HasSubstr("aclnnMatmul: Tensor self not implemented"), HasSubstr("convert self"),
                                      HasSubstr("a page")));
  EXPECT_THAT(
      Written(),
      HasSubstr("finding\t1\tdtype\t161002\taclnnMatmul\tTensor self not implemented\tconvert self\t\ta page\n"));
}

TEST_F(ParityTest, WarnsOnceForEachAndGoesOn) {
  Switch("warn");
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(Judge(kFinding).ok());
  Unknown("function", "aclnnNew");
  Unknown("function", "aclnnNew");
  const std::string text = Written();
  EXPECT_EQ(text.find("finding"), text.rfind("finding"));
  EXPECT_EQ(text.find("unknown"), text.rfind("unknown"));
}

TEST_F(ParityTest, ACollectiveHasTheCodeOfItsLibrary) {
  Switch("warn");
  Finding finding = kFinding;
  finding.call = "HcclAllReduce";
  finding.code = Code::kUnsupportedDType;
  EXPECT_TRUE(Judge(finding).ok());
  EXPECT_THAT(Written(),
              HasSubstr("finding\t1\tdtype\t" + std::to_string(HcclCode(Code::kUnsupportedDType)) + "\tHcclAllReduce"));
}

TEST_F(ParityTest, ADoubtIsWrittenDownAndNeverRefused) {
  Switch("refuse");
  Doubt(kFinding);
  EXPECT_THAT(Written(), HasSubstr("doubt\t1\tdtype\t161002\taclnnMatmul\t"));
  EXPECT_FALSE(Judge(kFinding).ok()) << "the same as a finding is another entry";
  EXPECT_THAT(Written(), HasSubstr("finding\t2\tdtype\t"));
}

TEST_F(ParityTest, ChildrenHaveAFileOfTheirOwnAndTellHowOftenAtTheEnd) {
  Switch("warn");
  EXPECT_TRUE(Judge(kFinding).ok());
  std::thread other([] {
    for (int i = 0; i < 1000; ++i) [[maybe_unused]] const bool ok = Judge(kFinding).ok();
  });
  const pid_t pid = fork();
  if (pid == 0) {
    alarm(20);
    for (int i = 0; i < 3; ++i) [[maybe_unused]] const bool ok = Judge(kFinding).ok();
    exit(0);
  }
  int status = -1;
  waitpid(pid, &status, 0);
  other.join();
  EXPECT_EQ(status, 0);
  EXPECT_THAT(Written(pid), AllOf(HasSubstr("finding\t1"), HasSubstr("times\t1\t3\n")));
}

TEST_F(ParityTest, FoldersThatCannotBeUsedHarmNothing) {
  for (const std::string& folder : {std::string("/proc/none"), std::string(5000, 'x'), folder_ + "/missing"}) {
    setenv("ANYNPU_PARITY_REPORT", folder.c_str(), 1);
    Switch("warn");
    ::testing::internal::CaptureStderr();
    EXPECT_TRUE(Judge(kFinding).ok());
    EXPECT_THAT(::testing::internal::GetCapturedStderr(),
                HasSubstr("aclnnMatmul: Tensor self not implemented (161002)"));
  }
}

}  // namespace
}  // namespace npu::parity
