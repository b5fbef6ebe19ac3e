#include "coll/net/listener.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <vector>

#include "base/os/thread.h"
#include "coll/net/refusal.h"

namespace npu::coll {
namespace {
using std::chrono::seconds;
constexpr seconds kHelloLimit(5);       // for a caller to say what it wants
constexpr seconds kKeepLimit(150);      // for somebody to await it
constexpr size_t kMostStrangers = 256;  // that have not said what they want
constexpr size_t kMostUnclaimed = 2048;

struct Stranger {
  os::Fd fd;
  Hello hello;
  size_t got = 0;
  Deadline until = Deadline::In(kHelloLimit);
};

// 1: complete, 0: more to come, -1: hang up.
int ReadHello(Stranger& s) {
  while (s.got < sizeof s.hello) {
    const ssize_t n =
        ::recv(s.fd.get(), reinterpret_cast<char*>(&s.hello) + s.got, sizeof s.hello - s.got, MSG_DONTWAIT);
    if (n > 0)
      s.got += static_cast<size_t>(n);
    else if (n < 0 && errno == EINTR)
      continue;
    else if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
      return s.until.passed() ? -1 : 0;
    else
      return -1;
  }
  return s.hello.magic == Hello::kMagic ? 1 : -1;
}

std::string IdOf(const Hello& hello) { return {hello.id.data(), ::strnlen(hello.id.data(), hello.id.size())}; }
}  // namespace

Result<std::shared_ptr<Listener>> Listener::Open(const std::string& address, std::span<const uint16_t> ports) {
  NPU_ASSIGN(Listening listening, Listen(address, ports));
  std::shared_ptr<Listener> listener(new Listener(std::move(listening)));
  if (!listener->stop_) return Error(Code::kResourceExhausted, "No descriptor is left for a listener.");
  NPU_ASSIGN(listener->thread_, os::Start("npu-listen", [raw = listener.get()] { raw->Serve(); }));
  return listener;
}

Listener::Listener(Listening listening)
    : fd_(std::move(listening.fd)), stop_(::eventfd(0, EFD_CLOEXEC)), port_(listening.port) {}

Listener::~Listener() {
  const uint64_t one = 1;
  if (stop_ && ::write(stop_.get(), &one, sizeof one) < 0) thread_.detach();
  if (thread_.joinable()) thread_.join();
}

void Listener::ServeOnly(const std::string& id) {
  const std::lock_guard lock(mutex_);
  only_ = id;
}

// With mutex_ held.
void Listener::Seat(os::Fd fd, const Hello& hello) {
  const std::string id = IdOf(hello);
  if (!only_.empty() && id != only_) {
    static_cast<void>(SendFailure(
        fd.get(),
        Error(Code::kInvalidParam, "EI0003: the rank that listens at port {} knows no communicator of this rootInfo.",
              port_)
            .Remedy("Pass the blob that rank 0 of this very job has got from HcclGetRootInfo, and use it once."),
        Deadline::In(std::chrono::milliseconds(100))));
    return;
  }
  Box& box = BoxOf(id);
  if (box.awaited == 0) {
    if (box.callers.empty()) box.until = Deadline::In(kKeepLimit);
    if (box.callers.size() >= kMostUnclaimed || boxes_.size() >= kMostUnclaimed) return;
  }
  box.callers.push_back({std::move(fd), hello.pid, hello.card, hello.version, hello.rank, hello.ranks});
  box.came.notify_all();
}

Listener::Box& Listener::BoxOf(const std::string& id) { return boxes_[id]; }

void Listener::Serve() {
  std::vector<Stranger> strangers;
  while (true) {
    std::vector<pollfd> polls{{fd_.get(), POLLIN, 0}, {stop_.get(), POLLIN, 0}};
    for (const Stranger& s : strangers) polls.push_back({s.fd.get(), POLLIN, 0});
    if (::poll(polls.data(), polls.size(), strangers.empty() ? 10000 : 200) < 0 && errno != EINTR) return;
    if ((polls[1].revents & POLLIN) != 0) return;
    if ((polls[0].revents & POLLIN) != 0) {
      os::Fd fd(::accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!fd)
        std::this_thread::sleep_for(std::chrono::milliseconds(10));  // no descriptor is left: others may free one
      if (fd) WatchLink(fd.get());
      if (fd && strangers.size() < kMostStrangers) strangers.push_back({std::move(fd)});
    }
    for (size_t i = 0; i < strangers.size();) {
      const int state = ReadHello(strangers[i]);
      if (state == 0) {
        ++i;
        continue;
      }
      if (state > 0) {
        const std::lock_guard lock(mutex_);
        Seat(std::move(strangers[i].fd), strangers[i].hello);
      }
      strangers.erase(strangers.begin() + static_cast<ptrdiff_t>(i));
    }
    const std::lock_guard lock(mutex_);
    std::erase_if(boxes_, [](const auto& entry) {
      return entry.second.awaited == 0 && (entry.second.callers.empty() || entry.second.until.passed());
    });
  }
}

Inbox::Inbox(std::shared_ptr<Listener> listener, std::string id) : listener_(std::move(listener)), id_(std::move(id)) {
  const std::lock_guard lock(listener_->mutex_);
  ++listener_->BoxOf(id_).awaited;
}

Inbox::~Inbox() {
  const std::lock_guard lock(listener_->mutex_);
  // Callers that came for the next meeting of that name are kept.
  Listener::Box& box = listener_->BoxOf(id_);
  --box.awaited;
  box.until = Deadline::In(kKeepLimit);
}

Result<Caller> Inbox::Next(Deadline deadline) {
  std::unique_lock lock(listener_->mutex_);
  Listener::Box& box = listener_->BoxOf(id_);
  const auto ready = [&] { return !box.callers.empty(); };
  const bool came =
      deadline.never() ? (box.came.wait(lock, ready), true) : box.came.wait_until(lock, deadline.at(), ready);
  if (!came) return Error(Code::kCommTimeout, "Nobody called within the time limit.");
  Caller caller = std::move(box.callers.front());
  box.callers.pop_front();
  return caller;
}

Result<os::Fd> Call(const std::string& address, uint16_t port, const std::string& id, const Calling& as,
                    Deadline deadline) {
  // A first try of a second and a half; whoever waits longer says so.
  const auto first = std::min<std::chrono::nanoseconds>(deadline.left(), std::chrono::milliseconds(1500));
  bool refused = false;
  Result<os::Fd> fd = Connect(address, port, Deadline::In(first), &refused);
  if (!fd.ok() && refused && as.known) {
    return Error(Code::kRemoteError,
                 "EI0015: nobody listens at {} port {} any more: the process that gave out that address has ended or "
                 "given up, or this host reaches another one there.",
                 address, port)
        .Remedy(
            "Look into the log of the rank that listened there; see that HCCL_IF_IP and HCCL_SOCKET_IFNAME on its host "
            "name an interface that this host reaches.");
  }
  if (!fd.ok() && !deadline.passed() && fd.status().code() == Code::kCommTimeout) {
    if (!as.quiet)
      Tell(fmt::format(
          "rank {} (pid {}, device {}) gets no answer from the rank at {} port {}, and goes on trying. Does that rank "
          "still run, and do HCCL_IF_IP and HCCL_SOCKET_IFNAME on its host name an interface that this host reaches?",
          as.rank, ::getpid(), as.card, address, port));
    fd = Connect(address, port, deadline);
  }
  if (!fd.ok()) return fd;
  Hello hello;
  std::memcpy(hello.id.data(), id.data(), std::min(id.size(), hello.id.size() - 1));
  hello.pid = ::getpid();
  hello.card = as.card;
  hello.rank = as.rank;
  hello.ranks = as.ranks;
  NPU_TRY(SendAll(fd->get(), std::as_bytes(std::span(&hello, 1)), deadline));
  return fd;
}

}  // namespace npu::coll
