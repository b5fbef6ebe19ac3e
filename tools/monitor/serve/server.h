// An HTTP or HTTPS server with bounds: GET and HEAD only, small requests, few threads, no word about a request in any
// log.
//
//   Server server("exporter", config);
//   server.Get("/metrics", "text/plain", [&](…) { return text; });
//   NPU_TRY(server.Start("127.0.0.1:8082"));
//   …
//   server.Stop();
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "base/status/status.h"
#include "tools/monitor/serve/auth.h"
#include "tools/monitor/serve/deadline.h"
#include "tools/monitor/serve/web_config.h"

namespace httplib {
class Server;
}

namespace npu::monitor {

struct Address {
  std::string host;
  int port = 0;
};
// "127.0.0.1:8082", "[::1]:8082", ":8082" (all interfaces), "8082" (loopback).
Result<Address> ParseAddress(const std::string& text);

class Server {
 public:
  // `limit`: a connection that brings no whole request for so long is closed.
  Server(std::string name, const WebConfig& config, std::chrono::milliseconds limit = std::chrono::seconds(10));
  ~Server();
  void Get(const std::string& path, const std::string& type, std::function<std::string()> content);
  // Server-sent events: `next` gives the data of one event each second.
  void Events(const std::string& path, std::function<std::string()> next);
  // Listens and returns. A port that is taken, a certificate that cannot be read: an error that says so.
  Status Start(const Address& address);
  void Stop();
  int port() const { return port_; }

 private:
  Status Prepare();

  const std::string name_;
  const WebConfig config_;
  Auth auth_;
  Deadline deadline_;
  std::unique_ptr<httplib::Server> http_;
  Status prepared_;
  std::thread thread_;
  std::atomic<bool> stopping_{false};
  std::atomic<int> listeners_{0};  // of events
  int port_ = 0;
};

}  // namespace npu::monitor
