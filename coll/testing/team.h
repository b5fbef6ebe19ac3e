// Ranks as forked processes over one shared mapping, for tests of operations without devices and streams.
//
//   RunTeam({.ranks = 4, .tcp = true}, [](Rank& rank) { … rank.Do(call); … });
//
// The body runs in every child; a failed RANK_CHECK or an exit code other than 0 fails the test. "Device memory" of
// rank r is its part of the mapping.
#pragma once

#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "coll/algo/group_op.h"
#include "coll/algo/pair_op.h"
#include "coll/transport/shm.h"
#include "coll/transport/tcp.h"

namespace npu::coll::testing {

#define RANK_CHECK(condition, ...)                                        \
  do {                                                                    \
    if (!(condition)) {                                                   \
      std::fprintf(stderr, "%s:%d: " #condition " ", __FILE__, __LINE__); \
      std::fprintf(stderr, __VA_ARGS__);                                  \
      std::fprintf(stderr, "\n");                                         \
      ::_exit(1);                                                         \
    }                                                                     \
  } while (false)

inline constexpr uint64_t kMemoryOfRank = 48u << 20;

class FakeHost final : public Host {
 public:
  explicit FakeHost(std::byte* memory) : memory_(memory) {}
  Result<void*> Map(const Place& place) override {
    return static_cast<void*>(memory_ + place.slot * kMemoryOfRank + place.offset);
  }
  bool Alive(uint32_t slot) override {
    siginfo_t info{};
    return slot < pids.size() && ::kill(pids[slot], 0) == 0 &&
           !(::waitid(P_PID, static_cast<id_t>(pids[slot]), &info, WEXITED | WNOWAIT | WNOHANG) == 0 &&
             info.si_pid != 0);
  }
  void Ring(uint32_t) override { ++rings; }
  int32_t PidOf(uint32_t) override { return 0; }
  std::vector<pid_t> pids;
  int rings = 0;

 private:
  std::byte* memory_;
};

struct TeamOptions {
  uint32_t ranks = 2;
  bool tcp = false;      // all pairs over sockets
  uint32_t islands = 1;  // with more than one: shared memory inside an island, sockets between (rank % islands)
};

class Rank {
 public:
  Team team;
  std::byte* memory = nullptr;  // of this rank
  uint32_t seed = 0;
  std::atomic<uint32_t>* met = nullptr;  // shared by all ranks

  // Waits until every rank has come here, outside of what is tested; a rank that has failed is not waited for long.
  void Meet() {
    const uint32_t all = team.size * ++meetings_;
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    met->fetch_add(1);
    while (met->load() < all && std::chrono::steady_clock::now() < limit) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  Place PlaceOf(const std::byte* at, uint64_t bytes) const {
    return {team.rank, 0, static_cast<uint64_t>(at - memory), bytes};
  }
  Status Do(Operation& operation) {
    bool done = false;
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(90);
    while (true) {
      NPU_TRY(operation.Advance(parallel_, &done));
      if (done) return {};
      if (std::chrono::steady_clock::now() > limit) {
        const auto ranks = operation.Waiting();
        return Error(Code::kCommTimeout, "{} waits for {} ranks, first {}", operation.Describe(), ranks.size(),
                     ranks.empty() ? 99 : ranks[0]);
      }
      std::this_thread::yield();
    }
  }
  Status Do(GroupCall call) {
    GroupOp operation(team, ++seq_, std::move(call), &finished_);
    return Do(operation);
  }
  Status Do(std::vector<PairItem> items) {
    sent_.resize(team.size);
    received_.resize(team.size);
    for (PairItem& item : items) item.seq = item.send ? ++sent_[item.peer] : ++received_[item.peer];
    PairOp operation(team, "HcclBatchSendRecv", std::move(items));
    return Do(operation);
  }

 private:
  SerialParallel parallel_;
  uint64_t seq_ = 0;
  uint32_t meetings_ = 0;
  std::atomic<uint64_t> finished_{0};
  std::vector<uint64_t> sent_, received_;
};

// The exit codes of the ranks; each 0 when its body returned.
inline std::vector<int> RunTeam(const TeamOptions& options, const std::function<void(Rank&)>& body) {
  const uint32_t n = options.ranks;
  const uint32_t seed = std::random_device()();
  std::printf("seed %u\n", seed);
  void* shared =
      ::mmap(nullptr, kMemoryOfRank * n, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  // Zero is a good atomic; the page outlives every rank.
  auto* met = static_cast<std::atomic<uint32_t>*>(
      ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  auto block = ControlBlock::Make(n);
  const bool sockets = options.tcp || options.islands > 1;
  std::vector<std::vector<int>> ends(n, std::vector<int>(n, -1));
  for (uint32_t a = 0; sockets && a < n; ++a) {
    for (uint32_t b = a + 1; b < n; ++b) {
      int pair[2];
      if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) std::abort();
      ends[a][b] = pair[0];
      ends[b][a] = pair[1];
    }
  }
  const pid_t parent = ::getpid();
  std::vector<pid_t> pids;
  for (uint32_t r = 0; r < n; ++r) {
    std::fflush(nullptr);
    const pid_t pid = ::fork();
    if (pid != 0) {
      pids.push_back(pid);
      continue;
    }
    {
      Rank rank;
      rank.seed = seed;
      rank.met = met;
      rank.memory = static_cast<std::byte*>(shared) + r * kMemoryOfRank;
      FakeHost host(static_cast<std::byte*>(shared));
      std::vector<Member> members(n);
      for (uint32_t i = 0; i < n; ++i) members[i].slot = i;
      auto joined = ControlBlock::Join(n, parent, (*block)->fd(), (*block)->inode());
      RANK_CHECK(joined.ok(), "%s", joined.status().Message().c_str());
      const auto near = [&](uint32_t a) { return !options.tcp && a % options.islands == r % options.islands; };
      std::vector<uint32_t> here;
      std::vector<os::Fd> fds(n);
      for (uint32_t i = 0; i < n; ++i) {
        if (near(i) || i == r) here.push_back(i);
        for (uint32_t j = 0; sockets && j < n; ++j) {
          if (i == r || ends[i][j] < 0) continue;
          ::close(ends[i][j]);
        }
        if (sockets && i != r && near(i)) ::close(ends[r][i]);
        if (i != r && !near(i)) fds[i] = os::Fd(ends[r][i]);
      }
      std::unique_ptr<ShmTransport> shm;
      if (here.size() > 1) {
        shm = std::make_unique<ShmTransport>(r, members, here, std::shared_ptr<ControlBlock>(joined.take()), host);
      }
      auto tcp = TcpTransport::Make(r, members, std::move(fds));
      RANK_CHECK(tcp.ok(), "%s", tcp.status().Message().c_str());
      rank.team.rank = r;
      rank.team.size = n;
      rank.team.direct = here.size() == n;
      rank.team.wires = n > 1 && (options.tcp || options.islands >= n);
      rank.team.name = "test";
      std::vector<uint32_t> host_of(n);
      for (uint32_t i = 0; i < n; ++i) host_of[i] = options.tcp ? i : i % options.islands;
      rank.team.layers = LayersOf(host_of, r);
      if (shm) rank.team.transports.push_back(shm.get());
      if (!rank.team.direct) rank.team.transports.push_back(tcp->get());
      for (uint32_t i = 0; i < n; ++i) {
        rank.team.to.push_back(i == r ? nullptr : near(i) ? static_cast<Transport*>(shm.get()) : tcp->get());
      }
      body(rank);
      // Peers may still be served by this process's pump.
      if (!rank.team.direct)
        RANK_CHECK(rank.Do([&] {
                         GroupCall call;
                         call.print.op = Op::kBarrier;
                         return call;
                       }())
                       .ok(),
                   "last barrier");
      if (sockets) rank.Meet();  // the pump has sent everything
    }
    std::fflush(nullptr);
    ::_exit(0);
  }
  for (auto& row : ends) {
    for (const int fd : row) {
      if (fd >= 0) ::close(fd);
    }
  }
  std::vector<int> codes;
  for (const pid_t pid : pids) {
    int status = 0;
    ::waitpid(pid, &status, 0);
    codes.push_back(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
  }
  ::munmap(shared, kMemoryOfRank * n);
  ::munmap(met, 4096);
  return codes;
}

}  // namespace npu::coll::testing
