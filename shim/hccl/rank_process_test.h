// Ranks as processes of this very test program, for tests through the C interface.
//
//   TEST(Body, DISABLED_Something) { Process& p = Process::Self(); … }       // what a rank does
//   TEST(Hccl, Something) { EXPECT_THAT(Ranks("Something", 4).Codes(), Each(0)); }
//
// A rank has a device of its own (its rank), unless the environment given says otherwise.
#pragma once

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "acl/acl.h"
#include "hccl/hccl.h"

namespace hccl_test {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using std::chrono::seconds;
constexpr seconds kHung(60);  // nothing takes so long but a hang, on a slow and busy machine too

// What a program has before it sets a field of its own.
inline HcclCommConfig UnsetConfig() {
  HcclCommConfig config;
  std::memset(&config, 0, sizeof config);
  const size_t bytes = sizeof config;
  const uint32_t magic = HCCL_COMM_CONFIG_MAGIC_WORD, version = HCCL_COMM_CONFIG_VERSION;
  std::memcpy(config.reserved, &bytes, sizeof bytes);
  std::memcpy(config.reserved + 8, &magic, sizeof magic);
  std::memcpy(config.reserved + 12, &version, sizeof version);
  config.hcclDeterministic = HCCL_COMM_DETERMINISTIC_CONFIG_NOT_SET;
  return config;
}

inline std::string RecentError() {
  const char* text = aclGetRecentErrMsg();
  return text != nullptr ? text : "";
}
#define HCCL_OK(call)                                                                 \
  do {                                                                                \
    ASSERT_EQ(static_cast<int>(call), 0) << #call << " " << hccl_test::RecentError(); \
  } while (false)

inline int Number(const char* name, int missing = 0) {
  const char* text = std::getenv(name);
  return text != nullptr ? std::atoi(text) : missing;
}

// Started rank processes. The destructor ends what still runs, each by its own id.
class Ranks {
 public:
  using Environment = std::map<std::string, std::string>;
  Ranks(const std::string& body, int ranks, const Environment& environment = {}) {
    char directory[] = "/tmp/anynpu-hccl-XXXXXX";
    if (::mkdtemp(directory) == nullptr) std::abort();
    directory_ = directory;
    const unsigned seed = std::random_device()();
    std::printf("seed %u\n", seed);
    std::fflush(nullptr);
    for (int r = 0; r < ranks; ++r) {
      const pid_t pid = ::fork();
      if (pid != 0) {
        pids_.push_back(pid);
        continue;
      }
      ::setenv("ANYNPU_MACHINE", directory_.substr(5).c_str(), 1);
      ::setenv("ANYNPU_CARDS", "8", 1);
      ::setenv("ANYNPU_HBM", "2G", 1);
      ::setenv("HCCL_TEST_RANK", std::to_string(r).c_str(), 1);
      ::setenv("HCCL_TEST_RANKS", std::to_string(ranks).c_str(), 1);
      ::setenv("HCCL_TEST_SEED", std::to_string(seed).c_str(), 1);
      ::setenv("HCCL_TEST_DIRECTORY", directory_.c_str(), 1);
      for (const auto& [name, value] : environment) ::setenv(name.c_str(), value.c_str(), 1);
      const std::string filter = "--gtest_filter=Body.DISABLED_" + body;
      const std::string log = directory_ + "/log" + std::to_string(r);
      const int out = ::open(log.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
      ::dup2(out, 1);
      ::dup2(out, 2);
      ::execl("/proc/self/exe", "ranks", filter.c_str(), "--gtest_also_run_disabled_tests", "--gtest_brief=1", nullptr);
      ::_exit(127);
    }
  }
  ~Ranks() {
    for (const pid_t pid : pids_) {
      if (pid > 0) {
        ::kill(pid, SIGKILL);
        ::waitpid(pid, nullptr, 0);
      }
    }
    for (size_t r = 0; r < pids_.size(); ++r) ::unlink((directory_ + "/log" + std::to_string(r)).c_str());
    for (int k = 0; k < 8; ++k) {
      ::unlink((directory_ + "/root" + std::to_string(k)).c_str());
      ::unlink((directory_ + "/root" + std::to_string(k) + ".part").c_str());
    }
    ::unlink((directory_ + "/table.json").c_str());
    ::rmdir(directory_.c_str());
  }
  // Exit codes, a signal as 128 + number; what failed ranks said is printed.
  std::vector<int> Codes(seconds limit = seconds(100), bool quiet = false) {
    std::vector<int> codes;
    const auto until = Clock::now() + limit;
    for (size_t r = 0; r < pids_.size(); ++r) {
      int status = 0;
      while (::waitpid(pids_[r], &status, WNOHANG) == 0) {
        if (Clock::now() > until) {
          ::kill(pids_[r], SIGKILL);
          ::waitpid(pids_[r], &status, 0);
          break;
        }
        std::this_thread::sleep_for(milliseconds(2));
      }
      pids_[r] = -1;
      codes.push_back(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
      if (codes.back() != 0 && !quiet) {
        std::ifstream log(directory_ + "/log" + std::to_string(r));
        std::string line;
        while (std::getline(log, line)) std::printf("rank %zu: %s\n", r, line.c_str());
      }
    }
    return codes;
  }
  // Whether a rank has ended; its code is still there to be asked for.
  bool Ended(int rank) const {
    siginfo_t info{};
    const auto pid = static_cast<id_t>(pids_[static_cast<size_t>(rank)]);
    return ::waitid(P_PID, pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0;
  }
  const std::string& directory() const { return directory_; }
  pid_t pid(int rank) const { return pids_[static_cast<size_t>(rank)]; }

 private:
  std::string directory_;
  std::vector<pid_t> pids_;
};

// Of a body: this rank.
class Process {
 public:
  const int rank = Number("HCCL_TEST_RANK"), ranks = Number("HCCL_TEST_RANKS", 1);
  const unsigned seed = static_cast<unsigned>(std::strtoul(std::getenv("HCCL_TEST_SEED"), nullptr, 10));
  aclrtStream stream = nullptr;

  void Start(int device) {
    HCCL_OK(aclInit(nullptr));
    HCCL_OK(aclrtSetDevice(device));
    HCCL_OK(aclrtCreateStream(&stream));
  }
  // The blob of one of several communicators, made by rank `from`.
  void RootInfo(int which, HcclRootInfo* info, int from = 0) const {
    const std::string path = Path(which);
    if (rank == from) {
      HCCL_OK(HcclGetRootInfo(info));
      std::ofstream(path + ".part", std::ios::binary).write(info->internal, sizeof info->internal);
      ASSERT_EQ(std::rename((path + ".part").c_str(), path.c_str()), 0);
      return;
    }
    const auto until = Clock::now() + kHung;
    while (::access(path.c_str(), R_OK) != 0) {
      ASSERT_LT(Clock::now(), until) << "no root info";
      std::this_thread::sleep_for(milliseconds(1));
    }
    std::ifstream(path, std::ios::binary).read(info->internal, sizeof info->internal);
  }
  // What one rank tells the others beside the communicators; `which` is from 4 to 7.
  void Tell(int which) const { std::ofstream(Path(which)) << "told"; }
  void Await(int which) const {
    const auto until = Clock::now() + kHung;
    while (::access(Path(which).c_str(), R_OK) != 0) {
      ASSERT_LT(Clock::now(), until) << "nobody told " << which;
      std::this_thread::sleep_for(milliseconds(1));
    }
  }
  void Join(HcclComm* comm, int which = 0) const {
    HcclRootInfo info;
    RootInfo(which, &info);
    HCCL_OK(HcclCommInitRootInfo(static_cast<uint32_t>(ranks), &info, static_cast<uint32_t>(rank), comm));
  }

 private:
  static std::string Path(int which) {
    return std::string(std::getenv("HCCL_TEST_DIRECTORY")) + "/root" + std::to_string(which);
  }
};

// Device memory with contents.
class DeviceBytes {
 public:
  explicit DeviceBytes(size_t bytes) : bytes_(bytes) {
    EXPECT_EQ(aclrtMalloc(&data_, bytes > 0 ? bytes : 1, ACL_MEM_MALLOC_HUGE_FIRST), 0) << RecentError();
  }
  explicit DeviceBytes(const std::vector<unsigned char>& from) : DeviceBytes(from.size()) { Write(from); }
  ~DeviceBytes() { aclrtFree(data_); }
  DeviceBytes(const DeviceBytes&) = delete;
  DeviceBytes& operator=(const DeviceBytes&) = delete;
  void Write(const std::vector<unsigned char>& from, size_t at = 0) {
    if (from.empty()) return;
    EXPECT_EQ(aclrtMemcpy(this->at(at), from.size(), from.data(), from.size(), ACL_MEMCPY_HOST_TO_DEVICE), 0)
        << RecentError();
  }
  std::vector<unsigned char> Read(size_t at, size_t bytes) const {
    std::vector<unsigned char> to(bytes);
    if (bytes == 0) return to;
    EXPECT_EQ(aclrtMemcpy(to.data(), bytes, this->at(at), bytes, ACL_MEMCPY_DEVICE_TO_HOST), 0) << RecentError();
    return to;
  }
  std::vector<unsigned char> Read() const { return Read(0, bytes_); }
  void* at(size_t offset = 0) const { return static_cast<char*>(data_) + offset; }

 private:
  void* data_ = nullptr;
  size_t bytes_;
};

}  // namespace hccl_test
