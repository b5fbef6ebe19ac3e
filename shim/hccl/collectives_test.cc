// Every collective, through the C interface, in processes of their own.
#include <filesystem>

#include "shim/hccl/rank_process_test.h"
#include "shim/hccl/values_test.h"

namespace hccl_test {
namespace {

using ::testing::Each;
using Bytes = std::vector<unsigned char>;

const HcclDataType kReduced[] = {HCCL_DATA_TYPE_INT8,   HCCL_DATA_TYPE_INT16,  HCCL_DATA_TYPE_INT32,
                                 HCCL_DATA_TYPE_INT64,  HCCL_DATA_TYPE_FP16,   HCCL_DATA_TYPE_FP32,
                                 HCCL_DATA_TYPE_BFP16,  HCCL_DATA_TYPE_FP64,   HCCL_DATA_TYPE_UINT8,
                                 HCCL_DATA_TYPE_UINT16, HCCL_DATA_TYPE_UINT32, HCCL_DATA_TYPE_UINT64};
const HcclDataType kMoved[] = {HCCL_DATA_TYPE_INT8,    HCCL_DATA_TYPE_UINT8,  HCCL_DATA_TYPE_FP16,
                               HCCL_DATA_TYPE_BFP16,   HCCL_DATA_TYPE_UINT32, HCCL_DATA_TYPE_FP64,
                               HCCL_DATA_TYPE_FP8E4M3, HCCL_DATA_TYPE_INT128};

// One call, then the stream is waited for.
class Calls {
 public:
  Calls(Process& process, HcclComm comm)
      : p_(process), comm_(comm), n_(static_cast<size_t>(process.ranks)), me_(static_cast<size_t>(process.rank)) {}

  void ReduceAll(HcclDataType type, HcclReduceOp op, size_t count, int round) {
    const size_t bytes = count * SizeOf(type);
    const int root = round % p_.ranks;
    DeviceBytes in(DataOf(type, p_.seed, p_.rank, round, count)), out(bytes),
        block(DataOf(type, p_.seed, p_.rank, round, count * n_));
    DeviceBytes part(bytes), rooted(bytes);
    HCCL_OK(HcclAllReduce(in.at(), out.at(), count, type, op, comm_, p_.stream));
    HCCL_OK(HcclReduce(in.at(), rooted.at(), count, type, op, static_cast<uint32_t>(root), comm_, p_.stream));
    HCCL_OK(HcclReduceScatter(block.at(), part.at(), count, type, op, comm_, p_.stream));
    HCCL_OK(HcclAllReduce(in.at(), in.at(), count, type, op, comm_, p_.stream));
    Wait();
    const Bytes want = ReducedOf(type, op, p_.seed, p_.ranks, round, 0, count);
    EXPECT_EQ(out.Read(), want) << "all-reduce of type " << type << " op " << op << " count " << count;
    EXPECT_EQ(in.Read(), want) << "all-reduce in place of type " << type << " op " << op << " count " << count;
    if (p_.rank == root) {
      EXPECT_EQ(rooted.Read(), want) << "reduce of type " << type << " op " << op << " count " << count;
    }
    EXPECT_EQ(part.Read(), ReducedOf(type, op, p_.seed, p_.ranks, round, me_ * count, count))
        << "reduce-scatter of type " << type << " op " << op << " count " << count;
  }

  void MoveAll(HcclDataType type, size_t count, int round) {
    const size_t bytes = count * SizeOf(type);
    const auto root = static_cast<uint32_t>(round % p_.ranks);
    DeviceBytes one(DataOf(type, p_.seed, p_.rank, round, count)), all(bytes * n_),
        many(DataOf(type, p_.seed, p_.rank, round, count * n_));
    DeviceBytes swapped(bytes * n_), part(bytes), spread(DataOf(type, p_.seed, p_.rank, round, count)), own(bytes * n_);
    own.Write(DataOf(type, p_.seed, p_.rank, round, count), me_ * bytes);
    HCCL_OK(HcclAllGather(one.at(), all.at(), count, type, comm_, p_.stream));
    HCCL_OK(HcclAllGather(own.at(me_ * bytes), own.at(), count, type, comm_, p_.stream));
    HCCL_OK(HcclAlltoAll(many.at(), count, type, swapped.at(), count, type, comm_, p_.stream));
    HCCL_OK(HcclScatter(p_.rank == static_cast<int>(root) ? many.at() : nullptr, part.at(), count, type, root, comm_,
                        p_.stream));
    HCCL_OK(HcclBroadcast(spread.at(), count, type, root, comm_, p_.stream));
    HCCL_OK(HcclBarrier(comm_, p_.stream));
    Wait();
    for (size_t r = 0; r < n_; ++r) {
      const Bytes theirs = DataOf(type, p_.seed, static_cast<int>(r), round, count * n_);
      EXPECT_EQ(all.Read(r * bytes, bytes), Cut(theirs, 0, bytes))
          << "all-gather of type " << type << " count " << count;
      EXPECT_EQ(own.Read(r * bytes, bytes), Cut(theirs, 0, bytes))
          << "all-gather in place of type " << type << " count " << count;
      EXPECT_EQ(swapped.Read(r * bytes, bytes), Cut(theirs, me_ * bytes, bytes))
          << "all-to-all of type " << type << " count " << count;
      if (r == root) {
        EXPECT_EQ(part.Read(), Cut(theirs, me_ * bytes, bytes)) << "scatter of type " << type << " count " << count;
        EXPECT_EQ(spread.Read(), Cut(theirs, 0, bytes)) << "broadcast of type " << type << " count " << count;
      }
    }
  }

  // Rank i gives rank j (i + 2 j + round) % 5 times `unit` elements.
  void MoveUneven(HcclDataType type, size_t unit, int round) {
    const size_t size = SizeOf(type);
    const auto elements = [&](size_t from, size_t to) {
      return (from + 2 * to + static_cast<size_t>(round)) % 5 * unit;
    };
    std::vector<int64_t> give(n_), give_at(n_), take(n_), take_at(n_), matrix(n_ * n_), blocks(n_), block_at(n_);
    int64_t given = 0, taken = 0, gathered = 0;
    for (size_t p = 0; p < n_; ++p) {
      give[p] = static_cast<int64_t>(elements(me_, p));
      take[p] = static_cast<int64_t>(elements(p, me_));
      blocks[p] = static_cast<int64_t>((p + static_cast<size_t>(round)) % 3 * unit);
      give_at[p] = given, take_at[p] = taken, block_at[p] = gathered;
      given += give[p];
      taken += take[p];
      gathered += blocks[p];
      for (size_t q = 0; q < n_; ++q) matrix[p * n_ + q] = static_cast<int64_t>(elements(p, q));
    }
    const auto mine = static_cast<uint64_t>(blocks[me_]);
    DeviceBytes in(DataOf(type, p_.seed, p_.rank, round, static_cast<size_t>(given))),
        out(static_cast<size_t>(taken) * size);
    DeviceBytes out2(static_cast<size_t>(taken) * size), one(DataOf(type, p_.seed, p_.rank, round, mine));
    DeviceBytes all(static_cast<size_t>(gathered) * size);
    HCCL_OK(HcclAlltoAllV(in.at(), give.data(), give_at.data(), type, out.at(), take.data(), take_at.data(), type,
                          comm_, p_.stream));
    HCCL_OK(HcclAlltoAllVC(in.at(), matrix.data(), type, out2.at(), type, comm_, p_.stream));
    HCCL_OK(HcclAllGatherV(one.at(), mine, all.at(), blocks.data(), block_at.data(), type, comm_, p_.stream));
    Wait();
    for (size_t p = 0; p < n_; ++p) {
      size_t begin = 0;
      for (size_t q = 0; q < me_; ++q) begin += elements(p, q);
      const Bytes theirs = DataOf(type, p_.seed, static_cast<int>(p), round, begin + elements(p, me_) + 1);
      const Bytes want = Cut(theirs, begin * size, elements(p, me_) * size);
      EXPECT_EQ(out.Read(static_cast<size_t>(take_at[p]) * size, want.size()), want) << "all-to-all-v round " << round;
      EXPECT_EQ(out2.Read(static_cast<size_t>(take_at[p]) * size, want.size()), want)
          << "all-to-all-vc round " << round;
      const Bytes part = DataOf(type, p_.seed, static_cast<int>(p), round, static_cast<size_t>(blocks[p]));
      EXPECT_EQ(all.Read(static_cast<size_t>(block_at[p]) * size, part.size()), part) << "all-gather-v round " << round;
    }
    if (type != HCCL_DATA_TYPE_FP32) return;
    DeviceBytes source(DataOf(type, p_.seed, p_.rank, round, static_cast<size_t>(gathered))), result(mine * size);
    HCCL_OK(HcclReduceScatterV(source.at(), blocks.data(), block_at.data(), result.at(), mine, type, HCCL_REDUCE_SUM,
                               comm_, p_.stream));
    Wait();
    EXPECT_EQ(result.Read(),
              ReducedOf(type, HCCL_REDUCE_SUM, p_.seed, p_.ranks, round, static_cast<size_t>(block_at[me_]), mine));
  }

  // Each rank sends to the next by a plain pair, to all by a batch, and to all in a group.
  void Pairs(HcclDataType type, size_t count, int round) {
    const size_t bytes = count * SizeOf(type);
    const size_t next = (me_ + 1) % n_, before = (me_ + n_ - 1) % n_;
    DeviceBytes mine(DataOf(type, p_.seed, p_.rank, round, count)), got(bytes), batch(bytes * n_), grouped(bytes * n_);
    if (n_ > 1) {
      for (const bool sending : {p_.rank % 2 == 0, p_.rank % 2 != 0}) {
        if (sending) HCCL_OK(HcclSend(mine.at(), count, type, static_cast<uint32_t>(next), comm_, p_.stream));
        // With an odd number of ranks the last and the first both send first: their receives follow on a stream of
        // their own.
        if (!sending)
          HCCL_OK(HcclRecv(got.at(), count, type, static_cast<uint32_t>(before), comm_,
                           n_ % 2 == 0 ? p_.stream : Second()));
      }
      HCCL_OK(aclrtSynchronizeStream(Second()));
      Wait();
      EXPECT_EQ(got.Read(), DataOf(type, p_.seed, static_cast<int>(before), round, count));
    }
    std::vector<HcclSendRecvItem> items;
    HCCL_OK(HcclGroupStart());
    for (uint32_t p = 0; p < n_; ++p) {
      items.push_back({HCCL_SEND, mine.at(), count, type, p});
      items.push_back({HCCL_RECV, batch.at(p * bytes), count, type, p});
      HCCL_OK(HcclSend(mine.at(), count, type, p, comm_, p_.stream));
      HCCL_OK(HcclRecv(grouped.at(p * bytes), count, type, p, comm_, p_.stream));
    }
    HCCL_OK(HcclGroupEnd());
    HCCL_OK(HcclBatchSendRecv(items.data(), static_cast<uint32_t>(items.size()), comm_, p_.stream));
    Wait();
    for (size_t p = 0; p < n_; ++p) {
      const Bytes theirs = DataOf(type, p_.seed, static_cast<int>(p), round, count);
      EXPECT_EQ(batch.Read(p * bytes, bytes), theirs);
      EXPECT_EQ(grouped.Read(p * bytes, bytes), theirs);
    }
  }

 private:
  static Bytes Cut(const Bytes& all, size_t at, size_t bytes) {
    return {all.begin() + static_cast<ptrdiff_t>(at), all.begin() + static_cast<ptrdiff_t>(at + bytes)};
  }
  void Wait() { HCCL_OK(aclrtSynchronizeStream(p_.stream)); }
  aclrtStream Second() {
    if (second_ == nullptr) {
      EXPECT_EQ(aclrtCreateStream(&second_), 0);
    }
    return second_;
  }
  Process& p_;
  HcclComm comm_;
  const size_t n_, me_;
  aclrtStream second_ = nullptr;
};

TEST(Body, DISABLED_EveryCall) {
  Process p;
  p.Start(p.rank);
  HcclComm comm = nullptr;
  p.Join(&comm);
  ASSERT_FALSE(::testing::Test::HasFatalFailure());
  uint32_t ranks = 0, rank = 99;
  HCCL_OK(HcclGetRankSize(comm, &ranks));
  HCCL_OK(HcclGetRankId(comm, &rank));
  EXPECT_EQ(static_cast<int>(ranks), p.ranks);
  EXPECT_EQ(static_cast<int>(rank), p.rank);
  Calls calls(p, comm);
  std::mt19937 rng(p.seed);  // the same on all ranks
  int round = 0;
  for (const HcclDataType type : kReduced) {
    for (const HcclReduceOp op : {HCCL_REDUCE_SUM, HCCL_REDUCE_PROD, HCCL_REDUCE_MAX, HCCL_REDUCE_MIN}) {
      const size_t any = 1 + rng() % 3000;
      calls.ReduceAll(type, op, any, ++round);
      if (IsUnsigned(type) || type == HCCL_DATA_TYPE_FP64) continue;  // their counts: tests/coll
      for (const size_t count : {size_t{7}, size_t{31 * 768}}) calls.ReduceAll(type, op, count, ++round);
    }
  }
  calls.ReduceAll(HCCL_DATA_TYPE_FP32, HCCL_REDUCE_SUM, 5000001, ++round);  // streaming stores
  for (const HcclDataType type : kMoved) {
    for (const size_t count : {size_t{1}, size_t{13}, size_t{1 + rng() % 40000}}) calls.MoveAll(type, count, ++round);
  }
  for (int i = 0; i < 6; ++i)
    calls.MoveUneven(i % 2 == 0 ? HCCL_DATA_TYPE_FP32 : HCCL_DATA_TYPE_UINT8, i % 3 == 0 ? 3 : 1000, ++round);
  for (const size_t count : {size_t{1}, size_t{100003}}) calls.Pairs(HCCL_DATA_TYPE_FP32, count, ++round);
  HCCL_OK(HcclAllReduce(nullptr, nullptr, 0, HCCL_DATA_TYPE_FP32, HCCL_REDUCE_SUM, comm, p.stream));
  HCCL_OK(HcclCommDestroy(comm));
}

TEST(Hccl, EveryCallOverSharedMemory) {
  for (const int ranks : {1, 2, 3, 8}) {
    EXPECT_THAT(Ranks("EveryCall", ranks).Codes(), Each(0)) << ranks << " ranks";
  }
}

TEST(Hccl, EveryCallOverSockets) {
  for (const int ranks : {2, 3}) {
    EXPECT_THAT(Ranks("EveryCall", ranks, {{"ANYNPU_HCCL_TRANSPORT", "tcp"}}).Codes(), Each(0)) << ranks << " ranks";
  }
}

// Two communicators of the same ranks, with calls on two streams at once, and one of every second rank made from the
// first.
TEST(Body, DISABLED_SeveralCommunicators) {
  Process p;
  p.Start(p.rank);
  HcclComm first = nullptr, second = nullptr, half = nullptr;
  p.Join(&first, 0);
  p.Join(&second, 1);
  aclrtStream other = nullptr;
  HCCL_OK(aclrtCreateStream(&other));
  std::vector<uint32_t> even;
  for (int r = 0; r < p.ranks; r += 2) even.push_back(static_cast<uint32_t>(r));
  HcclCommConfig config = UnsetConfig();
  std::strcpy(config.hcclCommName, "half");
  const bool inside = p.rank % 2 == 0;
  HCCL_OK(HcclCreateSubCommConfig(&first, inside ? static_cast<uint32_t>(even.size()) : 0,
                                  inside ? even.data() : nullptr, inside ? 7 : 0xFFFFFFFF,
                                  inside ? static_cast<uint32_t>(p.rank / 2) : 0, &config, &half));
  EXPECT_EQ(half != nullptr, inside);
  const size_t count = 20000;
  for (int round = 1; round <= 20; ++round) {
    DeviceBytes a(DataOf(HCCL_DATA_TYPE_FP32, p.seed, p.rank, round, count)),
        b(DataOf(HCCL_DATA_TYPE_INT32, p.seed, p.rank, round + 50, count));
    HCCL_OK(HcclAllReduce(a.at(), a.at(), count, HCCL_DATA_TYPE_FP32, HCCL_REDUCE_SUM, first, p.stream));
    HCCL_OK(HcclAllReduce(b.at(), b.at(), count, HCCL_DATA_TYPE_INT32, HCCL_REDUCE_MAX, second, other));
    HCCL_OK(aclrtSynchronizeStream(other));
    HCCL_OK(aclrtSynchronizeStream(p.stream));
    EXPECT_EQ(a.Read(), ReducedOf(HCCL_DATA_TYPE_FP32, HCCL_REDUCE_SUM, p.seed, p.ranks, round, 0, count));
    EXPECT_EQ(b.Read(), ReducedOf(HCCL_DATA_TYPE_INT32, HCCL_REDUCE_MAX, p.seed, p.ranks, round + 50, 0, count));
  }
  if (inside) {
    char name[128] = {};
    HCCL_OK(HcclGetCommName(half, name));
    EXPECT_STREQ(name, "half");
    DeviceBytes mine(std::vector<unsigned char>(8, static_cast<unsigned char>(p.rank))), all(8 * even.size());
    HCCL_OK(HcclAllGather(mine.at(), all.at(), 8, HCCL_DATA_TYPE_UINT8, half, p.stream));
    HCCL_OK(aclrtSynchronizeStream(p.stream));
    for (size_t i = 0; i < even.size(); ++i) EXPECT_EQ(all.Read(8 * i, 1)[0], even[i]);
    HCCL_OK(HcclCommDestroy(half));
  }
  HCCL_OK(HcclCommDestroy(first));
  HCCL_OK(HcclCommDestroy(second));
}

TEST(Hccl, SeveralCommunicatorsAtOnce) { EXPECT_THAT(Ranks("SeveralCommunicators", 4).Codes(), Each(0)); }

// A buffer that is mapped from several physical handles, in an order of its own, as expandable segments are.
TEST(Body, DISABLED_MappedPieces) {
  Process p;
  p.Start(p.rank);
  HcclComm comm = nullptr;
  p.Join(&comm);
  constexpr size_t kPiece = 2u << 20;
  void* range = nullptr;
  HCCL_OK(aclrtReserveMemAddress(&range, 3 * kPiece, 0, nullptr, 0));
  aclrtPhysicalMemProp prop{};
  prop.handleType = ACL_MEM_HANDLE_TYPE_NONE;
  prop.allocationType = ACL_MEM_ALLOCATION_TYPE_PINNED;
  prop.memAttr = ACL_HBM_MEM_HUGE;
  prop.location.id = static_cast<uint32_t>(p.rank);
  prop.location.type = ACL_MEM_LOCATION_TYPE_DEVICE;
  for (const size_t piece : {1, 2, 0}) {
    aclrtDrvMemHandle handle = nullptr;
    HCCL_OK(aclrtMallocPhysical(&handle, kPiece, &prop, 0));
    HCCL_OK(aclrtMapMem(static_cast<char*>(range) + piece * kPiece, kPiece, 0, handle, 0));
  }
  const size_t count = 3 * kPiece / 4 - 100;
  char* at = static_cast<char*>(range) + 40;
  const auto mine = DataOf(HCCL_DATA_TYPE_FP32, p.seed, p.rank, 1, count);
  HCCL_OK(aclrtMemcpy(at, mine.size(), mine.data(), mine.size(), ACL_MEMCPY_HOST_TO_DEVICE));
  HCCL_OK(HcclAllReduce(at, at, count, HCCL_DATA_TYPE_FP32, HCCL_REDUCE_SUM, comm, p.stream));
  HCCL_OK(aclrtSynchronizeStream(p.stream));
  Bytes got(mine.size());
  HCCL_OK(aclrtMemcpy(got.data(), got.size(), at, got.size(), ACL_MEMCPY_DEVICE_TO_HOST));
  EXPECT_EQ(got, ReducedOf(HCCL_DATA_TYPE_FP32, HCCL_REDUCE_SUM, p.seed, p.ranks, 1, 0, count));
  const size_t part = count / 2 - 7;
  HCCL_OK(aclrtMemcpy(at, mine.size(), mine.data(), mine.size(), ACL_MEMCPY_HOST_TO_DEVICE));
  if (p.rank == 0) HCCL_OK(HcclSend(at, part, HCCL_DATA_TYPE_FP32, 1, comm, p.stream));
  if (p.rank == 1) HCCL_OK(HcclRecv(at, part, HCCL_DATA_TYPE_FP32, 0, comm, p.stream));
  HCCL_OK(aclrtSynchronizeStream(p.stream));
  Bytes moved(part * 4);
  HCCL_OK(aclrtMemcpy(moved.data(), moved.size(), at, moved.size(), ACL_MEMCPY_DEVICE_TO_HOST));
  EXPECT_EQ(moved, DataOf(HCCL_DATA_TYPE_FP32, p.seed, 0, 1, part));
  HCCL_OK(HcclCommDestroy(comm));
}

TEST(Hccl, BuffersMappedFromSeveralHandles) { EXPECT_THAT(Ranks("MappedPieces", 2).Codes(), Each(0)); }

// Ranks that find each other by a rank table instead of a root's blob.
TEST(Body, DISABLED_Table) {
  Process p;
  p.Start(p.rank);
  const std::string path = std::string(std::getenv("HCCL_TEST_DIRECTORY")) + "/table.json";
  if (p.rank == 0) {
    std::ofstream table(path + ".part");
    table
        << R"({"version": "1.0", "server_count": "1", "status": "completed", "server_list": [{"server_id": "127.0.0.1", "device": [)";
    for (int r = 0; r < p.ranks; ++r)
      table << (r > 0 ? ", " : "") << R"({"device_id": ")" << r << R"(", "rank_id": ")" << r << "\"}";
    table << "]}]}";
    table.close();
    ASSERT_EQ(std::rename((path + ".part").c_str(), path.c_str()), 0);
  }
  while (::access(path.c_str(), R_OK) != 0) std::this_thread::sleep_for(milliseconds(1));
  HcclComm comm = nullptr;
  EXPECT_EQ(HcclCommInitClusterInfo("/nowhere/table.json", 0, &comm), HCCL_E_INTERNAL);
  HCCL_OK(HcclCommInitClusterInfo(path.c_str(), static_cast<uint32_t>(p.rank), &comm));
  Calls(p, comm).ReduceAll(HCCL_DATA_TYPE_FP32, HCCL_REDUCE_SUM, 1000, 1);
  HCCL_OK(HcclCommDestroy(comm));
}

TEST(Hccl, ARankTableBringsRanksTogether) { EXPECT_THAT(Ranks("Table", 3).Codes(), Each(0)); }

// Signals are for the client's threads: every thread but the first must block them. How many there are.
int ThreadsWithoutSignals() {
  int threads = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    if (task.path().filename() == std::to_string(getpid())) continue;
    std::ifstream status(task.path() / "status");
    std::string line, name;
    uint64_t blocked = 0;
    while (std::getline(status, line)) {
      if (line.rfind("Name:", 0) == 0) name = line.substr(6);
      if (line.rfind("SigBlk:", 0) == 0) blocked = std::strtoull(line.c_str() + 7, nullptr, 16);
    }
    if (name.empty()) continue;  // ended meanwhile
    ++threads;
    for (const int signal : {SIGTERM, SIGINT, SIGUSR1, SIGALRM, SIGCHLD, SIGPROF}) {
      EXPECT_TRUE((blocked >> (signal - 1) & 1) != 0) << "thread " << name << " takes signal " << signal;
    }
  }
  return threads;
}

// One thread, several devices: no call may need the thread while another waits for its peer.
TEST(Body, DISABLED_OneProcess) {
  Process p;
  constexpr int kDevices = 3;
  int32_t devices[kDevices] = {0, 1, 2};
  HCCL_OK(aclInit(nullptr));
  HCCL_OK(aclrtSetDevice(0));
  HcclComm comms[kDevices];
  HCCL_OK(HcclCommInitAll(kDevices, devices, comms));
  aclrtStream streams[kDevices];
  for (int d = 0; d < kDevices; ++d) {
    HCCL_OK(aclrtSetDevice(d));
    HCCL_OK(aclrtCreateStream(&streams[d]));
  }
  for (int round = 1; round <= 30; ++round) {
    const size_t count = round % 2 == 0 ? 100 : 50000;
    std::vector<std::unique_ptr<DeviceBytes>> data;
    for (int d = 0; d < kDevices; ++d) {
      HCCL_OK(aclrtSetDevice(d));
      data.push_back(std::make_unique<DeviceBytes>(DataOf(HCCL_DATA_TYPE_BFP16, p.seed, d, round, count)));
      HCCL_OK(HcclAllReduce(data.back()->at(), data.back()->at(), count, HCCL_DATA_TYPE_BFP16, HCCL_REDUCE_SUM,
                            comms[d], streams[d]));
    }
    for (int d = 0; d < kDevices; ++d) {
      HCCL_OK(aclrtSetDevice(d));
      HCCL_OK(aclrtSynchronizeStream(streams[d]));
      EXPECT_EQ(data[static_cast<size_t>(d)]->Read(),
                ReducedOf(HCCL_DATA_TYPE_BFP16, HCCL_REDUCE_SUM, p.seed, kDevices, round, 0, count));
    }
  }
  EXPECT_GT(ThreadsWithoutSignals(), 3) << "workers, the listener and the watcher at least";
  for (HcclComm comm : comms) HCCL_OK(HcclCommDestroy(comm));
}

TEST(Hccl, OneThreadServesSeveralDevices) { EXPECT_THAT(Ranks("OneProcess", 1).Codes(), Each(0)); }

}  // namespace
}  // namespace hccl_test
