// All-reduces of a size, many times: for tests that look at wires, proxies and signals from outside (test_hosts.py).
#include "tests/coll/kit.h"

namespace hccl_test {
namespace {

constexpr int kFailed = 42;

TEST(Body, DISABLED_Volume) {
  Process p;
  p.Start(p.rank);
  const bool may_fail = Number("HCCL_TEST_MAY_FAIL") != 0;
  const auto must = [&](int code, const char* what) {
    if (code == 0) return;
    std::printf("%s gave %d: %s\n", what, code, RecentError().c_str());
    std::fflush(stdout);
    ::_exit(may_fail ? kFailed : 1);
  };
  HcclRootInfo info;
  const std::string path = std::string(std::getenv("HCCL_TEST_DIRECTORY")) + "/root0";
  if (p.rank == 0) {
    must(HcclGetRootInfo(&info), "HcclGetRootInfo");
    std::ofstream(path + ".part", std::ios::binary).write(info.internal, sizeof info.internal);
    std::rename((path + ".part").c_str(), path.c_str());
  }
  const auto until = Clock::now() + seconds(20);
  while (::access(path.c_str(), R_OK) != 0) {
    if (Clock::now() > until) ::_exit(kFailed + 1);
    std::this_thread::sleep_for(milliseconds(1));
  }
  std::ifstream(path, std::ios::binary).read(info.internal, sizeof info.internal);
  HcclComm comm = nullptr;
  must(HcclCommInitRootInfo(static_cast<uint32_t>(p.ranks), &info, static_cast<uint32_t>(p.rank), &comm),
       "HcclCommInitRootInfo");
  Kit kit(p.seed);
  std::vector<int> members;
  for (int r = 0; r < p.ranks; ++r) members.push_back(r);
  std::printf("begins\n");
  std::fflush(stdout);
  const int calls = Number("HCCL_TEST_CALLS", 1);
  for (int i = 1; i <= calls; ++i) {
    const Order o{static_cast<What>(Number("HCCL_TEST_WHAT")),  // 0: all-reduce
                  HCCL_DATA_TYPE_FP32, HCCL_REDUCE_SUM, static_cast<size_t>(Number("HCCL_TEST_BYTES")) / 4, i};
    if (may_fail && calls > 1000) {  // the values are looked at elsewhere, and a call may be refused
      static DeviceBytes data(o.count * 4);
      must(HcclAllReduce(data.at(), data.at(), o.count, o.type, o.op, comm, p.stream), "HcclAllReduce");
      must(aclrtSynchronizeStream(p.stream), "aclrtSynchronizeStream");
      continue;
    }
    const auto check = kit.Issue(o, comm, members, static_cast<size_t>(p.rank), p.stream);
    must(aclrtSynchronizeStream(p.stream), "aclrtSynchronizeStream");
    check();
    if (Number("HCCL_TEST_PAUSE_MS") > 0) std::this_thread::sleep_for(milliseconds(Number("HCCL_TEST_PAUSE_MS")));
  }
  must(HcclCommDestroy(comm), "HcclCommDestroy");
}

}  // namespace
}  // namespace hccl_test
