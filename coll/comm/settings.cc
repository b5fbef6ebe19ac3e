#include "coll/comm/settings.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <string_view>

#include "coll/net/socket.h"

namespace npu::coll {
namespace {

constexpr int64_t kNoticeSeconds = 20;  // HCCL waits this much longer than it is told
constexpr int64_t kHostPort = 60000, kHostPorts = 32, kCardPort = 16666;

Status Bad(const char* name, std::string_view value, std::string_view allowed) {
  return Error(Code::kInvalidParam, "EI0001: environment variable {} is '{}'.", name, value)
      .Remedy("Set it to {}, or unset it.", allowed);
}

const char* Get(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : nullptr;
}

Result<int64_t> Number(const char* name, int64_t missing, int64_t low, int64_t high) {
  const char* text = Get(name);
  if (text == nullptr) return missing;
  const std::string_view view(text);
  int64_t value = 0;
  const auto [end, error] = std::from_chars(view.data(), view.data() + view.size(), value);
  if (error != std::errc() || end != view.data() + view.size() || value < low || value > high) {
    return Bad(name, text, fmt::format("a whole number from {} to {}", low, high));
  }
  return value;
}

// "16666", "16700-16720", "auto", or several of them with commas.
Result<std::vector<uint16_t>> PortRange(const char* name) {
  std::vector<uint16_t> ports;
  const char* text = Get(name);
  if (text == nullptr) return ports;
  const std::string_view all(text);
  if (all == "auto") return std::vector<uint16_t>{0};
  const char* kAllowed = "ports from 1 to 65535 such as 16666, 17000-17010 or 17000,17005-17010, or auto";
  for (size_t at = 0; at <= all.size();) {
    const size_t comma = std::min(all.find(',', at), all.size());
    const std::string_view part = all.substr(at, comma - at);
    const size_t dash = part.find('-');
    int first = 0, last = 0;
    const auto number = [](std::string_view digits, int* value) {
      const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), *value);
      return error == std::errc() && end == digits.data() + digits.size() && *value >= 1 && *value <= 65535;
    };
    if (!number(part.substr(0, dash), &first)) return Bad(name, text, kAllowed);
    last = first;
    if (dash != std::string_view::npos && !number(part.substr(dash + 1), &last)) return Bad(name, text, kAllowed);
    if (last < first) return Bad(name, text, kAllowed);
    for (int port = first; port <= last; ++port) ports.push_back(static_cast<uint16_t>(port));
    at = comma + 1;
  }
  return ports;
}

// HCCL_SOCKET_IFNAME: "eth" prefix, "^eth" all but, "=eth0" exactly, "^=eth0"; several with commas.
bool NameMatches(std::string_view pattern, std::string_view name) {
  bool except = false, exact = false;
  if (!pattern.empty() && pattern.front() == '^') except = true, pattern.remove_prefix(1);
  if (!pattern.empty() && pattern.front() == '=') exact = true, pattern.remove_prefix(1);
  bool any = false;
  for (size_t at = 0; at <= pattern.size();) {
    const size_t comma = std::min(pattern.find(',', at), pattern.size());
    const std::string_view part = pattern.substr(at, comma - at);
    if (!part.empty() && (exact ? name == part : name.substr(0, part.size()) == part)) any = true;
    at = comma + 1;
  }
  return any != except;
}

Result<std::string> ChooseAddress() {
  std::vector<Interface> all = Interfaces();
  if (const char* family = Get("HCCL_SOCKET_FAMILY")) {
    const std::string_view wanted(family);
    if (wanted != "AF_INET" && wanted != "AF_INET6") return Bad("HCCL_SOCKET_FAMILY", wanted, "AF_INET or AF_INET6");
    const int number = wanted == "AF_INET" ? AF_INET : AF_INET6;
    std::stable_sort(all.begin(), all.end(),
                     [&](const auto& a, const auto& b) { return (a.family == number) > (b.family == number); });
  } else {
    std::stable_sort(all.begin(), all.end(),
                     [](const auto& a, const auto& b) { return a.family == AF_INET && b.family != AF_INET; });
  }
  if (const char* ip = Get("HCCL_IF_IP")) {
    for (const Interface& one : all) {
      if (one.address == ip) return one.address;
    }
    return Bad("HCCL_IF_IP", ip, "an address of this host");
  }
  if (const char* pattern = Get("HCCL_SOCKET_IFNAME")) {
    for (const Interface& one : all) {
      if (NameMatches(pattern, one.name)) return one.address;
    }
    return Bad("HCCL_SOCKET_IFNAME", pattern, "the name of a network interface of this host that is up");
  }
  const auto rank = [](const Interface& one) { return one.loopback ? 2 : one.name.rfind("docker", 0) == 0 ? 1 : 0; };
  const auto best = std::min_element(all.begin(), all.end(), [&](const auto& a, const auto& b) {
    const bool link_a = a.address.find('%') != std::string::npos, link_b = b.address.find('%') != std::string::npos;
    return std::pair(link_a, rank(a)) < std::pair(link_b, rank(b));
  });
  if (best == all.end()) return std::string("127.0.0.1");
  return best->address;
}

// Where the block of a machine begins: 0 for "default", else one of 400 others.
uint32_t BlockOf(const std::string& machine) {
  if (machine == "default") return 0;
  uint32_t hash = 2166136261u;
  for (const char c : machine) hash = (hash ^ static_cast<uint8_t>(c)) * 16777619u;
  return 1 + hash % 400;
}

}  // namespace

Result<Settings> ReadSettings(int card, const std::string& machine) {
  Settings s;
  // Internal: lets a test see limits of minutes in seconds.
  double scale = 1;
  if (const char* text = Get("ANYNPU_HCCL_TIME_SCALE")) {
    char* end = nullptr;
    scale = std::strtod(text, &end);
    if (*end != '\0' || !(scale > 0 && scale <= 1))
      return Bad("ANYNPU_HCCL_TIME_SCALE", text, "a number above 0 and at most 1");
  }
  const auto scaled = [&](int64_t seconds) {
    return std::chrono::nanoseconds(static_cast<int64_t>(static_cast<double>(seconds) * 1e9 * scale));
  };
  NPU_ASSIGN(const int64_t connect, Number("HCCL_CONNECT_TIMEOUT", 120, 120, 7200));
  s.connect_seconds = std::chrono::seconds(connect);
  s.connect_timeout = scaled(connect + kNoticeSeconds);
  NPU_ASSIGN(const int64_t exec, Number("HCCL_EXEC_TIMEOUT", 1836, 0, 2147483647));
  s.exec_seconds = std::chrono::seconds(exec);
  if (exec != 0) s.exec_timeout = scaled(exec);
  NPU_ASSIGN(s.address, ChooseAddress());

  const uint32_t block = BlockOf(machine);
  NPU_ASSIGN(s.host_ports, PortRange("HCCL_HOST_SOCKET_PORT_RANGE"));
  if (s.host_ports.empty()) {
    NPU_ASSIGN(const int64_t base, Number("HCCL_IF_BASE_PORT", 0, 1024, 65520));
    // 32 ports from the base, beginning with the card's own. Only unasked for may it be another one.
    const int64_t from = base != 0 ? base : kHostPort - 64 * static_cast<int64_t>(block);
    for (int64_t i = 0; i < kHostPorts; ++i) {
      const int64_t port = from + (card + i) % kHostPorts;
      if (port <= 65535) s.host_ports.push_back(static_cast<uint16_t>(port));
    }
    if (base == 0) s.host_ports.push_back(0);
  }
  NPU_ASSIGN(s.card_ports, PortRange("HCCL_NPU_SOCKET_PORT_RANGE"));
  if (s.card_ports.empty()) {
    s.card_ports.push_back(static_cast<uint16_t>(kCardPort + 32 * static_cast<int64_t>(block) + card));
    if (block != 0) s.card_ports.push_back(0);  // names may share a block; nobody knows these ports by heart
  }
  if (const char* text = Get("ANYNPU_HCCL_TRANSPORT")) {
    const std::string_view value(text);
    if (value != "tcp" && value != "auto") return Bad("ANYNPU_HCCL_TRANSPORT", text, "tcp or auto");
    s.tcp_only = value == "tcp";
  }
  if (const char* text = Get("HCCL_DETERMINISTIC")) {
    const std::string_view value(text);
    if (value == "true" || value == "TRUE")
      s.deterministic = 1;
    else if (value == "false" || value == "FALSE")
      s.deterministic = 0;
    else if (value == "strict" || value == "STRICT")
      s.deterministic = 2;
    else
      return Bad("HCCL_DETERMINISTIC", text, "true, false or strict");
  }
  return s;
}

}  // namespace npu::coll
