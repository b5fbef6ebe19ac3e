// Collectives of fp32 between processes, through the C interface: one call and one synchronise each time.
//
//   bench_all_reduce [--op NAME] [RANKS [BYTES...]]        prints "BYTES best_us median_us" at rank 0
//
// NAME is all-reduce (the default), reduce-scatter, all-gather, broadcast, reduce, all-to-all or exchange (a send to
// the next rank and a receive from the one before); BYTES are those of the larger buffer. Out of place, as the
// referees. Each size is checked once before it is timed. Where there is a core for each rank, its calling thread stays
// on one, as MPI's launchers and shm_bound arrange it.
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "acl/acl.h"
#include "hccl/hccl.h"

namespace {

void Must(int code, const char* what) {
  if (code == 0) return;
  const char* text = aclGetRecentErrMsg();
  std::fprintf(stderr, "%s: %d %s\n", what, code, text != nullptr ? text : "");
  std::exit(1);
}
#define MUST(call) Must(static_cast<int>(call), #call)

void KeepToOneCore(int rank, int ranks) {
  cpu_set_t all, one;
  CPU_ZERO(&one);
  if (::sched_getaffinity(0, sizeof all, &all) != 0 || CPU_COUNT(&all) < ranks) return;
  for (int core = 0, seen = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &all) || seen++ != rank) continue;
    CPU_SET(core, &one);
    ::sched_setaffinity(0, sizeof one, &one);
    return;
  }
}

// A call on `bytes`, and the last float it leaves on rank 0 when rank r gives r + 1 everywhere.
struct Job {
  std::function<HcclResult(void* in, void* out, size_t floats, int rank, int ranks, HcclComm, aclrtStream)> call;
  std::function<int(int ranks)> last;
  bool part = false;  // the result is one rank's part of the bytes
};

const std::map<std::string, Job>& Jobs() {
  static const std::map<std::string, Job> jobs = {
      {"all-reduce",
       {[](void* in, void* out, size_t n, int, int, HcclComm comm, aclrtStream stream) {
          return HcclAllReduce(in, out, n, HCCL_DATA_TYPE_FP32, HCCL_REDUCE_SUM, comm, stream);
        },
        [](int ranks) { return ranks * (ranks + 1) / 2; }}},
      {"reduce",
       {[](void* in, void* out, size_t n, int, int, HcclComm comm, aclrtStream stream) {
          return HcclReduce(in, out, n, HCCL_DATA_TYPE_FP32, HCCL_REDUCE_SUM, 0, comm, stream);
        },
        [](int ranks) { return ranks * (ranks + 1) / 2; }}},
      {"reduce-scatter",
       {[](void* in, void* out, size_t n, int, int ranks, HcclComm comm, aclrtStream stream) {
          const size_t each = n / static_cast<size_t>(ranks);
          return HcclReduceScatter(in, out, each, HCCL_DATA_TYPE_FP32, HCCL_REDUCE_SUM, comm, stream);
        },
        [](int ranks) { return ranks * (ranks + 1) / 2; }, true}},
      {"all-gather",
       {[](void* in, void* out, size_t n, int, int ranks, HcclComm comm, aclrtStream stream) {
          return HcclAllGather(in, out, n / static_cast<size_t>(ranks), HCCL_DATA_TYPE_FP32, comm, stream);
        },
        [](int ranks) { return ranks; }}},
      {"broadcast",
       {[](void* in, void* out, size_t n, int rank, int ranks, HcclComm comm, aclrtStream stream) {
          const auto root = static_cast<uint32_t>(ranks - 1);
          return HcclBroadcast(rank == ranks - 1 ? in : out, n, HCCL_DATA_TYPE_FP32, root, comm, stream);
        },
        [](int ranks) { return ranks; }}},
      {"all-to-all",
       {[](void* in, void* out, size_t n, int, int ranks, HcclComm comm, aclrtStream stream) {
          const size_t each = n / static_cast<size_t>(ranks);
          return HcclAlltoAll(in, each, HCCL_DATA_TYPE_FP32, out, each, HCCL_DATA_TYPE_FP32, comm, stream);
        },
        [](int ranks) { return ranks; }}},
      {"exchange",
       {[](void* in, void* out, size_t n, int rank, int ranks, HcclComm comm, aclrtStream stream) {
          HcclSendRecvItem items[] = {
              {HCCL_SEND, in, n, HCCL_DATA_TYPE_FP32, static_cast<uint32_t>((rank + 1) % ranks)},
              {HCCL_RECV, out, n, HCCL_DATA_TYPE_FP32, static_cast<uint32_t>((rank + ranks - 1) % ranks)}};
          return HcclBatchSendRecv(items, 2, comm, stream);
        },
        [](int ranks) { return ranks; }}},
  };
  return jobs;
}

void RunRank(int rank, int ranks, const Job& job, const std::vector<size_t>& sizes, const std::string& path) {
  MUST(aclInit(nullptr));
  MUST(aclrtSetDevice(rank));
  aclrtStream stream = nullptr;
  MUST(aclrtCreateStream(&stream));
  HcclRootInfo info;
  if (rank == 0) {
    MUST(HcclGetRootInfo(&info));
    std::ofstream(path + ".part", std::ios::binary).write(info.internal, sizeof info.internal);
    std::rename((path + ".part").c_str(), path.c_str());
  } else {
    while (::access(path.c_str(), R_OK) != 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::ifstream(path, std::ios::binary).read(info.internal, sizeof info.internal);
  }
  HcclComm comm = nullptr;
  MUST(HcclCommInitRootInfo(static_cast<uint32_t>(ranks), &info, static_cast<uint32_t>(rank), &comm));
  KeepToOneCore(rank, ranks);
  const size_t most = *std::max_element(sizes.begin(), sizes.end());
  void *in = nullptr, *out = nullptr;
  MUST(aclrtMalloc(&in, most, ACL_MEM_MALLOC_HUGE_FIRST));
  MUST(aclrtMalloc(&out, most, ACL_MEM_MALLOC_HUGE_FIRST));
  std::vector<float> ones(most / 4, static_cast<float>(rank + 1));
  MUST(aclrtMemcpy(in, most, ones.data(), most, ACL_MEMCPY_HOST_TO_DEVICE));
  for (const size_t bytes : sizes) {
    const auto once = [&] {
      MUST(job.call(in, out, bytes / 4, rank, ranks, comm, stream));
      MUST(aclrtSynchronizeStream(stream));
    };
    const int repeats = static_cast<int>(std::clamp<size_t>((size_t{1} << 28) / bytes, 8, 2000));
    for (int i = 0; i < repeats / 8 + 1; ++i) once();
    const auto parts = static_cast<size_t>(ranks);
    const size_t result = bytes / 4 / parts * 4 * (job.part ? 1 : parts);
    float last = 0;
    MUST(aclrtMemcpy(&last, 4, static_cast<char*>(out) + result - 4, 4, ACL_MEMCPY_DEVICE_TO_HOST));
    if (rank == 0 && last != static_cast<float>(job.last(ranks))) {
      std::fprintf(stderr, "wrong result %f\n", static_cast<double>(last));
      std::exit(2);
    }
    std::vector<double> times;
    for (int i = 0; i < repeats; ++i) {
      const auto start = std::chrono::steady_clock::now();
      once();
      times.push_back(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count());
    }
    std::sort(times.begin(), times.end());
    if (rank == 0) {
      std::printf("%zu %.2f %.2f\n", bytes, times.front(), times[times.size() / 2]);
      std::fflush(stdout);
    }
  }
  MUST(HcclCommDestroy(comm));
}

}  // namespace

int main(int argc, char** argv) {
  std::string name = "all-reduce";
  if (argc > 2 && std::string(argv[1]) == "--op") name = argv[2], argv += 2, argc -= 2;
  const auto job = Jobs().find(name);
  if (job == Jobs().end()) return 2;
  const int ranks = argc > 1 ? std::atoi(argv[1]) : 2;
  char directory[] = "/tmp/coll-bench-XXXXXX";
  std::vector<size_t> sizes;
  for (int i = 2; i < argc; ++i) sizes.push_back(std::strtoull(argv[i], nullptr, 10) / 4 * 4);
  if (sizes.empty()) sizes = {4u << 10, 64u << 10, 1u << 20, 4u << 20, 16u << 20, 32u << 20, 64u << 20};
  if (*std::min_element(sizes.begin(), sizes.end()) < 256) return 2;
  if (ranks < 1 || ranks > 64 || ::mkdtemp(directory) == nullptr) return 2;
  const std::string path = std::string(directory) + "/root";
  ::setenv("ANYNPU_MACHINE", directory + 5, 1);
  ::setenv("ANYNPU_CARDS", std::to_string(ranks).c_str(), 1);
  std::vector<pid_t> pids;
  for (int r = 0; r < ranks; ++r) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      RunRank(r, ranks, job->second, sizes, path);
      std::fflush(nullptr);
      ::_exit(0);
    }
    pids.push_back(pid);
  }
  int failed = 0;
  for (const pid_t pid : pids) {
    int status = 0;
    ::waitpid(pid, &status, 0);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) failed = 1;
  }
  ::unlink(path.c_str());
  ::rmdir(directory);
  return failed;
}
