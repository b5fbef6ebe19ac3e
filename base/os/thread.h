// How threads of ours start. Signals are for the client's threads, so ours block them all; a refusal of the system is
// an error, not an exception. No other place makes a thread (ci/arrows.py looks).
//
//   NPU_TRY(os::Detach("npu-bell", [this] { Run(); }));
//   NPU_ASSIGN(std::thread helper, os::Start("npu-pages", [&] { … }));
#pragma once

#include <signal.h>

#include <functional>
#include <thread>

#include "base/status/status.h"

namespace npu::os {

// `name` has at most 15 characters and shows in ps and in debuggers.
Result<std::thread> Start(const char* name, std::function<void()> body);
// For a thread that lives as long as the process.
Status Detach(const char* name, std::function<void()> body);

// For a thread that a library of others made and lets us enter.
void BlockSignalsHere();

// While this lives, threads that others make from here block all signals.
class BlockSignals {
 public:
  BlockSignals();
  ~BlockSignals();
  BlockSignals(const BlockSignals&) = delete;
  BlockSignals& operator=(const BlockSignals&) = delete;

 private:
  sigset_t before_;
};

}  // namespace npu::os
