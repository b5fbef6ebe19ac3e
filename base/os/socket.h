// Unix sockets that carry a descriptor from one process to another. Names are abstract: nothing appears in a file
// system.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/os/fd.h"
#include "base/status/status.h"
#include "base/time/deadline.h"

namespace npu::os {

Result<Fd> ListenAbstract(std::string_view name);
Result<Fd> ConnectAbstract(std::string_view name, Deadline deadline);
// A connection that waits, or an empty Fd when none came before the deadline.
Fd Accept(const Fd& listener, Deadline deadline);
// True when the process at the other end runs under our user id.
bool PeerIsSameUser(const Fd& socket);

// One message of `bytes`, with a descriptor unless fd is negative.
Status SendWithFd(const Fd& socket, const void* data, size_t bytes, int fd, Deadline deadline);
// Fails when the message has another size. `*fd` stays empty when none was sent.
Status ReceiveWithFd(const Fd& socket, void* data, size_t bytes, Fd* fd, Deadline deadline);

}  // namespace npu::os
