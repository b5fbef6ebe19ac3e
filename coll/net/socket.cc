#include "coll/net/socket.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <sstream>
#include <thread>

namespace npu::coll {
namespace {

struct Address {
  sockaddr_storage storage = {};
  socklen_t length = 0;
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
};

Result<Address> Parse(const std::string& text, uint16_t port) {
  Address address;
  auto* four = reinterpret_cast<sockaddr_in*>(&address.storage);
  auto* six = reinterpret_cast<sockaddr_in6*>(&address.storage);
  const std::string plain = text.substr(0, text.find('%'));
  if (::inet_pton(AF_INET, plain.c_str(), &four->sin_addr) == 1) {
    four->sin_family = AF_INET;
    four->sin_port = htons(port);
    address.length = sizeof(sockaddr_in);
    return address;
  }
  if (::inet_pton(AF_INET6, plain.c_str(), &six->sin6_addr) == 1) {
    six->sin6_family = AF_INET6;
    six->sin6_port = htons(port);
    if (plain.size() < text.size()) six->sin6_scope_id = ::if_nametoindex(text.c_str() + plain.size() + 1);
    address.length = sizeof(sockaddr_in6);
    return address;
  }
  return Error(Code::kInvalidParam, "'{}' is not an IP address.", text);
}

// Waits for readiness; false after the deadline.
bool WaitFor(int fd, short events, Deadline deadline) {
  while (true) {
    int timeout = -1;
    if (!deadline.never()) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline.left()).count();
      if (left <= 0 && deadline.passed()) return false;
      timeout = static_cast<int>(std::min<int64_t>(left + 1, 1 << 30));
    }
    pollfd p{fd, events, 0};
    const int n = ::poll(&p, 1, timeout);
    if (n > 0) return true;
    if (n < 0 && errno != EINTR) return true;  // the call that follows reports it
  }
}

bool NonBlocking(int fd) {
  const int flags = ::fcntl(fd, F_GETFL);
  return flags >= 0 && ::fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0;
}

Result<Listening> ListenOn(const std::string& address, uint16_t port) {
  NPU_ASSIGN(Address at, Parse(address, port));
  os::Fd fd(::socket(at.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return Error(Code::kCommUnavailable, "A socket cannot be made: {}.", std::strerror(errno));
  const int on = 1;
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (::bind(fd.get(), at.get(), at.length) != 0 || ::listen(fd.get(), 512) != 0) {
    return Error(Code::kCommUnavailable, "{}", std::strerror(errno));
  }
  at.length = sizeof at.storage;
  ::getsockname(fd.get(), at.get(), &at.length);
  const auto* four = reinterpret_cast<const sockaddr_in*>(&at.storage);
  const auto* six = reinterpret_cast<const sockaddr_in6*>(&at.storage);
  const uint16_t bound = ntohs(at.storage.ss_family == AF_INET ? four->sin_port : six->sin6_port);
  return Listening{std::move(fd), bound};
}

// The inode of a socket in LISTEN state on that port, from /proc/net/tcp; 0 when there is none.
uint64_t ListenerInode(const char* table, uint16_t port) {
  std::ifstream in(table);
  std::string line;
  std::getline(in, line);
  while (std::getline(in, line)) {
    std::istringstream words(line);
    std::string index, local, remote, state, skip;
    uint64_t inode = 0;
    words >> index >> local >> remote >> state >> skip >> skip >> skip >> skip >> skip >> inode;
    const size_t colon = local.rfind(':');
    if (state != "0A" || colon == std::string::npos) continue;
    if (std::strtoul(local.c_str() + colon + 1, nullptr, 16) == port) return inode;
  }
  return 0;
}

}  // namespace

Result<Listening> Listen(const std::string& address, std::span<const uint16_t> ports) {
  Status last;
  for (const uint16_t port : ports) {
    Result<Listening> listening = ListenOn(address, port);
    if (listening.ok()) return listening;
    if (listening.status().code() != Code::kCommUnavailable) return listening.status();
    last = listening.status();
  }
  const uint16_t first = ports.empty() ? 0 : ports.front();
  const std::string which =
      ports.size() > 1 ? fmt::format("ports {} to {}", first, ports.back()) : fmt::format("port {}", first);
  return Error(Code::kCommUnavailable, "EI0019: {} of {} cannot be listened on ({}): port {} is held by {}.", which,
               address, last.text(), first, HolderOf(first));
}

Result<os::Fd> Connect(const std::string& address, uint16_t port, Deadline deadline, bool* refused) {
  NPU_ASSIGN(const Address at, Parse(address, port));
  int error = 0;
  do {
    os::Fd fd(::socket(at.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!fd || !NonBlocking(fd.get()))
      return Error(Code::kCommUnavailable, "A socket cannot be made: {}.", std::strerror(errno));
    if (::connect(fd.get(), at.get(), at.length) == 0 || errno == EINPROGRESS) {
      if (!WaitFor(fd.get(), POLLOUT, deadline)) break;
      socklen_t length = sizeof error;
      ::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &length);
      if (error == 0) {
        WatchLink(fd.get());
        return fd;
      }
    } else {
      error = errno;
    }
    std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(deadline.left(), std::chrono::milliseconds(20)));
  } while (!deadline.passed());
  if (refused != nullptr) *refused = error == ECONNREFUSED;
  return Error(Code::kCommTimeout, "EI0015: nobody answers at {} port {}: {}.", address, port,
               error != 0 ? std::strerror(error) : "time limit reached")
      .Remedy("See that the rank which listens there still runs and that no firewall is between.");
}

void WatchLink(int fd) {
  const int on = 1, idle_s = 10, every_s = 5, tries = 4, unanswered_ms = 30000;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  ::setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &every_s, sizeof every_s);
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &tries, sizeof tries);
  ::setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &unanswered_ms, sizeof unanswered_ms);
}

bool Readable(int fd, Deadline deadline) { return WaitFor(fd, POLLIN, deadline); }

Status SendAll(int fd, std::span<const std::byte> bytes, Deadline deadline) {
  while (!bytes.empty()) {
    const ssize_t n = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n > 0) {
      bytes = bytes.subspan(static_cast<size_t>(n));
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      if (!WaitFor(fd, POLLOUT, deadline)) return Error(Code::kCommTimeout, "The other side does not read.");
    } else if (errno != EINTR) {
      return Error(Code::kRemoteError, "The connection broke: {}.", std::strerror(errno));
    }
  }
  return {};
}

Status ReceiveAll(int fd, std::span<std::byte> bytes, Deadline deadline) {
  while (!bytes.empty()) {
    const ssize_t n = ::recv(fd, bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (n > 0) {
      bytes = bytes.subspan(static_cast<size_t>(n));
    } else if (n == 0) {
      return Error(Code::kRemoteError, "The other side closed the connection.");
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      if (!WaitFor(fd, POLLIN, deadline)) return Error(Code::kCommTimeout, "The other side sends nothing.");
    } else if (errno != EINTR) {
      return Error(Code::kRemoteError, "The connection broke: {}.", std::strerror(errno));
    }
  }
  return {};
}

std::string HolderOf(uint16_t port) {
  uint64_t inode = ListenerInode("/proc/net/tcp", port);
  if (inode == 0) inode = ListenerInode("/proc/net/tcp6", port);
  const std::string wanted = fmt::format("socket:[{}]", inode);
  std::string answer = "another process";
  if (inode == 0) return answer;
  DIR* processes = ::opendir("/proc");
  if (processes == nullptr) return answer;
  while (const dirent* entry = ::readdir(processes)) {
    const std::string pid = entry->d_name;
    if (pid.find_first_not_of("0123456789") != std::string::npos) continue;
    DIR* files = ::opendir(("/proc/" + pid + "/fd").c_str());
    if (files == nullptr) continue;
    bool found = false;
    while (const dirent* file = ::readdir(files)) {
      char target[64] = {};
      const std::string path = "/proc/" + pid + "/fd/" + file->d_name;
      if (::readlink(path.c_str(), target, sizeof target - 1) > 0 && wanted == target) found = true;
    }
    ::closedir(files);
    if (!found) continue;
    std::string command;
    std::getline(std::ifstream("/proc/" + pid + "/comm"), command);
    answer = fmt::format("pid {} ({})", pid, command);
    break;
  }
  ::closedir(processes);
  return answer;
}

std::vector<Interface> Interfaces() {
  std::vector<Interface> found;
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return found;
  for (const ifaddrs* at = all; at != nullptr; at = at->ifa_next) {
    if (at->ifa_addr == nullptr || (at->ifa_flags & IFF_UP) == 0) continue;
    const int family = at->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    char text[INET6_ADDRSTRLEN] = {};
    const void* source = family == AF_INET
                             ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in*>(at->ifa_addr)->sin_addr)
                             : &reinterpret_cast<const sockaddr_in6*>(at->ifa_addr)->sin6_addr;
    if (::inet_ntop(family, source, text, sizeof text) == nullptr) continue;
    std::string address = text;
    if (family == AF_INET6 && address.rfind("fe80", 0) == 0) address += std::string("%") + at->ifa_name;
    found.push_back({at->ifa_name, address, family, (at->ifa_flags & IFF_LOOPBACK) != 0});
  }
  ::freeifaddrs(all);
  return found;
}

}  // namespace npu::coll
