// What device memory costs: first and second use of a block, translation, checks, mapping a peer.
//
//   cmake --build --preset release --target memory_bench && build/release/bench/micro/memory/memory_bench
#include <benchmark/benchmark.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "device/doorbell/doorbell.h"
#include "device/figures/read.h"
#include "device/hbm/hbm.h"
#include "device/hbm/host_memory.h"
#include "device/hbm/vmm.h"
#include "device/machine/machine.h"

namespace npu {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

void* Must(Result<void*> result) {
  if (result.ok()) return *result;
  std::fprintf(stderr, "%s\n", result.status().Message().c_str());
  std::exit(1);
}

// Pages are made: the block goes back to the host before the next round.
void AllocateFirst(benchmark::State& state) {
  const size_t bytes = static_cast<size_t>(state.range(0)) * kMiB;
  for (auto _ : state) {
    void* p = Must(hbm::Allocate(0, bytes));
    state.PauseTiming();
    hbm::Free(p).ok();
    hbm::Trim();
    state.ResumeTiming();
  }
}
BENCHMARK(AllocateFirst)->Arg(2)->Arg(20)->Arg(200)->Unit(benchmark::kMicrosecond);

void AllocateAgainAndFree(benchmark::State& state) {
  const size_t bytes = static_cast<size_t>(state.range(0)) * kMiB;
  for (auto _ : state) hbm::Free(Must(hbm::Allocate(0, bytes))).ok();
}
BENCHMARK(AllocateAgainAndFree)->Arg(2)->Arg(20)->Unit(benchmark::kNanosecond);

// Writing a block the first time it is handed out, and again: what page faults would cost.
void FillBlock(benchmark::State& state) {
  const size_t bytes = 20 * kMiB;
  void* p = Must(hbm::Allocate(0, bytes));
  for (auto _ : state) std::memset(hbm::Local(p), 1, bytes);
  hbm::Free(p).ok();
  state.SetBytesProcessed(static_cast<int64_t>(bytes) * state.iterations());
}
BENCHMARK(FillBlock)->Unit(benchmark::kMicrosecond);

void Translate(benchmark::State& state) {
  char* p = static_cast<char*>(Must(hbm::Allocate(0, 2 * kMiB)));
  size_t at = 0;
  for (auto _ : state) benchmark::DoNotOptimize(hbm::Local(p + (at++ & 0xFFFF)));
  hbm::Free(p).ok();
}
BENCHMARK(Translate)->Unit(benchmark::kNanosecond);

void CheckAgain(benchmark::State& state) {
  void* p = Must(hbm::Allocate(0, 2 * kMiB));
  for (auto _ : state) benchmark::DoNotOptimize(hbm::Check(p, kMiB, "f", "x").ok());
  hbm::Free(p).ok();
}
BENCHMARK(CheckAgain)->Unit(benchmark::kNanosecond);

void CheckTwoBlocksInTurn(benchmark::State& state) {
  void* blocks[] = {Must(hbm::Allocate(0, 2 * kMiB)), Must(hbm::Allocate(0, 2 * kMiB))};
  size_t at = 0;
  for (auto _ : state) benchmark::DoNotOptimize(hbm::Check(blocks[at++ & 1], kMiB, "f", "x").ok());
  for (void* p : blocks) hbm::Free(p).ok();
}
BENCHMARK(CheckTwoBlocksInTurn)->Unit(benchmark::kNanosecond);

void MapAndUnmap20MiB(benchmark::State& state) {
  void* range = Must(hbm::ReserveAddress(64 * kMiB));
  auto memory = hbm::MallocPhysical(0, 20 * kMiB);
  for (auto _ : state) {
    hbm::MapPhysical(range, 20 * kMiB, *memory).ok();
    hbm::Unmap(range).ok();
  }
  hbm::ReleaseAddress(range).ok();
}
BENCHMARK(MapAndUnmap20MiB)->Unit(benchmark::kMicrosecond);

void ReadHost(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(hbm::ReadHostMemory().available);
}
BENCHMARK(ReadHost)->Unit(benchmark::kMicrosecond);

void UsageOf(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(hbm::UsageOf(0)->free);
}
BENCHMARK(UsageOf)->Unit(benchmark::kNanosecond);

void RingNobodySleeps(benchmark::State& state) {
  device::Machine* machine = *device::Join();
  for (auto _ : state) device::Ring(*machine, machine->slot());
}
BENCHMARK(RingNobodySleeps)->Unit(benchmark::kNanosecond);

// A fresh owner for each round: the arena is mapped whole once, then 32 MiB of it get their pages here.
void MapPeer(benchmark::State& state) {
  const bool populate = state.range(0) != 0;
  for (auto _ : state) {
    state.PauseTiming();
    int up[2], down[2];
    if (pipe(up) != 0 || pipe(down) != 0) std::exit(1);
    const pid_t owner = fork();
    if (owner == 0) {
      uint64_t words[2];
      void* p = Must(hbm::Allocate(1, 32 * kMiB));
      words[0] = (*device::Join())->slot();
      words[1] = hbm::Find(p)->offset;
      if (write(up[1], words, sizeof words) != sizeof words) _exit(1);
      char byte;
      if (read(down[0], &byte, 1) != 1) _exit(1);
      _exit(0);
    }
    uint64_t words[2];
    if (read(up[0], words, sizeof words) != sizeof words) std::exit(1);
    state.ResumeTiming();
    char* base = static_cast<char*>(Must(hbm::MapPeer(static_cast<uint32_t>(words[0]), 1)));
    if (populate) hbm::Populate(base + words[1], 32 * kMiB);
    state.PauseTiming();
    if (write(down[1], "x", 1) != 1) std::exit(1);
    waitpid(owner, nullptr, 0);
    for (int fd : {up[0], up[1], down[0], down[1]}) close(fd);
    state.ResumeTiming();
  }
}
BENCHMARK(MapPeer)->ArgName("populate32MiB")->Arg(0)->Arg(1)->Iterations(20)->Unit(benchmark::kMicrosecond);

void JoinAndLeave(benchmark::State& state) {
  for (auto _ : state) {
    device::MachineConfig config;
    config.name = "bench-join";
    benchmark::DoNotOptimize(device::Enter(config).ok());
  }
}
BENCHMARK(JoinAndLeave)->Unit(benchmark::kMicrosecond);

void SnapshotOf16Cards(benchmark::State& state) {
  device::MachineConfig config;
  config.name = "bench-16";
  config.cards = 16;
  auto machine = device::Enter(config);
  for (auto _ : state) benchmark::DoNotOptimize(device::ReadFigures(config)->cards.size());
}
BENCHMARK(SnapshotOf16Cards)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace npu

int main(int argc, char** argv) {
  setenv("ANYNPU_MACHINE", "bench", 0);
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
