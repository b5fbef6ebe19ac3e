// The last words of a process: what was never freed, how many findings, and the exit code.
#include <fmt/format.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstdio>
#include <iostream>
#include <map>

#include "device/strict/checker.h"

namespace npu::strict {
namespace {

struct Leak {
  const Block* block;
  uint64_t count = 0, bytes = 0;
};

// Blocks that nobody freed, by the place that allocated them. torch_npu keeps its memory till the end on purpose.
void Leaks(Checker& c, std::vector<Finding>* found, uint64_t* kept) {
  std::map<std::pair<void*, std::string>, Leak> leaks;
  for (const auto& [local, block] : c.blocks.all()) {
    void* const caller = block.origin.stack.Caller();
    if (OfTorch(caller)) {
      *kept += block.bytes;
      continue;
    }
    Leak& leak = leaks[{caller, block.origin.python.empty() ? "" : block.origin.python[0]}];
    leak.block = &block;
    ++leak.count;
    leak.bytes += block.bytes;
  }
  for (const auto& [place, leak] : leaks) {
    found->push_back({"leak", "exit",
                      fmt::format("{} {} with {} bytes on card {} {} never freed; the last one is told.", leak.count,
                                  leak.count == 1 ? "allocation" : "allocations", leak.bytes, leak.block->card, leak.count == 1 ? "was" : "were"),
                      "Call aclrtFree for each before the process ends.", leak.block->Tell()});
  }
}

pid_t started = 0;

void AtExit(int status, void*) {
  if (getpid() != started || !On()) return;  // a forked child has its own
  Checker& c = Checker::Get();
  std::vector<Finding> found;
  uint64_t kept = 0, allocations = 0, uses = 0, fragmented = 0;
  {
    const std::lock_guard lock(c.mutex);
    Leaks(c, &found, &kept);
    allocations = c.allocations, uses = c.uses, fragmented = c.fragmented;
  }
  for (const Finding& finding : found) TellLast(finding);
  on.store(false, std::memory_order_relaxed);  // what static destructors still do is not judged
  const uint64_t told = Told();
  if (allocations == 0 && told == 0) return;
  const std::string more = fragmented == 0 ? "" : fmt::format("; {} uses in too many pieces were not followed for order", fragmented);
  fmt::print(stderr, "anynpu strict: {} {} in {} uses of {} allocations{}.\n", told == 0 ? "no" : fmt::format("{}", told),
             told == 1 ? "finding" : "findings", uses, allocations, more);
  if (told == 0 || WarnOnly() || status != 0) return;
  std::cout.flush();
  std::fflush(nullptr);
  _exit(kExitCode);
}

}  // namespace

void TellAtExit() {
  started = getpid();
  on_exit(AtExit, nullptr);
}

}  // namespace npu::strict
