// HCCL's environment variables, read and checked when a communicator is made. A bad value is an error that names the
// variable, its value and what it may be (EI0001).
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status/status.h"
#include "base/time/deadline.h"

namespace npu::coll {

struct Settings {
  std::chrono::nanoseconds connect_timeout{};            // HCCL_CONNECT_TIMEOUT and 20 s that HCCL adds
  std::chrono::seconds connect_seconds{};                // as the user said it, for texts
  std::optional<std::chrono::nanoseconds> exec_timeout;  // HCCL_EXEC_TIMEOUT; none: no limit
  std::chrono::seconds exec_seconds{};
  std::string address;  // where this process listens and is reached: HCCL_IF_IP, HCCL_SOCKET_IFNAME, or chosen
  std::vector<uint16_t>
      host_ports;  // for the root's server: HCCL_HOST_SOCKET_PORT_RANGE, HCCL_IF_BASE_PORT, or from 60000
  std::vector<uint16_t> card_ports;  // for the listener of a card: HCCL_NPU_SOCKET_PORT_RANGE, or 16666 + card
  bool tcp_only = false;             // ANYNPU_HCCL_TRANSPORT=tcp: sockets also between ranks of one machine
  int deterministic = -1;            // HCCL_DETERMINISTIC, -1 when unset

  Deadline ConnectDeadline() const { return Deadline::In(connect_timeout); }
  Deadline ExecDeadline() const { return exec_timeout ? Deadline::In(*exec_timeout) : Deadline::Never(); }
};

// `machine` is the name of the machine: each has its own block of ports, machine "default" the one that HCCL documents.
Result<Settings> ReadSettings(int card, const std::string& machine);

}  // namespace npu::coll
