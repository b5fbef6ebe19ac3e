// Signals between processes through the C interface: notifies under a key, and events whose records overlap.
#include <acl/acl.h>
#include <acl/acl_rt.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <string>

#include "shim/hccl/rank_process_test.h"

namespace hccl_test {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

// Bytes that one rank gives to another, by name, in the directory of the test.
class Exchange {
 public:
  template <class T>
  void Put(const std::string& name, const T& value) const {
    const std::string path = directory_ + "/" + name;
    std::ofstream(path + ".part", std::ios::binary).write(reinterpret_cast<const char*>(&value), sizeof value);
    std::filesystem::rename(path + ".part", path);
  }
  template <class T>
  T Get(const std::string& name) const {
    const std::string path = directory_ + "/" + name;
    const auto until = Clock::now() + seconds(60);
    while (::access(path.c_str(), R_OK) != 0) {
      if (Clock::now() > until) {
        ADD_FAILURE() << name << " did not come";
        std::abort();
      }
      std::this_thread::sleep_for(milliseconds(1));
    }
    T value{};
    std::ifstream(path, std::ios::binary).read(reinterpret_cast<char*>(&value), sizeof value);
    return value;
  }

 private:
  const std::string directory_ = std::getenv("SIGNAL_TEST_DIRECTORY");
};
using Key = std::array<char, 65>;

void ExpectSignals(const std::string& body, int ranks, int last = 0) {
  char directory[] = "/tmp/anynpu-signals-XXXXXX";
  ASSERT_NE(::mkdtemp(directory), nullptr);
  std::vector<int> codes = Ranks(body, ranks, {{"SIGNAL_TEST_DIRECTORY", directory}}).Codes();
  std::filesystem::remove_all(directory);
  EXPECT_EQ(codes.back(), last);
  codes.pop_back();
  EXPECT_THAT(codes, Each(0));
}

TEST(Body, DISABLED_Notifies) {
  Process p;
  p.Start(p.rank);
  const Exchange exchange;
  constexpr int kRounds = 200;
  if (p.rank == 0) {
    aclrtNotify there = nullptr, back = nullptr, guarded = nullptr;
    HCCL_OK(aclrtCreateNotify(&there, 0));
    HCCL_OK(aclrtCreateNotify(&back, 0));
    HCCL_OK(aclrtCreateNotify(&guarded, 0));
    Key keys[3]{};
    // A wait that is queued before the notify is shared sees the peer's signal as well.
    HCCL_OK(aclrtWaitAndResetNotify(back, p.stream, 0));
    HCCL_OK(aclrtNotifyGetExportKey(there, keys[0].data(), 65, ACL_RT_NOTIFY_EXPORT_FLAG_DISABLE_PID_VALIDATION));
    HCCL_OK(aclrtNotifyGetExportKey(back, keys[1].data(), 65, ACL_RT_NOTIFY_EXPORT_FLAG_DISABLE_PID_VALIDATION));
    HCCL_OK(aclrtNotifyGetExportKey(guarded, keys[2].data(), 65, 0));
    EXPECT_EQ(aclrtNotifyGetExportKey(there, keys[0].data(), 64, 0), 107000);
    EXPECT_EQ(aclrtNotifyGetExportKey(there, keys[0].data(), 65, 1), 107000);
    exchange.Put("keys", keys);
    HCCL_OK(aclrtSynchronizeStream(p.stream));
    auto pid = exchange.Get<int32_t>("refused");
    HCCL_OK(aclrtNotifySetImportPid(guarded, &pid, 1));
    exchange.Put("allowed", 1);
    for (int round = 0; round < kRounds; ++round) {
      HCCL_OK(aclrtRecordNotify(there, p.stream));
      HCCL_OK(aclrtWaitAndResetNotify(back, p.stream, 20000));
    }
    HCCL_OK(aclrtSynchronizeStream(p.stream));
    // The bit was taken: nobody signals any more.
    HCCL_OK(aclrtWaitAndResetNotify(back, p.stream, 30));
    EXPECT_NE(aclrtSynchronizeStream(p.stream), 0);
    exchange.Put("done", 1);
    exchange.Get<int>("peer waits");
    HCCL_OK(aclrtDestroyNotify(guarded));
    exchange.Get<int>("peer done");
  } else {
    const auto keys = exchange.Get<std::array<Key, 3>>("keys");
    aclrtNotify there = nullptr, back = nullptr, guarded = nullptr;
    HCCL_OK(aclrtNotifyImportByKey(&there, keys[0].data(), 0));
    HCCL_OK(aclrtNotifyImportByKey(&back, keys[1].data(), ACL_RT_NOTIFY_IMPORT_FLAG_ENABLE_PEER_ACCESS));
    HCCL_OK(aclrtRecordNotify(back, p.stream));
    HCCL_OK(aclrtSynchronizeStream(p.stream));
    EXPECT_NE(aclrtNotifyImportByKey(&guarded, keys[2].data(), 0), 0);
    EXPECT_THAT(RecentError(), HasSubstr("not allowed"));
    Key spoilt = keys[0];
    spoilt[20] = spoilt[20] == '0' ? '1' : '0';
    EXPECT_NE(aclrtNotifyImportByKey(&guarded, spoilt.data(), 0), 0);
    EXPECT_NE(aclrtNotifyImportByKey(&guarded, "", 0), 0);
    exchange.Put("refused", static_cast<int32_t>(getpid()));
    exchange.Get<int>("allowed");
    HCCL_OK(aclrtNotifyImportByKey(&guarded, keys[2].data(), 0));
    int32_t self = getpid();
    EXPECT_NE(aclrtNotifySetImportPid(guarded, &self, 1), 0) << "only its maker says who may import";
    for (int round = 0; round < kRounds; ++round) {
      HCCL_OK(aclrtWaitAndResetNotify(there, p.stream, 20000));
      HCCL_OK(aclrtRecordNotify(back, p.stream));
    }
    HCCL_OK(aclrtSynchronizeStream(p.stream));
    exchange.Get<int>("done");
    // A wait whose notify its maker destroys ends with an error.
    HCCL_OK(aclrtWaitAndResetNotify(guarded, p.stream, 0));
    exchange.Put("peer waits", 1);
    EXPECT_NE(aclrtSynchronizeStream(p.stream), 0);
    EXPECT_THAT(RecentError(), HasSubstr("shared notify"));
    exchange.Put("peer done", 1);
  }
}
TEST(BetweenProcesses, NotifiesUnderAKey) { ExpectSignals("Notifies", 2); }

TEST(Body, DISABLED_MakerDies) {
  Process p;
  p.Start(p.rank);
  const Exchange exchange;
  if (p.rank == 0) {
    const auto key = exchange.Get<Key>("key");
    aclrtNotify notify = nullptr;
    HCCL_OK(aclrtNotifyImportByKey(&notify, key.data(), 0));
    HCCL_OK(aclrtWaitAndResetNotify(notify, p.stream, 0));
    exchange.Put("waiting", 1);
    EXPECT_NE(aclrtSynchronizeStream(p.stream), 0);
    EXPECT_THAT(RecentError(), HasSubstr("has ended"));
  } else {
    aclrtNotify notify = nullptr;
    HCCL_OK(aclrtCreateNotify(&notify, 0));
    Key key{};
    HCCL_OK(aclrtNotifyGetExportKey(notify, key.data(), 65, ACL_RT_NOTIFY_EXPORT_FLAG_DISABLE_PID_VALIDATION));
    exchange.Put("key", key);
    exchange.Get<int>("waiting");
    ::raise(SIGKILL);
  }
}
TEST(BetweenProcesses, AWaitEndsWhenTheMakerOfItsNotifyIsKilled) { ExpectSignals("MakerDies", 2, 128 + SIGKILL); }

// The first of two overlapping records is held back; the second one, on another stream, runs at once.
TEST(Body, DISABLED_OverlappingRecords) {
  Process p;
  p.Start(p.rank);
  const Exchange exchange;
  if (p.rank == 0) {
    aclrtEvent event = nullptr;
    HCCL_OK(aclrtCreateEventExWithFlag(&event, ACL_EVENT_IPC));
    aclrtIpcEventHandle handle{};
    HCCL_OK(aclrtIpcGetEventHandle(event, &handle));
    void* word = nullptr;
    HCCL_OK(aclrtMalloc(&word, 64, ACL_MEM_MALLOC_HUGE_FIRST));
    HCCL_OK(aclrtMemset(word, 64, 0, 64));
    aclrtStream other = nullptr, third = nullptr;
    HCCL_OK(aclrtCreateStream(&other));
    HCCL_OK(aclrtCreateStream(&third));
    HCCL_OK(aclrtValueWait(word, 1, ACL_STREAM_WAIT_VALUE_EQ, p.stream));
    HCCL_OK(aclrtRecordEvent(event, p.stream));
    exchange.Put("handle", handle);
    exchange.Get<int>("queued");
    HCCL_OK(aclrtRecordEvent(event, other));
    HCCL_OK(aclrtSynchronizeStream(other));
    exchange.Put("second", 1);
    exchange.Get<int>("looked");
    HCCL_OK(aclrtValueWrite(word, 1, 0, third));
    HCCL_OK(aclrtSynchronizeStream(p.stream));
    exchange.Get<int>("done");
  } else {
    const auto handle = exchange.Get<aclrtIpcEventHandle>("handle");
    aclrtEvent event = nullptr;
    HCCL_OK(aclrtIpcOpenEventHandle(handle, &event));
    HCCL_OK(aclrtStreamWaitEvent(p.stream, event));
    exchange.Put("queued", 1);
    exchange.Get<int>("second");
    HCCL_OK(aclrtSynchronizeEvent(event));  // the latest record
    aclrtStream other = nullptr;
    HCCL_OK(aclrtCreateStream(&other));
    HCCL_OK(aclrtStreamWaitEvent(other, event));
    HCCL_OK(aclrtSynchronizeStream(other));
    aclrtStreamStatus status = ACL_STREAM_STATUS_RESERVED;
    std::this_thread::sleep_for(milliseconds(300));
    HCCL_OK(aclrtStreamQuery(p.stream, &status));
    EXPECT_EQ(status, ACL_STREAM_STATUS_NOT_READY) << "the wait was for the first record, which has not run";
    exchange.Put("looked", 1);
    HCCL_OK(aclrtSynchronizeStream(p.stream));
    exchange.Put("done", 1);
  }
}
TEST(BetweenProcesses, AWaitIsForTheRecordOfItsTime) { ExpectSignals("OverlappingRecords", 2); }

}  // namespace
}  // namespace hccl_test
