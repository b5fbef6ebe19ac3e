// Windows, memory of HcommMemAlloc, and communicators that are suspended and resumed.
#include "shim/hccl/rank_process_test.h"
#include "shim/hccl/values_test.h"

namespace hccl_test {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using Bytes = std::vector<unsigned char>;

// Sums `count` floats of all ranks from `in` into `out` and compares.
void SumOf(const Process& p, HcclComm comm, void* in, void* out, size_t count, int round, aclrtStream stream) {
  const Bytes mine = DataOf(HCCL_DATA_TYPE_FP32, p.seed, p.rank, round, count);
  HCCL_OK(aclrtMemcpy(in, mine.size(), mine.data(), mine.size(), ACL_MEMCPY_HOST_TO_DEVICE));
  HCCL_OK(HcclAllReduce(in, out, count, HCCL_DATA_TYPE_FP32, HCCL_REDUCE_SUM, comm, stream));
  HCCL_OK(aclrtSynchronizeStream(stream));
  Bytes got(mine.size());
  HCCL_OK(aclrtMemcpy(got.data(), got.size(), out, got.size(), ACL_MEMCPY_DEVICE_TO_HOST));
  EXPECT_EQ(got, ReducedOf(HCCL_DATA_TYPE_FP32, HCCL_REDUCE_SUM, p.seed, p.ranks, round, 0, count));
}

TEST(Body, DISABLED_Windows) {
  Process p;
  p.Start(p.rank);
  HcclComm comm = nullptr;
  p.Join(&comm);
  ASSERT_FALSE(::testing::Test::HasFatalFailure());
  const auto ranks = static_cast<uint32_t>(p.ranks), me = static_cast<uint32_t>(p.rank);
  void *block = nullptr, *other = nullptr;
  HCCL_OK(HcommMemAlloc(&block, 3u << 20));
  HCCL_OK(HcommMemAlloc(&other, 1));
  void* window = nullptr;
  EXPECT_EQ(HcclCommRegister(comm, nullptr, 64, &window, 0), HCCL_E_PTR);
  EXPECT_EQ(HcclCommRegister(comm, block, 64, nullptr, 0), HCCL_E_PTR);
  EXPECT_EQ(HcclCommRegister(comm, block, 0, &window, 0), HCCL_E_PARA);
  EXPECT_EQ(HcclCommRegister(comm, &p, 64, &window, 0), HCCL_E_PARA);
  // 1 byte was rounded up to the granularity of 2 MiB, not further.
  EXPECT_EQ(HcclCommRegister(comm, other, (2u << 20) + 1, &window, 0), HCCL_E_PARA);
  HCCL_OK(HcclCommRegister(comm, block, 3u << 20, &window, 0));
  // Lists differ: everybody with both neighbours of a ring, then rank 0 with all.
  uint32_t neighbours[] = {(me + 1) % ranks, (me + ranks - 1) % ranks};
  EXPECT_EQ(HcclCommExchangeMem(comm, window, neighbours, 0), HCCL_E_PARA);
  EXPECT_EQ(HcclCommExchangeMem(comm, window, neighbours, ranks + 1), HCCL_E_PARA);
  EXPECT_EQ(HcclCommExchangeMem(comm, window, nullptr, 1), HCCL_E_PTR);
  EXPECT_EQ(HcclCommExchangeMem(comm, nullptr, neighbours, 1), HCCL_E_PTR);
  HCCL_OK(HcclCommExchangeMem(comm, window, neighbours, 2));
  std::vector<uint32_t> rest;
  for (uint32_t r = 0; r < ranks; ++r) {
    if ((me == 0) != (r == 0)) rest.push_back(r);
  }
  HCCL_OK(HcclCommExchangeMem(comm, window, rest.data(), static_cast<uint32_t>(rest.size())));
  SumOf(p, comm, block, static_cast<char*>(block) + (1u << 20), 200000, 1, p.stream);
  HCCL_OK(HcclCommDeregister(comm, window));
  EXPECT_EQ(HcclCommDeregister(comm, window), HCCL_E_PARA);
  EXPECT_EQ(HcclCommDeregister(comm, nullptr), HCCL_E_PTR);
  EXPECT_EQ(HcclCommExchangeMem(comm, window, neighbours, 2), HCCL_E_PARA);

  HcclCommSymWindow symmetric = nullptr, found = nullptr;
  size_t offset = 99;
  EXPECT_EQ(HcclCommSymWinGet(comm, block, 64, &found, &offset), HCCL_E_NOT_FOUND);
  EXPECT_EQ(HcclCommSymWinRegister(comm, block, 64, &symmetric, 0), HCCL_E_PARA);
  EXPECT_EQ(HcclCommSymWinRegister(comm, block, 0, &symmetric, 1), HCCL_E_PARA);
  EXPECT_EQ(HcclCommSymWinRegister(comm, nullptr, 64, &symmetric, 1), HCCL_E_PTR);
  HCCL_OK(HcclCommSymWinRegister(comm, block, 2u << 20, &symmetric, 1));
  HCCL_OK(HcclCommSymWinGet(comm, static_cast<char*>(block) + 4096, 64, &found, &offset));
  EXPECT_EQ(found, symmetric);
  EXPECT_EQ(offset, 4096u);
  EXPECT_EQ(HcclCommSymWinGet(comm, static_cast<char*>(block) + (2u << 20) - 63, 64, &found, &offset),
            HCCL_E_NOT_FOUND);
  EXPECT_EQ(HcclCommSymWinGet(comm, block, 0, &found, &offset), HCCL_E_PARA);
  EXPECT_EQ(HcclCommSymWinGet(comm, nullptr, 64, &found, &offset), HCCL_E_PTR);
  // Rank 1 brings another size: all learn it.
  HcclCommSymWindow uneven = nullptr;
  const HcclResult result = HcclCommSymWinRegister(comm, block, me == 1 ? 8192 : 4096, &uneven, 1);
  if (ranks > 1) {
    EXPECT_EQ(result, HCCL_E_PARA);
    EXPECT_THAT(RecentError(), HasSubstr("8192"));
  }
  SumOf(p, comm, block, other, 200000, 2, p.stream);
  HCCL_OK(HcclCommSymWinDeregister(symmetric));
  EXPECT_EQ(HcclCommSymWinDeregister(symmetric), HCCL_E_PARA);
  EXPECT_EQ(HcclCommSymWinDeregister(nullptr), HCCL_E_PTR);
  EXPECT_EQ(HcclCommSymWinGet(comm, block, 64, &found, &offset), HCCL_E_NOT_FOUND);

  std::vector<uint32_t> all(ranks);
  for (uint32_t r = 0; r < ranks; ++r) all[r] = r;
  bool backup[64] = {};
  HCCL_OK(HcclCommWorkingDevNicSet(comm, all.data(), backup, ranks));
  EXPECT_EQ(HcclCommWorkingDevNicSet(comm, all.data(), backup, 0), HCCL_E_PARA);
  EXPECT_EQ(HcclCommWorkingDevNicSet(comm, nullptr, backup, ranks), HCCL_E_PTR);
  backup[0] = true;
  const bool two_dies = Number("HCCL_TEST_TWO_DIES") != 0;
  EXPECT_EQ(HcclCommWorkingDevNicSet(comm, all.data(), backup, ranks), two_dies ? HCCL_SUCCESS : HCCL_E_NOT_SUPPORT);

  HCCL_OK(HcclCommDestroy(comm));
  void* none = nullptr;
  EXPECT_EQ(HcommMemAlloc(&none, 0), HCCL_E_PARA);
  EXPECT_EQ(HcommMemAlloc(nullptr, 64), HCCL_E_PTR);
  EXPECT_EQ(HcommMemAlloc(&none, size_t{1} << 50), HCCL_E_RUNTIME);
  HCCL_OK(HcommMemFree(block));
  HCCL_OK(HcommMemFree(other));
  HCCL_OK(HcommMemFree(nullptr));
  EXPECT_EQ(HcommMemFree(block), HCCL_E_RUNTIME);
  EXPECT_EQ(HcommMemFree(&p), HCCL_E_RUNTIME);
}

TEST(Hccl, WindowsOfThreeRanks) { EXPECT_THAT(Ranks("Windows", 3).Codes(), Each(0)); }
TEST(Hccl, WindowsOverSocketsAndOnCardsOfTwoDies) {
  EXPECT_THAT(Ranks("Windows", 2,
                    {{"ANYNPU_HCCL_TRANSPORT", "tcp"}, {"ANYNPU_SOC", "Ascend910_9391"}, {"HCCL_TEST_TWO_DIES", "1"}})
                  .Codes(),
              Each(0));
}

TEST(Body, DISABLED_Resume) {
  Process p;
  p.Start(p.rank);
  HcclComm comm = nullptr;
  p.Join(&comm);
  ASSERT_FALSE(::testing::Test::HasFatalFailure());
  DeviceBytes in(800000), out(800000);
  SumOf(p, comm, in.at(), out.at(), 200000, 1, p.stream);
  if (p.rank == p.ranks - 1) HCCL_OK(HcclCommResume(comm));  // nothing to do
  EXPECT_EQ(HcclCommSuspend(nullptr), HCCL_E_PTR);
  EXPECT_EQ(HcclCommResume(nullptr), HCCL_E_PTR);
  for (int round = 2; round < 5; ++round) {
    // The last rank is suspended; the others wait for it in a call, or in their next one.
    if (p.rank == p.ranks - 1) {
      HCCL_OK(HcclCommSuspend(comm));
      HCCL_OK(HcclCommSuspend(comm));
      HcclResult asynchronous = HCCL_E_RESERVED;
      HCCL_OK(HcclGetCommAsyncError(comm, &asynchronous));
      EXPECT_EQ(asynchronous, HCCL_SUCCESS);
      EXPECT_EQ(HcclBarrier(comm, p.stream), HCCL_E_SUSPENDING);
    } else {
      const HcclResult called = HcclBarrier(comm, p.stream);
      const int waited = aclrtSynchronizeStream(p.stream);
      EXPECT_TRUE(called != HCCL_SUCCESS || waited != 0) << round;
      EXPECT_EQ(HcclCommSuspend(comm), HCCL_E_UNAVAIL);
    }
    HCCL_OK(HcclCommResume(comm));
    SumOf(p, comm, in.at(), out.at(), 200000, round, p.stream);
    char name[COMM_NAME_MAX_LENGTH] = {};
    HCCL_OK(HcclGetCommName(comm, name));
    EXPECT_EQ(std::strlen(name), 32u);
  }
  // All tasks are aborted while the ranks but one wait for it.
  if (p.rank != 0)
    HCCL_OK(HcclAllReduce(in.at(), out.at(), 200000, HCCL_DATA_TYPE_FP32, HCCL_REDUCE_SUM, comm, p.stream));
  HCCL_OK(aclrtDeviceTaskAbort(p.rank, 0));
  if (p.rank != 0) {
    EXPECT_NE(aclrtSynchronizeStream(p.stream), 0);
  }
  aclrtStream fresh = nullptr;
  HCCL_OK(aclrtCreateStream(&fresh));
  // Recovery begins when all have stopped. Rank 0 had no call under way: the others' state tells it what to do.
  p.Tell(4 + p.rank);
  for (int r = 0; r < p.ranks; ++r) p.Await(4 + r);
  ASSERT_FALSE(::testing::Test::HasFatalFailure());
  HCCL_OK(HcclCommResume(comm));
  SumOf(p, comm, in.at(), out.at(), 200000, 9, fresh);
  // A rank that is gone does not come back.
  if (p.rank == 1) ::_exit(::testing::Test::HasFailure() ? 1 : 0);
  EXPECT_TRUE(HcclBarrier(comm, fresh) != HCCL_SUCCESS || aclrtSynchronizeStream(fresh) != 0);
  EXPECT_EQ(HcclCommResume(comm), HCCL_E_REMOTE);
  HCCL_OK(HcclCommDestroy(comm));
}

TEST(Hccl, ASuspendedCommunicatorIsResumed) { EXPECT_THAT(Ranks("Resume", 3).Codes(), Each(0)); }
TEST(Hccl, ASuspendedCommunicatorIsResumedOverSockets) {
  EXPECT_THAT(Ranks("Resume", 3, {{"ANYNPU_HCCL_TRANSPORT", "tcp"}}).Codes(), Each(0));
}

TEST(Body, DISABLED_Parity) {
  Process p;
  p.Start(p.rank);
  HcclComm comm = nullptr;
  p.Join(&comm);
  DeviceBytes data(4096);
  const auto reduce = [&](HcclDataType type, HcclReduceOp op) {
    return HcclAllReduce(data.at(), data.at(), 16, type, op, comm, p.stream);
  };
  EXPECT_EQ(reduce(HCCL_DATA_TYPE_FP64, HCCL_REDUCE_SUM), HCCL_E_NOT_SUPPORT);
  EXPECT_THAT(RecentError(), HasSubstr("fp64"));
  EXPECT_EQ(reduce(HCCL_DATA_TYPE_UINT32, HCCL_REDUCE_MAX), HCCL_E_NOT_SUPPORT);
  EXPECT_EQ(reduce(HCCL_DATA_TYPE_BFP16, HCCL_REDUCE_PROD), HCCL_E_NOT_SUPPORT);
  EXPECT_EQ(reduce(HCCL_DATA_TYPE_INT16, HCCL_REDUCE_PROD), HCCL_E_NOT_SUPPORT);
  HCCL_OK(reduce(HCCL_DATA_TYPE_BFP16, HCCL_REDUCE_SUM));
  HCCL_OK(aclrtSynchronizeStream(p.stream));
  HCCL_OK(HcclCommDestroy(comm));
}

TEST(Hccl, ParityRefusesWhatTheCardDoesNotReduce) {
  EXPECT_THAT(Ranks("Parity", 2, {{"ANYNPU_PARITY", "refuse"}}).Codes(), Each(0));
}

}  // namespace
}  // namespace hccl_test
