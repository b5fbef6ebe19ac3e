#include "base/os/thread.h"

#include <pthread.h>
#include <signal.h>

#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

namespace npu::os {

namespace {
// What a thread brings upon itself stays open: blocked, the system would end the process without asking its handlers, which
// tell where it happened (faulthandler, strict memory).
sigset_t AllButFaults() {
  sigset_t set;
  sigfillset(&set);
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS}) sigdelset(&set, fault);
  return set;
}
}  // namespace

BlockSignals::BlockSignals() {
  const sigset_t all = AllButFaults();
  pthread_sigmask(SIG_SETMASK, &all, &before_);
}

BlockSignals::~BlockSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

void BlockSignalsHere() {
  const sigset_t all = AllButFaults();
  pthread_sigmask(SIG_SETMASK, &all, nullptr);
}

Result<std::thread> Start(const char* name, std::function<void()> body) {
  // A thread inherits the mask of its maker: set in the new thread, there would be a moment in which a signal can hit
  // it.
  const BlockSignals blocked;
  try {
    return std::thread([body = std::move(body), name = std::string(name)] {
      pthread_setname_np(pthread_self(), name.c_str());
      body();
    });
  } catch (const std::system_error& error) {
    return Error(Code::kResourceExhausted, "The system refused to start a thread ({}): {}.", name, error.what())
        .Remedy("Raise the limit of processes or threads (ulimit -u, pids.max of the cgroup).");
  }
}

Status Detach(const char* name, std::function<void()> body) {
  NPU_ASSIGN(std::thread thread, Start(name, std::move(body)));
  thread.detach();
  return {};
}

}  // namespace npu::os
