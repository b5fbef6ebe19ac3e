// Ways in which a process may end while its cards are at work. Each child must be gone soon and for the reason it chose.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#include "acl/acl.h"
#include "acl/acl_rt.h"

namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kHung = std::chrono::seconds(30);  // far above anything but a hang
constexpr int kGood = 7;

const char* Way() { return std::getenv("ANYNPU_TEST_EXIT"); }

// Calls that clients' static destructors make after everything else is over.
void LateCalls() {
  aclrtStream stream = nullptr;
  void* p = nullptr;
  aclrtSynchronizeDevice();
  if (aclrtCreateStream(&stream) == 0) aclrtSynchronizeStream(stream);
  if (aclrtMalloc(&p, 1 << 20, ACL_MEM_MALLOC_HUGE_FIRST) == 0) {
    aclrtMemsetAsync(p, 1 << 20, 1, 1 << 20, stream);
    aclrtSynchronizeStream(stream);
    aclrtFree(p);
  }
  if (stream != nullptr) aclrtDestroyStream(stream);
  aclrtResetDevice(0);
  aclFinalize();
}

struct AtTheVeryEnd {
  ~AtTheVeryEnd() {
    if (armed) LateCalls();
  }
  bool armed = false;
} at_the_very_end;

// Work on several streams: copies, waits that end and one that never does, host functions.
void MakeBusy() {
  aclInit(nullptr);
  aclrtSetDevice(0);
  static void* block = nullptr;
  constexpr size_t kBytes = 32 << 20;
  aclrtMalloc(&block, kBytes, ACL_MEM_MALLOC_HUGE_FIRST);
  static void* word = nullptr;
  aclrtMalloc(&word, 64, ACL_MEM_MALLOC_HUGE_FIRST);
  aclrtMemset(word, 64, 0, 64);
  aclrtEvent event = nullptr;
  aclrtCreateEventExWithFlag(&event, ACL_EVENT_SYNC);
  for (int i = 0; i < 4; ++i) {
    aclrtStream stream = nullptr;
    aclrtCreateStream(&stream);
    for (int k = 0; k < 20; ++k) aclrtMemsetAsync(block, kBytes, k, kBytes, stream);
    aclrtLaunchHostFunc(stream, [](void*) { std::this_thread::sleep_for(std::chrono::milliseconds(1)); }, nullptr);
    aclrtRecordEvent(event, stream);
    if (i == 3) aclrtValueWait(word, 1, ACL_STREAM_WAIT_VALUE_EQ, stream);
  }
}

TEST(ExitChild, DISABLED_Run) {
  ASSERT_NE(Way(), nullptr);
  const std::string way = Way();
  if (way == "atexit") std::atexit(LateCalls);
  if (way == "static") at_the_very_end.armed = true;
  MakeBusy();
  if (way == "thread") std::thread([] { std::exit(kGood); }).join();
  if (way == "_exit") _exit(kGood);
  if (way == "SIGTERM") raise(SIGTERM);
  if (way == "SIGINT") raise(SIGINT);
  if (way == "reset") {
    aclrtResetDeviceForce(0);
    aclFinalize();
  }
  std::exit(kGood);
}

class Exit : public ::testing::TestWithParam<const char*> {};

TEST_P(Exit, IsQuickAndClean) {
  const char* runs_text = std::getenv("ANYNPU_TEST_EXIT_RUNS");
  const int runs = runs_text != nullptr ? std::atoi(runs_text) : 25;  // of 8 ways: 200 ends
  double slowest_ms = 0;
  int ended = 0, slow = 0;
  for (int run = 0; run < runs; ++run) {
    const auto start = Clock::now();
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      setenv("ANYNPU_TEST_EXIT", GetParam(), 1);
      execl("/proc/self/exe", "exit_child", "--gtest_filter=ExitChild.DISABLED_Run", "--gtest_also_run_disabled_tests", "--gtest_brief=1",
            static_cast<char*>(nullptr));
      _exit(127);
    }
    int status = 0;
    while (waitpid(child, &status, WNOHANG) == 0) {
      if (Clock::now() - start > kHung) {
        kill(child, SIGKILL);
        waitpid(child, &status, 0);
        FAIL() << "hung at exit by " << GetParam();
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    const double took_ms = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
    slowest_ms = std::max(slowest_ms, took_ms);
    slow += took_ms >= 1000 ? 1 : 0;
    ++ended;
    const std::string way = GetParam();
    if (way == "SIGTERM" || way == "SIGINT") {
      ASSERT_TRUE(WIFSIGNALED(status)) << status;
      ASSERT_EQ(WTERMSIG(status), way == "SIGTERM" ? SIGTERM : SIGINT);
    } else {
      ASSERT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
      ASSERT_EQ(WEXITSTATUS(status), kGood);
    }
  }
  EXPECT_EQ(ended, runs) << "each ended by itself, for the reason it chose";
  std::printf("%s: %d runs, slowest %.0f ms from start to end, %d took a second or more\n", GetParam(), runs, slowest_ms, slow);
}

INSTANTIATE_TEST_SUITE_P(Ways, Exit, ::testing::Values("thread", "_exit", "SIGTERM", "SIGINT", "atexit", "static", "reset", "return"),
                         [](const auto& way) { return std::string(way.param); });

TEST(Fork, AChildOfAProcessWithDevicesIsToldSo) {
  ASSERT_EQ(aclrtSetDevice(0), 0);
  void *device = nullptr, *pinned = nullptr;
  aclrtStream stream = nullptr;
  ASSERT_EQ(aclrtMalloc(&device, 64, ACL_MEM_MALLOC_HUGE_FIRST), 0);
  ASSERT_EQ(aclrtMallocHost(&pinned, 64), 0);
  ASSERT_EQ(aclrtCreateStream(&stream), 0);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(20);
    int bad = 0;
    void* p = nullptr;
    uint32_t count = 0;
    if (aclrtGetDeviceCount(&count) != 0 || count == 0) bad |= 1;
    if (aclrtSetDevice(0) == 0) bad |= 2;
    const char* text = aclGetRecentErrMsg();
    if (text == nullptr || std::strstr(text, "fork") == nullptr) bad |= 4;
    if (aclrtMalloc(&p, 64, ACL_MEM_MALLOC_HUGE_FIRST) == 0) bad |= 8;
    if (aclrtFree(device) == 0 || aclrtFreeHost(pinned) == 0) bad |= 16;
    if (aclrtSynchronizeStream(stream) == 0 || aclrtDestroyStream(stream) == 0) bad |= 32;
    std::exit(bad);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(aclrtSynchronizeStream(stream), 0);
  EXPECT_EQ(aclrtDestroyStream(stream), 0);
  EXPECT_EQ(aclrtFree(device), 0);
  EXPECT_EQ(aclrtFreeHost(pinned), 0);
  EXPECT_EQ(aclrtResetDevice(0), 0);
}

}  // namespace
