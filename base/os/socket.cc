#include "base/os/socket.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace npu::os {
namespace {

bool Address(std::string_view name, sockaddr_un* address, socklen_t* size) {
  if (name.empty() || name.size() + 1 > sizeof address->sun_path) return false;
  std::memset(address, 0, sizeof *address);
  address->sun_family = AF_UNIX;
  std::memcpy(address->sun_path + 1, name.data(), name.size());
  *size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return true;
}

bool Await(int fd, short events, Deadline deadline) {
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline.left()).count();
    const int wait_ms = deadline.never() ? 1000 : static_cast<int>(std::min<int64_t>(left + 1, 1000));
    pollfd p{fd, events, 0};
    const int r = poll(&p, 1, wait_ms);
    if (r > 0) return true;
    if (r < 0 && errno != EINTR) return false;
    if (deadline.passed()) return false;
  }
}

Status Failed(const char* what) { return Error(Code::kIpcError, "{} failed: {}.", what, std::strerror(errno)); }

}  // namespace

Result<Fd> ListenAbstract(std::string_view name) {
  sockaddr_un address;
  socklen_t size;
  if (!Address(name, &address, &size)) return Error(Code::kIpcError, "Socket name of {} characters.", name.size());
  Fd fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd || bind(fd.get(), reinterpret_cast<sockaddr*>(&address), size) != 0 || listen(fd.get(), 64) != 0) {
    return Failed("Listening on a Unix socket");
  }
  return fd;
}

Result<Fd> ConnectAbstract(std::string_view name, Deadline deadline) {
  sockaddr_un address;
  socklen_t size;
  if (!Address(name, &address, &size)) return Error(Code::kIpcError, "Socket name of {} characters.", name.size());
  Fd fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return Failed("Making a Unix socket");
  while (connect(fd.get(), reinterpret_cast<sockaddr*>(&address), size) != 0) {
    if (errno != EAGAIN && errno != EINTR) return Failed("Connecting to a Unix socket");
    if (deadline.passed()) return Failed("Connecting to a Unix socket");
    poll(nullptr, 0, 1);  // EAGAIN: the queue of the listener is full
  }
  return fd;
}

Fd Accept(const Fd& listener, Deadline deadline) {
  if (!Await(listener.get(), POLLIN, deadline)) return Fd();
  return Fd(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
}

bool PeerIsSameUser(const Fd& socket) {
  ucred credentials{};
  socklen_t size = sizeof credentials;
  return getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &credentials, &size) == 0 && credentials.uid == geteuid();
}

Status SendWithFd(const Fd& socket, const void* data, size_t bytes, int fd, Deadline deadline) {
  iovec part{const_cast<void*>(data), bytes};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (fd >= 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(head), &fd, sizeof fd);
  }
  for (;;) {
    const ssize_t n = sendmsg(socket.get(), &message, MSG_NOSIGNAL);
    if (n == static_cast<ssize_t>(bytes)) return {};
    if (n >= 0 || (errno != EAGAIN && errno != EINTR)) return Failed("Sending on a Unix socket");
    if (!Await(socket.get(), POLLOUT, deadline)) return Failed("Sending on a Unix socket");
  }
}

Status ReceiveWithFd(const Fd& socket, void* data, size_t bytes, Fd* fd, Deadline deadline) {
  iovec part{data, bytes};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  for (;;) {
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    const ssize_t n = recvmsg(socket.get(), &message, MSG_CMSG_CLOEXEC);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
      if (!Await(socket.get(), POLLIN, deadline))
        return Error(Code::kIpcError, "The process at the other end of a Unix socket did not answer in time.");
      continue;
    }
    if (n < 0) return Failed("Receiving from a Unix socket");
    for (cmsghdr* head = CMSG_FIRSTHDR(&message); head != nullptr; head = CMSG_NXTHDR(&message, head)) {
      if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS || head->cmsg_len != CMSG_LEN(sizeof(int)))
        continue;
      int received = -1;
      std::memcpy(&received, CMSG_DATA(head), sizeof received);
      if (fd != nullptr) {
        fd->Reset(received);
      } else {
        close(received);
      }
    }
    if (n != static_cast<ssize_t>(bytes)) {
      return Error(Code::kIpcError, "The process at the other end of a Unix socket sent {} bytes instead of {}.", n,
                   bytes);
    }
    return {};
  }
}

}  // namespace npu::os
