// Calls in which every rank of a communicator takes part.
#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>

#include "coll/algo/operation.h"
#include "kernels/simd/reduce_into.h"

namespace npu::coll {

// Bytes that this rank takes from the in-buffer of `peer`. The peer says where they begin when from is kPeerKnows.
struct Pull {
  static constexpr uint64_t kPeerKnows = ~uint64_t{0};
  uint32_t peer = 0;
  uint64_t from = 0;
  uint64_t to = 0;  // offset in our out-buffer
  uint64_t bytes = 0;
};

// Which part of a reduction this rank keeps.
enum class Keep : uint8_t { kAll, kBlock, kRoot };

struct Reducing {
  simd::Reduction what;
  Keep keep = Keep::kAll;
  uint64_t count = 0;  // elements of the result
  uint32_t element_bytes = 0;
  bool peer_knows = false;  // kBlock of different sizes: each peer says where our block begins in its buffer
};

struct GroupCall {
  Fingerprint print;
  const std::byte* in = nullptr;  // addresses of this process; null where the rank gives or takes nothing
  std::byte* out = nullptr;
  Place in_place, out_place;
  uint64_t in_bytes = 0, out_bytes = 0;
  std::vector<Pull> pulls;
  std::optional<Reducing> reduce;
  std::vector<uint64_t> table;  // two words for each peer: where its part of our in-buffer begins, and its bytes
};

class GroupOp final : public Operation {
 public:
  // Calls of a communicator take turns: `finished` is the number of the last one that is over here.
  GroupOp(const Team& team, uint64_t seq, GroupCall call, std::atomic<uint64_t>* finished);
  Status Start() override;
  bool Ready() override;
  Status Advance(Parallel& parallel, bool* done) override;
  std::vector<uint32_t> Waiting() const override;
  bool Received() const override { return state_ > State::kLines; }
  bool Moving() const override { return state_ == State::kFetched || state_ == State::kGathered; }
  uint64_t Bytes() const override { return std::max(call_.in_bytes, call_.out_bytes); }
  const char* Name() const override { return NameOf(call_.print.op); }
  std::string Describe() const override;
  uint64_t SentBytes() const override { return call_.in != nullptr ? call_.in_bytes : 0; }
  uint64_t ReceivedBytes() const override { return call_.out != nullptr ? call_.out_bytes : 0; }

 private:
  enum class State : uint8_t { kTurn, kLines, kWork, kPartial, kFetched, kReduced, kGathered, kLast, kOver };

  // Steps of a call, see Transport::Reach.
  static constexpr uint32_t kPartialStep = 1, kReducedStep = 2, kEndStep = 3;

  static void CopyBytes(Parallel& parallel, const std::byte* from, std::byte* to, uint64_t bytes);
  bool DataInline() const;
  void Post();
  bool AllPosted();
  bool AllReached(uint64_t step);
  Status CheckLines() const;
  Status CheckSizes() const;
  Status Work(Parallel& parallel);
  Status Copies(Parallel& parallel);
  Status GatherSources();
  // Reductions whose data come in messages: a few pieces are asked for ahead, and each is summed while it is warm.
  bool InPieces() const { return call_.reduce && !team_.direct && !DataInline(); }
  Status AskForPiece();
  Status SumPieces(Parallel& parallel, bool* over);
  uint64_t PieceElements() const { return std::max<uint64_t>(64, kPieceBytes / call_.reduce->element_bytes); }
  Status Short(uint32_t peer, uint64_t offers, uint64_t bytes, uint64_t from) const;
  Status AskForResults();
  Status CopyResults();
  void RunReduction(Parallel& parallel, uint64_t begin, uint64_t end);
  bool OutHidesIn() const;
  bool Harmless() const;

  // Several hosts: within each host first, then across (layers.cc).
  bool LayersSuit() const;
  bool SumsByHosts() const;
  bool Layered() const;
  Status AdvanceLayered(Parallel& parallel, bool* waits);
  Status SumOfHost(Parallel& parallel);
  Status FetchSums();
  Status SumOfHosts(Parallel& parallel);
  Status FetchParts(Parallel& parallel);
  Status SpreadParts(Parallel& parallel);
  Result<std::byte*> OutOf(uint32_t rank, uint64_t bytes);
  uint64_t PartBegin(uint32_t rank) const;  // bytes of the in-buffer that rank `rank` sums
  uint64_t PartBytes(uint32_t rank) const;
  uint64_t PartialAt(uint32_t host, uint32_t local) const;
  Result<std::unique_ptr<std::byte[]>> Allocate(uint64_t bytes) const;
  uint64_t Step(uint32_t k) const { return seq_ * 4 + k; }
  uint64_t SliceBegin(uint32_t rank) const;
  Result<const std::byte*> Source(uint32_t peer, uint64_t from, uint64_t bytes, std::byte* staging);

  static constexpr uint64_t kPieceBytes = 256 << 10, kPiecesAhead = 4;

  const Team& team_;
  const uint64_t seq_;
  GroupCall call_;
  std::atomic<uint64_t>* finished_;
  State state_ = State::kTurn;
  uint32_t next_ = 0;  // the first rank that is not known to have come this far
  std::vector<Posted> lines_;
  std::vector<const void*> sources_;
  std::vector<void*> sinks_;
  uint64_t begin_ = 0, end_ = 0;  // elements this rank reduces
  std::atomic<uint32_t> pending_{0};
  std::vector<const std::byte*> mapped_;  // in pieces: where each rank's part begins, null where it has to be fetched
  std::vector<uint64_t> firsts_;          // and its place in that rank's in-buffer
  std::byte* sum_ = nullptr;              // where the sums go
  uint64_t asked_ = 0, summed_ = 0;       // elements
  std::atomic<uint32_t> piece_pending_[kPiecesAhead] = {};
  std::unique_ptr<std::byte[]> staging_;  // what was fetched from peers, to be reduced
  std::unique_ptr<std::byte[]> partial_;  // layers: sums of this host, and the result of a rank that keeps none
  uint64_t partial_bytes_ = 0;
  bool layered_ = false;
  std::vector<Pull> spread_;           // layers: what came from other hosts and goes to this host's ranks
  std::unique_ptr<std::byte[]> held_;  // the result, when the out-buffer is still read by peers
};

}  // namespace npu::coll
