#include "base/os/script_line.h"

#include <gtest/gtest.h>

namespace npu::os {
namespace {

TEST(ScriptLine, IsEmptyWithoutAnInterpreter) { EXPECT_EQ(ScriptLine(), ""); }

// As interpreters write it, innermost first.
TEST(ScriptLine, TheFirstFrameOutsideOfPackagesCounts) {
  EXPECT_EQ(LineOfInterest("Stack (most recent call first):\n"
                           "  File \"/venv/lib/python3.11/site-packages/torch/nn/functional.py\", line 7 in linear\n"
                           "  File \"/home/me/train.py\", line 41 in step\n"
                           "  File \"/home/me/train.py\", line 60 in <module>\n"),
            "/home/me/train.py:41 in step");
  EXPECT_EQ(LineOfInterest("  File \"<string>\", line 3 in <module>\n"), "<string>:3 in <module>");
}

TEST(ScriptLine, OfPackagesAloneTheInnermostIsTaken) {
  EXPECT_EQ(
      LineOfInterest("  File \"/x/site-packages/a.py\", line 1 in f\n  File \"/x/site-packages/b.py\", line 2 in g\n"),
      "/x/site-packages/a.py:1 in f");
}

TEST(ScriptLine, FramesComeInnermostFirstUpToTheNumberAsked) {
  const std::string listing =
      "Stack (most recent call first):\n  File \"/x/site-packages/a.py\", line 1 in f\n  File \"b.py\", line 2 in g\n";
  EXPECT_EQ(FramesOf(listing, 3), (std::vector<std::string>{"/x/site-packages/a.py:1 in f", "b.py:2 in g"}));
  EXPECT_EQ(FramesOf(listing, 1), std::vector<std::string>{"/x/site-packages/a.py:1 in f"});
  EXPECT_TRUE(FramesOf(listing, 0).empty());
  EXPECT_TRUE(ScriptFrames(3).empty());
}

TEST(ScriptLine, BrokenListingsAreHarmless) {
  for (const char* text : {"", "\n\n", "  File \"", "  File \"x\", line ", "no frames"}) LineOfInterest(text);
  EXPECT_EQ(LineOfInterest("nothing"), "");
}

}  // namespace
}  // namespace npu::os
