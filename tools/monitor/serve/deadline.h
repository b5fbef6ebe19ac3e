// Closes connections that bring no whole request in time: a client that sends byte by byte, or reads so, would hold a
// thread of the server for ever, since the HTTP library's limits are for one read each.
//
//   Deadline deadline(seconds(10));
//   deadline.Watch(port);                    // once the server listens
//   deadline.Progress(Deadline::Key(request.remote_addr, request.remote_port));  // a whole request has come
//   deadline.Hold(key); … deadline.Release(key);   // a stream of events may last
//
// Any thread may call. The library shows none of its sockets, so the process's own are looked through, once a second.
#pragma once

#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include "base/status/status.h"

namespace npu::monitor {

class Deadline {
 public:
  explicit Deadline(std::chrono::milliseconds limit) : limit_(limit) {}
  ~Deadline();
  static std::string Key(const std::string& address, int port);
  Status Watch(int port);
  void Progress(const std::string& client);
  void Hold(const std::string& client);
  void Release(const std::string& client);

 private:
  using Clock = std::chrono::steady_clock;
  void Run(int port);
  void Look(int port);

  const std::chrono::milliseconds limit_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;
  struct Client {
    Clock::time_point whole;          // its last whole request, or when it came
    Clock::time_point patience_from;  // since when it has been its turn
  };
  std::map<std::string, Client> clients_;  // that are connected
  std::multiset<std::string> held_;
  std::thread thread_;
};

}  // namespace npu::monitor
