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
  static constexpr uint32_t kVersion = 3;  // of everything that ranks send each other
  uint64_t magic = kMagic;
  uint32_t version = kVersion;
  int32_t pid = 0, card = -1;
  uint32_t spare = 0;
  std::array<char, 128> id{};
  uint32_t rank = 0, ranks = 0;
};

struct Caller {
  os::Fd fd;
  int32_t pid = 0, card = -1;
  uint32_t version = Hello::kVersion;
  uint32_t rank = 0, ranks = 0;
};

class Listener : public std::enable_shared_from_this<Listener> {
 public:
  static Result<std::shared_ptr<Listener>> Open(const std::string& address, std::span<const uint16_t> ports);
  ~Listener();
  uint16_t port() const { return port_; }
  // Whoever wants something else than this is told so and hung up on, instead of waiting for it.
  void ServeOnly(const std::string& id);

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
  void Seat(os::Fd fd, const Hello& hello);
  Box& BoxOf(const std::string& id);  // with mutex_ held

  os::Fd fd_, stop_;
  uint16_t port_ = 0;
  std::mutex mutex_;
  std::map<std::string, Box> boxes_;
  std::string only_;  // see ServeOnly
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
struct Calling {
  uint32_t rank = 0, ranks = 0;
  int32_t card = -1;
  bool quiet = false;  // says nothing while it waits
  bool known = false;  // somebody has listened there: who is turned away need not wait for him
};
Result<os::Fd> Call(const std::string& address, uint16_t port, const std::string& id, const Calling& as,
                    Deadline deadline);

}  // namespace npu::coll
