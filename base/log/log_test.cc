#include "base/log/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>
#include <vector>

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
  EXPECT_NE(Destination().find("/debug/plog/plog-" + std::to_string(getpid()) + "_2"), std::string::npos)
      << Destination();
  EXPECT_THAT(text, ::testing::MatchesRegex(
                        ".ERROR. test.[0-9]+,[^)]+.:....-..-..-..:..:......\\.... .log_test.cc:[0-9]+.[0-9]+ .*\n"));
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

TEST_F(LogTest, EventsHaveAFolderAndASwitchOfTheirOwn) {
  setenv("ASCEND_GLOBAL_LOG_LEVEL", "4", 1);
  Reload();
  WriteEvent("test", "opened", NPU_HERE);
  std::string found;
  for (const auto& entry : std::filesystem::directory_iterator(directory_ + "/run/plog")) found = ReadAll(entry.path());
  EXPECT_NE(found.find("[EVENT] test("), std::string::npos) << found;
  EXPECT_FALSE(std::filesystem::exists(directory_ + "/debug"));
  setenv("ASCEND_GLOBAL_EVENT_ENABLE", "0", 1);
  Reload();
  std::filesystem::remove_all(directory_ + "/run");
  WriteEvent("test", "silent", NPU_HERE);
  EXPECT_FALSE(std::filesystem::exists(directory_ + "/run"));
  unsetenv("ASCEND_GLOBAL_EVENT_ENABLE");
}

TEST_F(LogTest, EventsLeaveNothingInAHomeWhereNobodyAskedForALog) {
  unsetenv("ASCEND_PROCESS_LOG_PATH");
  const std::string home = getenv("HOME") ? getenv("HOME") : "";
  setenv("HOME", directory_.c_str(), 1);
  Reload();
  WriteEvent("test", "opened", NPU_HERE);
  EXPECT_TRUE(std::filesystem::is_empty(directory_));
  WriteEvent("PROFILING", "aclnnAdd 1 us", NPU_HERE);
  EXPECT_TRUE(std::filesystem::exists(directory_ + "/ascend/log/run/plog"));
  NPU_LOG(kError, "test", "an error");
  EXPECT_TRUE(std::filesystem::exists(directory_ + "/ascend/log/debug/plog"));
  setenv("HOME", home.c_str(), 1);
}

TEST_F(LogTest, FoldersThatCannotBeUsedAreToldOnceAndLoseLines) {
  const std::string bad[] = {"/proc/no/such", directory_ + "/file/below", std::string(5000, 'x'), "/dev/null"};
  std::ofstream(directory_ + "/file") << "a file";
  ::testing::internal::CaptureStderr();
  for (const std::string& path : bad) {
    setenv("ASCEND_PROCESS_LOG_PATH", path.c_str(), 1);
    Reload();
    for (int i = 0; i < 3; ++i) NPU_LOG(kError, "test", "lost {}", i);
    WriteEvent("test", "lost", NPU_HERE);
  }
  const std::string told = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::count(told.begin(), told.end(), '\n'), 1) << told;
  EXPECT_NE(told.find("ASCEND_PROCESS_LOG_PATH"), std::string::npos);
  EXPECT_LT(told.size(), 500u);
}

TEST_F(LogTest, FullFilesAreFollowedByOthersAndTheOldestGo) {
  setenv("ASCEND_HOST_LOG_FILE_NUM", "2", 1);
  Reload();
  const std::string text(8000, 'x');
  std::string first;
  for (int i = 0; i < 3 * 2700; ++i) {
    NPU_LOG(kError, "test", "{} {}", i, text);
    if (i == 0) first = Destination();
  }
  uint64_t files = 0, largest = 0;
  for (const auto& entry : std::filesystem::directory_iterator(directory_ + "/debug/plog")) {
    ++files;
    largest = std::max<uint64_t>(largest, entry.file_size());
  }
  EXPECT_EQ(files, 2u);
  EXPECT_LT(largest, 21u << 20);
  EXPECT_FALSE(std::filesystem::exists(first));
  unsetenv("ASCEND_HOST_LOG_FILE_NUM");
}

// A child forked while another thread writes has a file of its own and never waits for a lock of its parent's.
TEST_F(LogTest, ForkedChildrenWriteTheirOwnFile) {
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    while (!stop) NPU_LOG(kError, "test", "of the parent");
  });
  std::vector<pid_t> children;
  for (int i = 0; i < 20; ++i) {
    const pid_t pid = fork();
    if (pid == 0) {
      alarm(20);
      Write(kError, "test", "of the child", NPU_HERE);
      _exit(0);
    }
    children.push_back(pid);
  }
  for (const pid_t pid : children) {
    int status = -1;
    waitpid(pid, &status, 0);
    EXPECT_EQ(status, 0);
    bool found = false;
    for (const auto& entry : std::filesystem::directory_iterator(directory_ + "/debug/plog")) {
      if (entry.path().filename().string().rfind("plog-" + std::to_string(pid) + "_", 0) == 0)
        found = ReadAll(entry.path()).find("of the child") != std::string::npos;
    }
    EXPECT_TRUE(found) << pid;
  }
  stop = true;
  writer.join();
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
