// How an arena gets from its owner to a peer: through the owner's entry in the proc file system when both share a pid
// namespace, otherwise as a descriptor over a Unix socket that a small thread of the owner serves. Neither needs ptrace
// or root.
#include <fcntl.h>
#include <sys/stat.h>

#include <chrono>
#include <memory>
#include <thread>

#include "base/log/log.h"
#include "base/os/process.h"
#include "base/os/socket.h"
#include "base/os/thread.h"
#include "device/hbm/world.h"

namespace npu::hbm {
namespace {

using namespace std::chrono_literals;

enum class Wish : uint32_t { kArena = 1, kTrim = 2 };
struct Request {
  uint64_t nonce;  // of the machine: a stranger's request is not answered
  Wish wish;
  int32_t card;
};
struct Reply {
  uint64_t bytes;  // of the arena; given back, for a trim
};

std::string SocketName(const device::Machine& machine, uint32_t slot) {
  return fmt::format("anynpu-{:x}-{:x}", machine.nonce(), slot);
}

// The descriptor may be one that a peer forged or that was reused: only our sort of memory of a possible size is
// mapped.
Status CheckArena(const device::Machine& machine, const os::Fd& fd, uint64_t inode, uint64_t* bytes) {
  struct stat s {};
  const int seals = fcntl(fd.get(), F_GET_SEALS);
  const bool sealed = seals >= 0 && (seals & F_SEAL_SHRINK) != 0;
  if (fstat(fd.get(), &s) != 0 || !sealed || s.st_uid != geteuid() || (inode != 0 && s.st_ino != inode)) {
    return Error(Code::kIpcError, "What a process of machine {} offers is not its device memory.", machine.name());
  }
  const uint64_t size = static_cast<uint64_t>(s.st_size);
  if (size == 0 || size > machine.hbm_bytes() * 2 + kBigBlock)
    return Error(Code::kIpcError, "A peer's device memory has {} bytes.", size);
  *bytes = size;
  return {};
}

void Serve(World* world, const os::Fd& listener) {
  for (;;) {
    os::Fd socket = os::Accept(listener, Deadline::Never());
    if (!socket || !os::PeerIsSameUser(socket)) {
      if (!socket) std::this_thread::sleep_for(1ms);  // out of descriptors: not a busy loop
      continue;
    }
    const Deadline deadline = Deadline::In(2s);
    Request request{};
    if (!os::ReceiveWithFd(socket, &request, sizeof request, nullptr, deadline).ok()) continue;
    if (request.nonce != world->machine().nonce()) continue;
    Reply reply{};
    int fd = -1;
    if (request.wish == Wish::kTrim) {
      reply.bytes = world->TrimAll();
      world->LetGoOfDeadPeers();
    } else if (request.card >= 0 && request.card < world->machine().cards()) {
      if (Arena* arena = world->ArenaIfMade(request.card); arena != nullptr) {
        reply.bytes = arena->bytes();
        fd = arena->fd();
      }
    }
    (void)os::SendWithFd(socket, &reply, sizeof reply, fd, deadline).ok();
  }
}

Result<Reply> Ask(const device::Machine& machine, uint32_t slot, Wish wish, int card, os::Fd* fd, Deadline deadline) {
  NPU_ASSIGN(os::Fd socket, os::ConnectAbstract(SocketName(machine, slot), deadline));
  if (!os::PeerIsSameUser(socket))
    return Error(Code::kIpcError, "Another user answers for a process of machine {}.", machine.name());
  const Request request{machine.nonce(), wish, card};
  NPU_TRY(os::SendWithFd(socket, &request, sizeof request, -1, deadline));
  Reply reply{};
  NPU_TRY(os::ReceiveWithFd(socket, &reply, sizeof reply, fd, deadline));
  return reply;
}

}  // namespace

void StartServing(World& world) {
  auto listener = os::ListenAbstract(SocketName(world.machine(), world.machine().slot()));
  if (!listener.ok()) {
    NPU_LOG(kWarning, "hbm", "peers in other pid namespaces cannot map our memory: {}", listener.status().text());
    return;
  }
  auto held = std::make_shared<os::Fd>(listener.take());
  const Status started = os::Detach("npu-mem", [&world, held] { Serve(&world, *held); });
  if (!started.ok()) NPU_LOG(kWarning, "hbm", "no thread to serve peers: {}", started.text());
}

Result<os::Fd> FetchArena(const device::Machine& machine, uint32_t slot, int card, uint64_t* bytes) {
  const device::Slot* entry = machine.SlotOf(slot);
  if (entry == nullptr || !machine.IsAlive(slot)) {
    return Error(Code::kRemoteError, "The process that owns the memory of card {} has ended.", card)
        .Remedy("Start all processes anew.");
  }
  const int32_t pid = entry->pid.load(std::memory_order_relaxed);
  const uint64_t inode = entry->cards[card].arena_inode.load(std::memory_order_acquire);
  const int32_t number = entry->cards[card].arena_fd.load(std::memory_order_relaxed);
  if (inode == 0 || number < 0) {
    return Error(Code::kRemoteError, "Process {} has no memory on card {}.", pid, card)
        .Remedy("Let it allocate there first.");
  }
  if (entry->pid_namespace.load(std::memory_order_relaxed) == os::Self().pid_namespace) {
    os::Fd fd(open(fmt::format("/proc/{}/fd/{}", pid, number).c_str(), O_RDWR | O_CLOEXEC));
    if (fd && CheckArena(machine, fd, inode, bytes).ok()) return fd;
  }
  os::Fd fd;
  auto reply = Ask(machine, slot, Wish::kArena, card, &fd, Deadline::In(3s));
  if (!reply.ok() || !fd) {
    return Error(Code::kIpcError, "Process {} gave no access to its memory on card {}: {}", pid, card,
                 reply.ok() ? "it has none." : reply.status().text())
        .Remedy("Run the processes in one container, or in containers that share the pid or network namespace.");
  }
  NPU_TRY(CheckArena(machine, fd, 0, bytes));
  return fd;
}

void AskOthersToTrim(const device::Machine& machine) {
  const Deadline deadline = Deadline::In(2s);  // for all of them: one may be stopped
  for (uint32_t i = 0; i < device::SlotHigh(machine.shared()); ++i) {
    const device::Slot& slot = machine.shared().slots[i];
    if (slot.state.load(std::memory_order_relaxed) != device::kSlotLive || i == device::SlotIndex(machine.slot()))
      continue;
    // Those without freed pages too: they may map memory of a process that has ended.
    (void)Ask(machine, device::SlotWord(i, slot.generation.load(std::memory_order_relaxed)), Wish::kTrim, 0, nullptr,
              deadline)
        .ok();
  }
}

}  // namespace npu::hbm
