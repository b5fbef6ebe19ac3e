// Ranks that share no memory: one TCP connection for each pair, lines and data as frames.
//
// What a peer fetches is sent by the process's pump thread straight from the offered buffer, so a rank serves its peers
// while its own stream does something else. Data of a fetch is read straight into its destination.
#pragma once

#include <memory>
#include <vector>

#include "base/os/fd.h"
#include "coll/transport/host.h"
#include "coll/transport/transport.h"

namespace npu::coll {

class TcpLink;

class TcpTransport final : public Transport {
 public:
  // `sockets` by rank; empty where this transport serves nobody.
  static Result<std::unique_ptr<TcpTransport>> Make(uint32_t rank, std::vector<Member> members,
                                                    std::vector<os::Fd> sockets);
  ~TcpTransport() override;

  bool Post(Lane lane, uint32_t peer, uint64_t seq, const Line& line, std::span<const std::byte> payload,
            const Offer& offer) override;
  Posted Peek(uint32_t peer, Lane lane, uint64_t seq) override;
  void Reach(Lane lane, uint32_t peer, uint64_t step) override;
  uint64_t ReachedBy(uint32_t peer, Lane lane) override;
  bool Maps() const override { return false; }
  Result<void*> Map(uint32_t peer, const Place& place) override;
  Status Fetch(uint32_t peer, Lane lane, uint64_t seq, Buffer buffer, uint64_t offset, std::span<std::byte> to,
               std::atomic<uint32_t>* pending, uint64_t after) override;
  Status Check(uint32_t peer, bool* gone) override;
  bool Newest(uint32_t peer, Line* line, uint64_t* seq) override;
  std::chrono::milliseconds Silent(uint32_t peer) override;
  void Arm(bool) override {}  // the pump wakes whoever waits after every frame
  void Leave(bool failed) override;

 private:
  TcpTransport() = default;
  std::vector<Member> members_;
  std::vector<std::shared_ptr<TcpLink>> links_;  // by rank
};

}  // namespace npu::coll
