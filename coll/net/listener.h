// A listening socket whose connections say what they are for, and the places where they are awaited.
//
//   NPU_ASSIGN(auto listener, Listener::Open(address, ports));
//   Inbox inbox(listener, id);                       // from now on connections for `id` come here
//   NPU_ASSIGN(Caller caller, inbox.Next(deadline)); // each with the rank that called
//
// A connection begins with a Hello. One for an id that nobody awaits yet is kept for a while: a rank may call before
// the one it calls has come this far. Anything else on the port is hung up on.
#pragma once

#include <array>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "coll/net/socket.h"

namespace npu::coll {

struct Hello {
  static constexpr uint64_t kMagic = 0x314C4C4F434E5041ull;
  uint64_t magic = kMagic;
  std::array<char, 128> id{};
  uint32_t rank = 0, ranks = 0;
};

struct Caller {
  os::Fd fd;
  uint32_t rank = 0, ranks = 0;
};

class Listener : public std::enable_shared_from_this<Listener> {
 public:
  static Result<std::shared_ptr<Listener>> Open(const std::string& address, std::span<const uint16_t> ports);
  ~Listener();
  uint16_t port() const { return port_; }

 private:
  friend class Inbox;
  struct Box {
    std::condition_variable came;
    std::deque<Caller> callers;
    int awaited = 0;  // inboxes
    Deadline until = Deadline::Never();
  };
  Listener(Listening listening);
  void Serve();
  Box& BoxOf(const std::string& id);  // with mutex_ held

  os::Fd fd_, stop_;
  uint16_t port_ = 0;
  std::mutex mutex_;
  std::map<std::string, Box> boxes_;
  std::thread thread_;
};

class Inbox {
 public:
  Inbox(std::shared_ptr<Listener> listener, std::string id);
  ~Inbox();
  Inbox(const Inbox&) = delete;
  // kCommTimeout when nobody calls.
  Result<Caller> Next(Deadline deadline);

 private:
  std::shared_ptr<Listener> listener_;
  std::string id_;
};

// The other side: connects and says hello.
Result<os::Fd> Call(const std::string& address, uint16_t port, const std::string& id, uint32_t rank, uint32_t ranks,
                    Deadline deadline);

}  // namespace npu::coll
