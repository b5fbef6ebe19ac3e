#include "base/log/log.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace npu::log {
namespace {

std::string ReadAll(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

class LogTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char text[] = "/tmp/anynpu-log-XXXXXX";
    ASSERT_NE(mkdtemp(text), nullptr);
    directory_ = text;
    setenv("ASCEND_PROCESS_LOG_PATH", text, 1);
    unsetenv("ASCEND_GLOBAL_LOG_LEVEL");
    unsetenv("ASCEND_SLOG_PRINT_TO_STDOUT");
    Reload();
  }
  void TearDown() override {
    unsetenv("ASCEND_PROCESS_LOG_PATH");
    unsetenv("ASCEND_GLOBAL_LOG_LEVEL");
    unsetenv("ASCEND_SLOG_PRINT_TO_STDOUT");
    Reload();
    std::filesystem::remove_all(directory_);
  }
  std::string directory_;
};

TEST_F(LogTest, WritesToTheProcessFileFromErrorOnByDefault) {
  NPU_LOG(kWarning, "test", "not written {}", 1);
  EXPECT_TRUE(std::filesystem::is_empty(directory_)) << "no file before the first line";
  NPU_LOG(kError, "test", "written {}\nin one line", 2);
  const std::string text = ReadAll(Destination());
  EXPECT_EQ(Destination().rfind(directory_, 0), 0u);
  EXPECT_NE(text.find("[ERROR] test("), std::string::npos) << text;
  EXPECT_NE(text.find("written 2 in one line\n"), std::string::npos);
  EXPECT_EQ(text.find("not written"), std::string::npos);
}

TEST_F(LogTest, HonoursTheLevel) {
  setenv("ASCEND_GLOBAL_LOG_LEVEL", "1", 1);
  Reload();
  EXPECT_TRUE(Enabled(kInfo));
  EXPECT_FALSE(Enabled(kDebug));
  setenv("ASCEND_GLOBAL_LOG_LEVEL", "4", 1);
  Reload();
  EXPECT_FALSE(Enabled(kError));
  setenv("ASCEND_GLOBAL_LOG_LEVEL", "nonsense", 1);
  Reload();
  EXPECT_TRUE(Enabled(kError));
  EXPECT_FALSE(Enabled(kWarning));
}

TEST_F(LogTest, PrintsToStdoutWhenAsked) {
  setenv("ASCEND_SLOG_PRINT_TO_STDOUT", "1", 1);
  Reload();
  ::testing::internal::CaptureStdout();
  NPU_LOG(kError, "test", "on the terminal");
  EXPECT_NE(::testing::internal::GetCapturedStdout().find("on the terminal"), std::string::npos);
  EXPECT_TRUE(std::filesystem::is_empty(directory_));
}

TEST_F(LogTest, RepeatingLinesAreCounted) {
  Limiter limiter(std::chrono::hours(1));
  uint64_t dropped = 99;
  EXPECT_TRUE(limiter.Admit(&dropped));
  EXPECT_EQ(dropped, 0u);
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(limiter.Admit(&dropped));
  for (int i = 0; i < 10; ++i) {
    NPU_LOG_EVERY(kError, std::chrono::hours(1), "test", "again and again");
  }
  const std::string text = ReadAll(Destination());
  EXPECT_EQ(text.find("again and again"), text.rfind("again and again"));
}

}  // namespace
}  // namespace npu::log
