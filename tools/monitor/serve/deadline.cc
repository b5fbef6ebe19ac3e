#include "tools/monitor/serve/deadline.h"

#include <fmt/format.h>
#include <netdb.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <vector>

#include "base/os/thread.h"

namespace npu::monitor {
namespace {

constexpr int kWaiting = 6;  // times the limit, for a client that waits for the server

// The other end of a socket, when this end has that port; empty for anything else.
std::string ClientOf(int descriptor, int port) {
  const auto name = [&](auto ask, std::string& host, std::string& service) {
    sockaddr_storage address{};
    socklen_t size = sizeof address;
    char host_text[NI_MAXHOST], service_text[NI_MAXSERV];
    if (ask(descriptor, reinterpret_cast<sockaddr*>(&address), &size) != 0) return false;
    if (address.ss_family != AF_INET && address.ss_family != AF_INET6) return false;
    if (getnameinfo(reinterpret_cast<sockaddr*>(&address), size, host_text, sizeof host_text, service_text,
                    sizeof service_text, NI_NUMERICHOST | NI_NUMERICSERV) != 0)
      return false;
    host = host_text;
    service = service_text;
    return true;
  };
  std::string host, service;
  if (!name(getsockname, host, service) || service != fmt::format("{}", port)) return {};
  return name(getpeername, host, service) ? fmt::format("{}:{}", host, service) : std::string();
}

std::vector<int> Descriptors() {
  std::vector<int> descriptors;
  std::error_code error;
  for (std::filesystem::directory_iterator at("/proc/self/fd", error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename();
    int descriptor = -1;
    std::from_chars(name.data(), name.data() + name.size(), descriptor);
    if (descriptor >= 0) descriptors.push_back(descriptor);
  }
  return descriptors;
}

}  // namespace

Deadline::~Deadline() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

std::string Deadline::Key(const std::string& address, int port) { return fmt::format("{}:{}", address, port); }

Status Deadline::Watch(int port) {
  NPU_ASSIGN(thread_, os::Start("npu-deadline", [this, port] { Run(port); }));
  return {};
}

void Deadline::Progress(const std::string& client) {
  const std::lock_guard lock(mutex_);
  clients_[client] = {Clock::now(), Clock::now()};
}

void Deadline::Hold(const std::string& client) {
  const std::lock_guard lock(mutex_);
  held_.insert(client);
}

void Deadline::Release(const std::string& client) {
  const std::lock_guard lock(mutex_);
  if (const auto at = held_.find(client); at != held_.end()) held_.erase(at);
}

void Deadline::Run(int port) {
  const auto period = std::min<std::chrono::milliseconds>(std::chrono::seconds(1), limit_ / 2);
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, period, [this] { return stopping_; })) Look(port);
}

void Deadline::Look(int port) {
  const auto now = Clock::now();
  std::map<std::string, Client> connected;
  std::vector<int> late;
  for (const int descriptor : Descriptors()) {
    const std::string name = ClientOf(descriptor, port);
    if (name.empty()) continue;
    const auto known = clients_.find(name);
    Client client = known != clients_.end() ? known->second : Client{now, now};
    // A client that waits for a thread of ours has sent more than was read. That is not its fault, up to a point.
    int unread = 0;
    if (ioctl(descriptor, FIONREAD, &unread) == 0 && unread > 0 && now - client.whole < kWaiting * limit_)
      client.patience_from = now;
    connected[name] = client;
    if (now - client.patience_from > limit_ && !held_.contains(name)) late.push_back(descriptor);
  }
  clients_ = std::move(connected);
  // Closed after all were looked at, since threads that come free read on at once. A descriptor may have become another
  // client's by now; that one then has to come again.
  for (const int descriptor : late) {
    if (!ClientOf(descriptor, port).empty()) shutdown(descriptor, SHUT_RDWR);
  }
}

}  // namespace npu::monitor
