// What a machine needs of the host and what it leaves behind: it lives with a 64 MiB /dev/shm, and nothing outlives
// kill -9.
#include <acl/acl.h>
#include <acl/acl_rt.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "shim/hccl/rank_process_test.h"

namespace hccl_test {
namespace {

using ::testing::ElementsAre;
constexpr size_t kMiB = size_t{1} << 20;
constexpr int kNoNamespaces = 77;

// A /dev/shm of 64 MiB for this process and its children. False where the system allows no mount namespaces.
bool SmallShm() {
  const uid_t uid = geteuid();
  const bool fine = unshare(CLONE_NEWNS) == 0 || unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0;
  if (!fine) return false;
  if (geteuid() != uid) {
    std::ofstream map("/proc/self/uid_map");
    map << uid << ' ' << uid << " 1" << std::flush;
  }
  mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr);
  return mount("tmpfs", "/dev/shm", "tmpfs", 0, "size=64m") == 0;
}

TEST(Body, DISABLED_SmallShm) {
  struct statvfs shm {};
  ASSERT_EQ(statvfs("/dev/shm", &shm), 0);
  ASSERT_EQ(shm.f_blocks * shm.f_frsize, 64 * kMiB);
  Process p;
  p.Start(p.rank);
  HcclComm comm = nullptr;
  p.Join(&comm);
  constexpr size_t kCount = 24 * kMiB;  // 96 MiB on each rank
  void* data = nullptr;
  HCCL_OK(aclrtMalloc(&data, kCount * 4, ACL_MEM_MALLOC_HUGE_FIRST));
  HCCL_OK(aclrtMemsetD32(data, kCount * 4, static_cast<uint32_t>(p.rank + 1) + p.seed % 1000, kCount));
  HCCL_OK(HcclAllReduce(data, data, kCount, HCCL_DATA_TYPE_INT32, HCCL_REDUCE_SUM, comm, p.stream));
  HCCL_OK(aclrtSynchronizeStream(p.stream));
  std::vector<uint32_t> back(kCount);
  HCCL_OK(aclrtMemcpy(back.data(), kCount * 4, data, kCount * 4, ACL_MEMCPY_DEVICE_TO_HOST));
  EXPECT_EQ(std::count(back.begin(), back.end(), 3 + 2 * (p.seed % 1000)), static_cast<std::ptrdiff_t>(kCount));
  HCCL_OK(HcclCommDestroy(comm));
}

TEST(Leftovers, ADevShmOf64MiBIsEnough) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    if (!SmallShm()) _exit(kNoNamespaces);
    const auto codes = Ranks("SmallShm", 2).Codes();
    std::fflush(nullptr);
    _exit(codes == std::vector<int>{0, 0} ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == kNoNamespaces) GTEST_SKIP() << "no mount namespaces here";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

std::set<std::string> FilesIn(const std::string& directory) {
  std::set<std::string> files;
  std::error_code none;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory, none)) {
    if (entry.is_regular_file()) files.insert(entry.path());
  }
  return files;
}

// Everything that could leave something: memory, shared blocks and events, a communicator, work under way.
TEST(Body, DISABLED_KilledBusy) {
  Process p;
  p.Start(p.rank);
  HcclComm comm = nullptr;
  p.Join(&comm);
  void *data = nullptr, *pinned = nullptr;
  HCCL_OK(aclrtMalloc(&data, 64 * kMiB, ACL_MEM_MALLOC_HUGE_FIRST));
  HCCL_OK(aclrtMallocHost(&pinned, kMiB));
  char key[65];
  HCCL_OK(aclrtIpcMemGetExportKey(data, 64 * kMiB, key, sizeof key, 1));
  aclrtEvent event = nullptr;
  HCCL_OK(aclrtCreateEventExWithFlag(&event, ACL_EVENT_IPC));
  for (int round = 0;; ++round) {
    HCCL_OK(HcclAllReduce(data, data, kMiB, HCCL_DATA_TYPE_FP32, HCCL_REDUCE_SUM, comm, p.stream));
    HCCL_OK(aclrtMemsetAsync(data, kMiB, 1, kMiB, p.stream));
    HCCL_OK(aclrtSynchronizeStream(p.stream));
    if (round == 20) ::raise(SIGKILL);
  }
}

// A later process finds the card as if nobody had been there.
TEST(Body, DISABLED_Successor) {
  HCCL_OK(aclrtSetDevice(0));
  size_t free = 0, total = 0;
  HCCL_OK(aclrtGetMemInfo(ACL_HBM_MEM, &free, &total));
  void* all = nullptr;
  HCCL_OK(aclrtMalloc(&all, free - kMiB, ACL_MEM_MALLOC_HUGE_FIRST));
}

TEST(Leftovers, NothingOutlivesKillNine) {
  const char* set = std::getenv("XDG_RUNTIME_DIR");
  char directory[] = "/tmp/anynpu-left-XXXXXX";
  ASSERT_NE(mkdtemp(directory), nullptr);
  setenv("XDG_RUNTIME_DIR", directory, 1);
  const auto shm = FilesIn("/dev/shm");
  const Ranks::Environment same = {{"ANYNPU_MACHINE", "left-" + std::to_string(getpid())}};
  EXPECT_THAT(Ranks("KilledBusy", 2, same).Codes(), ElementsAre(128 + SIGKILL, 128 + SIGKILL));
  std::set<std::string> now = FilesIn("/dev/shm"), fresh;
  std::set_difference(now.begin(), now.end(), shm.begin(), shm.end(), std::inserter(fresh, fresh.begin()));
  for (const std::string& file : fresh) EXPECT_EQ(file.find("npu"), std::string::npos) << file;
  // At most the small state file, sparse, until somebody joins again.
  EXPECT_LE(FilesIn(directory).size(), 1u);
  for (const std::string& file : FilesIn(directory)) {
    struct stat s {};
    ASSERT_EQ(stat(file.c_str(), &s), 0);
    EXPECT_LT(static_cast<size_t>(s.st_blocks) * 512, kMiB) << file;
  }
  EXPECT_THAT(Ranks("Successor", 1, same).Codes(), ElementsAre(0));
  EXPECT_TRUE(FilesIn(directory).empty()) << "the machine goes with its last process";
  if (set != nullptr) {
    setenv("XDG_RUNTIME_DIR", set, 1);
  } else {
    unsetenv("XDG_RUNTIME_DIR");
  }
  std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace hccl_test
