// Who a process is, and whether it still lives.
//
// A pid alone can be reused and means different things in different pid namespaces, so a process is named by namespace,
// pid and start time. A process that has died but was not yet waited for by its parent (a zombie) counts as dead.
#pragma once

#include <cstdint>
#include <string>

namespace npu::os {

struct ProcessId {
  uint64_t pid_namespace = 0;  // inode of /proc/<pid>/ns/pid
  int32_t pid = 0;             // as seen inside that namespace
  uint64_t start_ticks = 0;    // since boot
  bool operator==(const ProcessId&) const = default;
};

enum class Liveness { kAlive, kDead, kUnknown };  // unknown: in another pid namespace, or /proc does not show ours

// Identity of the calling process; right also in a forked child.
ProcessId Self();
Liveness LivenessOf(const ProcessId& id);
// The short command name (at most 15 characters), or empty.
std::string CommandOf(int32_t pid);
// A number that differs between boots of the machine.
uint64_t BootId();

// Notices a fork without asking the kernel each time.
//
//   static ForkGuard guard;               // made before the fork
//   if (guard.Forked()) …                 // true in the child, and in its children
//
// A handler counts forks, and a word lies in a page that the kernel wipes in a child, so raw clone() is noticed as
// well.
class ForkGuard {
 public:
  ForkGuard();
  bool Forked() const;
  // The child takes the state over as its own.
  void Reset();

 private:
  void* page_;      // null when the kernel cannot wipe pages
  uint32_t forks_;  // of this process and its ancestors, when the guard was made
};

}  // namespace npu::os
