// Ranks that are killed, exit or are stopped at random moments of a job: while communicators are made, in collectives,
// while they are torn down. Survivors of a dead rank end with an error that names it; a stopped one is waited for, and
// the job then ends with right values.
#include <poll.h>

#include "tests/coll/kit.h"

namespace hccl_test {
namespace {

constexpr int kRanks = 3, kCanFail = 42;

// Makes and uses communicators for a while. A failing call ends it with kCanFail; the text goes to the log.
TEST(Body, DISABLED_Job) {
  Process p;
  p.Start(p.rank);
  ASSERT_FALSE(::testing::Test::HasFatalFailure());
  Kit kit(p.seed);
  std::mt19937 rng(p.seed);
  std::vector<int> members;
  for (int r = 0; r < p.ranks; ++r) members.push_back(r);
  const auto fails = [](int code, const char* what) {
    if (code == 0) return;
    std::fprintf(stderr, "%s gave %d: %s\n", what, code, RecentError().c_str());
    std::fflush(stderr);
    ::_exit(kCanFail);
  };
  const std::string folder = std::getenv("HCCL_TEST_DIRECTORY");
  for (int which = 0; which < 4; ++which) {
    HcclComm comm = nullptr;
    HcclRootInfo info;
    const std::string path = folder + "/root" + std::to_string(which);
    if (p.rank == 0) {
      fails(HcclGetRootInfo(&info), "HcclGetRootInfo");
      std::ofstream(path + ".part", std::ios::binary).write(info.internal, sizeof info.internal);
      std::rename((path + ".part").c_str(), path.c_str());
    } else {
      // Whoever gives out the blob may be the one that dies: torch's store would say so.
      const auto until = Clock::now() + seconds(20);
      while (::access(path.c_str(), R_OK) != 0) {
        if (Clock::now() > until || ::access((folder + "/over").c_str(), R_OK) == 0) ::_exit(kCanFail + 1);
        std::this_thread::sleep_for(milliseconds(1));
      }
      std::ifstream(path, std::ios::binary).read(info.internal, sizeof info.internal);
    }
    fails(HcclCommInitRootInfo(static_cast<uint32_t>(p.ranks), &info, static_cast<uint32_t>(p.rank), &comm),
          "HcclCommInitRootInfo");
    for (int round = 1; round <= 30; ++round) {
      const What what[] = {What::kAllReduce, What::kAllGather, What::kBroadcast, What::kRing, What::kAlltoAll};
      const Order o{what[rng() % 5], HCCL_DATA_TYPE_FP32,
                    HCCL_REDUCE_SUM, 1 + rng() % 60000,
                    round,           static_cast<uint32_t>(rng() % 3)};
      const auto check = kit.Issue(o, comm, members, static_cast<size_t>(p.rank), p.stream);
      if (::testing::Test::HasFailure()) ::_exit(kCanFail);
      fails(aclrtSynchronizeStream(p.stream), "aclrtSynchronizeStream");
      check();
    }
    fails(HcclCommDestroy(comm), "HcclCommDestroy");
  }
}

std::string Log(const Ranks& ranks, int rank) {
  std::ifstream in(ranks.directory() + "/log" + std::to_string(rank));
  return {std::istreambuf_iterator<char>(in), {}};
}

// The ranks that a text says did not come: "rank 1", "ranks 0, 2".
std::string Missing(const std::string& text) {
  const size_t end = text.find(" of 3 did not come");
  const size_t begin = text.rfind("rank", end);
  return end == std::string::npos || begin == std::string::npos ? "" : text.substr(begin, end - begin);
}

// The time a job takes when nothing happens, so that moments fall into all of its phases.
milliseconds Undisturbed() {
  const auto start = Clock::now();
  Ranks ranks("Job", kRanks);
  EXPECT_THAT(ranks.Codes(), ::testing::Each(0));
  return std::chrono::duration_cast<milliseconds>(Clock::now() - start);
}

TEST(Moments, DeadRanksAreNamedAndTheNextJobStarts) {
  std::mt19937 rng(std::random_device{}());
  Undisturbed();  // the first one reads programs from the disk
  const auto whole = Undisturbed();
  const int moments = Full() ? 350 : 10;
  int ended_before = 0, seen = 0, missing = 0;
  milliseconds longest(0);
  for (int i = 0; i < moments; ++i) {
    const int victim = static_cast<int>(rng() % kRanks);
    const auto moment = milliseconds(rng() % static_cast<unsigned>(whole.count() + 1));
    const int signal = rng() % 2 == 0 ? SIGKILL : SIGTERM;  // SIGTERM: the process ends by itself, as at exit
    // A rank that dies before it has come to the meeting is a missing one: that ends at the connect limit, here 5.6 s.
    Ranks ranks("Job", kRanks, {{"ANYNPU_HCCL_TIME_SCALE", "0.04"}});
    std::this_thread::sleep_for(moment);
    ::kill(ranks.pid(victim), signal);
    const auto killed = Clock::now();
    std::ofstream(ranks.directory() + "/over") << "x";
    const std::vector<int> codes = ranks.Codes(seconds(60), /*quiet=*/true);
    const auto took = std::chrono::duration_cast<milliseconds>(Clock::now() - killed);
    ::unlink((ranks.directory() + "/over").c_str());
    if (codes[static_cast<size_t>(victim)] == 0) ++ended_before;
    bool came = true;
    for (int r = 0; r < kRanks; ++r) {
      const int code = codes[static_cast<size_t>(r)];
      if (r == victim || code == 0 || code == kCanFail + 1) continue;  // through before it mattered
      EXPECT_EQ(code, kCanFail) << Log(ranks, r);
      const std::string log = Log(ranks, r);
      ++seen;
      if (log.find("did not come to the communicator") != std::string::npos) {
        came = false;
        EXPECT_NE(Missing(log).find(std::to_string(victim)), std::string::npos) << log;
        continue;
      }
      EXPECT_NE(log.find("rank " + std::to_string(victim)), std::string::npos)
          << "victim " << victim << " at " << moment.count() << " ms, rank " << r << " says " << log;
    }
    if (!came) ++missing;
    EXPECT_LT(took, kHung) << "victim " << victim << " at " << moment.count() << " ms";
    if (came) longest = std::max(longest, took);
  }
  std::printf(
      "%d moments, %d errors of survivors, %d victims had ended, %d had not come; a job takes %ld ms, the "
      "longest from a kill to the end of all %ld ms\n",
      moments, seen, ended_before, missing, static_cast<long>(whole.count()), static_cast<long>(longest.count()));
  EXPECT_GT(seen, 0);
  Undisturbed();
}

TEST(Moments, StoppedRanksAreNamedAndWaitedFor) {
  std::mt19937 rng(std::random_device{}());
  const auto whole = Undisturbed();
  const int moments = Full() ? 150 : 3;
  int named = 0;
  for (int i = 0; i < moments || (named == 0 && i < moments + 10); ++i) {
    const int victim = static_cast<int>(rng() % kRanks);
    const auto moment = milliseconds(rng() % static_cast<unsigned>(whole.count() + 1));
    Ranks ranks("Job", kRanks);
    std::this_thread::sleep_for(moment);
    ::kill(ranks.pid(victim), SIGSTOP);
    // Until the others have said that they wait, or are through because the victim had nothing left to do. Where they
    // still look for the root's blob they say nothing, and give up after 20 s.
    const auto until = Clock::now() + seconds(8);
    for (bool told = false, through = false; !told && !through && Clock::now() < until;) {
      std::this_thread::sleep_for(milliseconds(50));
      through = true;
      for (int r = 0; r < kRanks; ++r) {
        if (r == victim) continue;
        through = through && ranks.Ended(r);
        told = told || Log(ranks, r).find("anynpu: ") != std::string::npos;
      }
      named += told ? 1 : 0;
    }
    ::kill(ranks.pid(victim), SIGCONT);
    EXPECT_THAT(ranks.Codes(seconds(60)), ::testing::Each(0))
        << "rank " << victim << " was stopped at " << moment.count() << " ms";
  }
  std::printf("%d moments, in %d of them ranks said that they waited\n", moments, named);
  EXPECT_GT(named, 0);
}

// A rank that is stopped between two calls is told in one line, with its state, and the job goes on.
TEST(Body, DISABLED_Stop) {
  Process p;
  p.Start(p.rank);
  HcclComm comm = nullptr;
  p.Join(&comm);
  DeviceBytes data(4000);
  for (int i = 0; i < 2; ++i) {
    if (i == 1 && p.rank == 1) ::raise(SIGSTOP);
    HCCL_OK(HcclAllReduce(data.at(), data.at(), 1000, HCCL_DATA_TYPE_INT32, HCCL_REDUCE_SUM, comm, p.stream));
    HCCL_OK(aclrtSynchronizeStream(p.stream));
  }
  HCCL_OK(HcclCommDestroy(comm));
}

TEST(Moments, TheLineNamesRankPidCardStateAndLastCall) {
  for (const char* transport : {"auto", "tcp"}) {
    Ranks ranks("Stop", 2, {{"ANYNPU_HCCL_TRANSPORT", transport}});
    int status = 0;
    ASSERT_EQ(::waitpid(ranks.pid(1), &status, WUNTRACED), ranks.pid(1));
    ASSERT_TRUE(WIFSTOPPED(status));
    const auto until = Clock::now() + kHung;
    std::string log;
    do {
      std::this_thread::sleep_for(milliseconds(50));
      log = Log(ranks, 0);
    } while ((log.find("anynpu: ") == std::string::npos || log.back() != '\n') && Clock::now() < until);
    EXPECT_THAT(log, ::testing::ContainsRegex("anynpu: rank 0 has waited [0-9]+\\.[0-9]"));
    EXPECT_THAT(log, ::testing::HasSubstr("rank 1 (pid " + std::to_string(ranks.pid(1)) + ", device 1"));
    EXPECT_THAT(log, ::testing::HasSubstr("is stopped (SIGSTOP"));
    EXPECT_THAT(log, ::testing::HasSubstr("HcclAllReduce of 1000 x int32, sum (call 2"));
    EXPECT_THAT(log, ::testing::HasSubstr("its last call is HcclAllReduce of 1000 x int32, sum (call 1)"));
    ::kill(ranks.pid(1), SIGCONT);
    EXPECT_THAT(ranks.Codes(), ::testing::Each(0));
  }
}

}  // namespace
}  // namespace hccl_test
