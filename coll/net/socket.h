// TCP sockets with deadlines, and the address and ports that HCCL's variables ask for.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/os/fd.h"
#include "base/status/status.h"
#include "base/time/deadline.h"

namespace npu::coll {

// First listening socket among `ports` on `address` (numeric, IPv4 or IPv6); port 0 lets the kernel choose. All taken:
// kCommUnavailable, and the text names the ports and who holds the first.
struct Listening {
  os::Fd fd;
  uint16_t port = 0;
};
Result<Listening> Listen(const std::string& address, std::span<const uint16_t> ports);
// Tries again while nobody listens there, until the deadline.
// *refused: the last try was turned away, so no process listens there.
Result<os::Fd> Connect(const std::string& address, uint16_t port, Deadline deadline, bool* refused = nullptr);

// For connections that last: small frames go at once, and a host that is gone, or a network that is down, ends the
// connection after half a minute instead of hours.
void WatchLink(int fd);
// Whether something can be read, or the other side is gone, before the deadline.
bool Readable(int fd, Deadline deadline);
// All bytes, or an error: kCommTimeout after the deadline, kRemoteError when the other side closed.
Status SendAll(int fd, std::span<const std::byte> bytes, Deadline deadline);
Status ReceiveAll(int fd, std::span<std::byte> bytes, Deadline deadline);

// "pid 123 (python3)" for the process that listens on a port, as far as this user may see it; else "another process".
std::string HolderOf(uint16_t port);

// Numeric addresses of this host's interfaces that are up.
struct Interface {
  std::string name, address;
  int family = 0;
  bool loopback = false;
};
std::vector<Interface> Interfaces();

}  // namespace npu::coll
