// A fault in device memory names who did it; then the process ends as it would have without us.
#include <fmt/format.h>
#include <signal.h>
#include <ucontext.h>

#include <chrono>
#include <mutex>
#include <thread>

#include "base/os/script_line.h"
#include "device/hbm/region.h"
#include "device/strict/checker.h"

namespace npu::strict {
namespace {

struct sigaction before[2];  // SIGSEGV, SIGBUS

const char* Verb([[maybe_unused]] const void* context) {
#if defined(__x86_64__)
  const auto* u = static_cast<const ucontext_t*>(context);
  return (u->uc_mcontext.gregs[REG_ERR] & 2) != 0 ? "writes" : "reads";
#else
  return "touches";
#endif
}

// The locks that a report needs may be held by the thread that stopped here.
bool TryLock(std::mutex& mutex) {
  for (int i = 0; i < 200; ++i) {
    if (mutex.try_lock()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

std::string Here() {
  std::string where = "    here:\n";
  for (const std::string& frame : os::ScriptFrames(6)) where += fmt::format("        {}\n", frame);
  return where + Stack::Here().Tell("        ", 14);
}

void HostTouches(uintptr_t at, const hbm::Region& region, const char* verb) {
  Finding finding{"host use of device memory", "host code",
                  fmt::format("Host code {} device memory at {:#x} (card {}).", verb, at, region.card),
                  "Copy it to the host first (aclrtMemcpy, tensor.cpu()); on a card this address means nothing to the host.", ""};
  Checker& c = Checker::Get();
  if (TryLock(c.mutex)) {
    if (const Block* block = c.blocks.FindClient(at)) finding.more = block->Tell();
    if (const Gone* gone = finding.more.empty() ? c.blocks.FindGoneClient(at) : nullptr) {
      finding.more = gone->block.Tell() + gone->freed.Tell("freed");
    }
    c.mutex.unlock();
  }
  finding.more += Here();
  TellBare(finding);
}

void KernelTouches(uintptr_t at, const hbm::Region& region, const char* verb) {
  const std::string running = RunningNow();
  const uintptr_t client = region.client + (at - region.local);
  Finding finding{"out of bounds", "kernel",
                  fmt::format("A kernel {} {:#x} of card {}, where nothing is allocated. At work: {}.", verb, client, region.card,
                              running.empty() ? "nothing that is known" : running),
                  "Look at the sizes and offsets that the kernel computes with.", ""};
  Checker& c = Checker::Get();
  if (TryLock(c.mutex)) {
    if (const Gone* gone = c.blocks.FindGone(at)) {
      finding.kind = "use after free";
      finding.what = fmt::format("A kernel {} {:#x} of card {}, which was freed. At work: {}.", verb, client, region.card,
                                 running.empty() ? "nothing that is known" : running);
      finding.remedy = "Free memory after the work that uses it.";
      finding.more = gone->block.Tell() + gone->freed.Tell("freed");
    } else if (const Block* block = c.blocks.Find(at, /*near=*/true)) {
      finding.what += at >= block->end() ? fmt::format(" It is {} bytes behind an allocation.", at - block->end())
                                         : fmt::format(" It is {} bytes before an allocation.", block->begin() - at);
      finding.more = block->Tell();
    }
    c.mutex.unlock();
  }
  finding.more += Here();
  TellBare(finding);
}

void OnFault(int signal, siginfo_t* info, void* context) {
  // From here on a second fault, or the first one again, meets the handler that was there before us.
  sigaction(signal, &before[signal == SIGBUS], nullptr);
  const auto at = reinterpret_cast<uintptr_t>(info->si_addr);
  if (info->si_code <= 0) return;  // sent by somebody
  if (const hbm::Region* region = hbm::FindRegion(info->si_addr)) {
    HostTouches(at, *region, Verb(context));
  } else if (const hbm::Region* kernel = hbm::FindLocalRegion(info->si_addr)) {
    KernelTouches(at, *kernel, Verb(context));
  }
}

}  // namespace

void CatchFaults() {
  struct sigaction action {};
  action.sa_sigaction = OnFault;
  action.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  sigaction(SIGSEGV, &action, &before[0]);
  sigaction(SIGBUS, &action, &before[1]);
}

}  // namespace npu::strict
