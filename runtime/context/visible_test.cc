#include "runtime/context/visible.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace npu::rt {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(Visible, UnsetMeansAll) { EXPECT_THAT(ReadVisible(nullptr, 3).physical, ElementsAre(0, 1, 2)); }

TEST(Visible, ReadingStopsAtTheFirstThingThatIsNoCard) {
  EXPECT_THAT(ReadVisible("1,3,8", 4).physical, ElementsAre(1, 3));
  EXPECT_THAT(ReadVisible("1, 2,3", 4).physical, ElementsAre(1));
  EXPECT_THAT(ReadVisible("0,1x,2", 4).physical, ElementsAre(0, 1));
  EXPECT_THAT(ReadVisible("0,,2", 4).physical, ElementsAre(0));
  EXPECT_THAT(ReadVisible("2,-1,3", 4).physical, ElementsAre(2));
  EXPECT_THAT(ReadVisible("0,99999999999999999999", 4).physical, ElementsAre(0));
}

TEST(Visible, TheDroppedIdIsNamed) {
  const Visible v = ReadVisible("0,1,3,9", 4);
  EXPECT_THAT(v.physical, ElementsAre(0, 1, 3));
  const Status status = v.Explain(3, "aclrtSetDevice");
  EXPECT_EQ(status.code(), Code::kInvalidDevice);
  EXPECT_THAT(status.Message(), HasSubstr("\"9\""));
}

TEST(Visible, DescendingLeavesNone) {
  for (const char* value : {"1,0", "0,0", "0,2,1"}) {
    const Visible v = ReadVisible(value, 4);
    EXPECT_THAT(v.physical, IsEmpty());
    EXPECT_EQ(v.problem.code(), Code::kNoDevice);
    EXPECT_THAT(v.problem.Message(), HasSubstr("EE1001"));
    EXPECT_THAT(v.problem.Message(), HasSubstr("ascending"));
    EXPECT_THAT(v.problem.Message(), HasSubstr(value));
  }
}

TEST(Visible, NothingAndWordsLeaveNone) {
  for (const char* value : {"", "NoDevFiles", "4", ",0", " 0"}) {
    const Visible v = ReadVisible(value, 4);
    EXPECT_THAT(v.physical, IsEmpty()) << value;
    EXPECT_EQ(v.problem.code(), Code::kNoDevice);
  }
}

TEST(Visible, APhysicalIdGetsItsLogicalOneAsHint) {
  const Status status = ReadVisible("4,5,6,7", 8).Explain(5, "aclrtSetDevice");
  EXPECT_EQ(status.code(), Code::kInvalidDevice);
  EXPECT_THAT(status.Message(), HasSubstr("use 1"));
  EXPECT_THAT(ReadVisible("4", 1).Explain(0, "aclrtSetDevice").Message(), HasSubstr("\"4\""));
}

}  // namespace
}  // namespace npu::rt
