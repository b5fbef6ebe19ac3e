// Sends and receives between two ranks: one, or a batch whose items do not wait for each other.
#pragma once

#include <atomic>

#include "coll/algo/operation.h"

namespace npu::coll {

struct PairItem {
  bool send = false;
  uint32_t peer = 0;
  uint64_t seq = 0;   // number in the lane between the two, given when the call was made
  Fingerprint print;  // kSendRecv, type, count
  std::byte* data = nullptr;
  uint64_t bytes = 0;
  Place place;
};

class PairOp final : public Operation {
 public:
  PairOp(const Team& team, const char* name, std::vector<PairItem> items);
  Status Start() override;
  bool Ready() override { return true; }
  Status Advance(Parallel& parallel, bool* done) override;
  std::vector<uint32_t> Waiting() const override;
  bool Received() const override { return false; }  // known at the end only
  bool Moving() const override;
  uint64_t Bytes() const override;
  const char* Name() const override { return name_; }
  std::string Describe() const override;
  uint64_t SentBytes() const override { return Bytes(/*send=*/true); }
  uint64_t ReceivedBytes() const override { return Bytes(/*send=*/false); }

 private:
  uint64_t Bytes(bool send) const {
    uint64_t bytes = 0;
    for (const auto& one : items_) bytes += one->item.send == send ? one->item.bytes : 0;
    return bytes;
  }
  enum class State : uint8_t { kPost, kAnswer, kFetched, kOver };
  struct Progress {
    PairItem item;
    State state = State::kPost;
    std::atomic<uint32_t> pending{0};
    explicit Progress(PairItem i) : item(std::move(i)) {}
  };

  Status AdvanceSend(Progress& one);
  Status AdvanceReceive(Progress& one, Parallel& parallel);
  Status MatchOwn();
  std::string ItemText(const PairItem& item) const;

  const Team& team_;
  const char* name_;
  std::vector<std::unique_ptr<Progress>> items_;
};

}  // namespace npu::coll
