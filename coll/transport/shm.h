// Ranks of one machine: lines in a shared control block, data in each other's mapped device memory.
#pragma once

#include <memory>
#include <vector>

#include "coll/transport/control_block.h"
#include "coll/transport/host.h"
#include "coll/transport/transport.h"

namespace npu::coll {

class ShmTransport final : public Transport {
 public:
  // `members` by rank of the communicator; `here` says which of them this transport serves (with this rank).
  ShmTransport(uint32_t rank, std::vector<Member> members, std::vector<uint32_t> here,
               std::shared_ptr<ControlBlock> block, Host& host);
  ~ShmTransport() override;

  bool Post(Lane lane, uint32_t peer, uint64_t seq, const Line& line, std::span<const std::byte> payload,
            const Offer& offer) override;
  Posted Peek(uint32_t peer, Lane lane, uint64_t seq) override;
  void Reach(Lane lane, uint32_t peer, uint64_t step) override;
  uint64_t ReachedBy(uint32_t peer, Lane lane) override;
  bool Maps() const override { return true; }
  Result<void*> Map(uint32_t peer, const Place& place) override;
  Status Fetch(uint32_t peer, Lane lane, uint64_t seq, Buffer buffer, uint64_t offset, std::span<std::byte> to,
               std::atomic<uint32_t>* pending, uint64_t after) override;
  Status Check(uint32_t peer, bool* gone) override;
  bool Newest(uint32_t peer, Line* line, uint64_t* seq) override;
  std::chrono::milliseconds Silent(uint32_t) override { return {}; }
  void Arm(bool armed) override;
  void Leave(bool failed) override;

 private:
  void RingIfArmed(uint32_t peer);
  void RingAll();

  const uint32_t rank_;
  const std::vector<Member> members_;
  const std::vector<uint32_t> here_;
  const std::shared_ptr<ControlBlock> block_;
  Host& host_;
};

}  // namespace npu::coll
