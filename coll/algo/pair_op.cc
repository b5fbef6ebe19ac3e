#include "coll/algo/pair_op.h"

#include <cstring>
#include <memory>

#include "coll/comm/types.h"
#include "kernels/simd/reduce_into.h"

namespace npu::coll {
namespace {
// How a receiver answers line n of a pair lane.
constexpr uint64_t Taken(uint64_t seq) { return seq * 4 + 3; }
constexpr uint64_t Refused(uint64_t seq) { return seq * 4 + 2; }
constexpr int64_t kGrainBytes = 256 << 10;
}  // namespace

PairOp::PairOp(const Team& team, const char* name, std::vector<PairItem> items) : team_(team), name_(name) {
  for (PairItem& item : items) items_.push_back(std::make_unique<Progress>(std::move(item)));
}

std::string PairOp::ItemText(const PairItem& item) const {
  return fmt::format("{} of {} x {} {} rank {}", item.send ? "HcclSend" : "HcclRecv", item.print.count,
                     InfoOf(item.print.type).name, item.send ? "to" : "from", item.peer);
}

std::string PairOp::Describe() const {
  if (items_.size() == 1) return fmt::format("{} ({})", ItemText(items_[0]->item), team_.name);
  return fmt::format("{} of {} items ({})", name_, items_.size(), team_.name);
}

std::vector<uint32_t> PairOp::Waiting() const {
  std::vector<uint32_t> ranks;
  for (const auto& one : items_) {
    if (one->state != State::kOver && one->item.peer != team_.rank) ranks.push_back(one->item.peer);
  }
  return ranks;
}

bool PairOp::Moving() const {
  for (const auto& one : items_) {
    if (one->state == State::kFetched || (one->item.send && one->state == State::kAnswer)) return true;
  }
  return false;
}

uint64_t PairOp::Bytes() const {
  uint64_t bytes = 0;
  for (const auto& one : items_) bytes += one->item.bytes;
  return bytes;
}

Status PairOp::AdvanceSend(Progress& one) {
  const PairItem& item = one.item;
  Transport& to = *team_.to[item.peer];
  if (one.state == State::kPost) {
    Line line;
    line.print = item.print;
    line.in = item.place;
    line.in.bytes = item.bytes;
    if (!to.Post(Lane::kPair, item.peer, item.seq, line, {}, {item.data, nullptr})) return {};
    one.state = State::kAnswer;
  }
  const uint64_t answer = to.ReachedBy(item.peer, Lane::kPair);
  if (answer < Refused(item.seq)) return {};
  if (answer == Refused(item.seq)) {
    return Error(Code::kCommMismatch,
                 "EI0005: rank {} calls {} in communicator {}, but rank {} receives something else there.", team_.rank,
                 ItemText(item), team_.name, item.peer)
        .Remedy("Make count and type of send and receive equal; the error on rank {} names both.", item.peer);
  }
  one.state = State::kOver;
  return {};
}

Status PairOp::AdvanceReceive(Progress& one, Parallel& parallel) {
  const PairItem& item = one.item;
  Transport& from = *team_.to[item.peer];
  if (one.state == State::kPost) {
    const Posted posted = from.Peek(item.peer, Lane::kPair, item.seq);
    if (posted.line == nullptr) return {};
    const Line line = *posted.line;
    if (line.print != item.print || line.in.bytes < item.bytes) {
      from.Reach(Lane::kPair, item.peer, Refused(item.seq));
      return Error(Code::kCommMismatch, "EI0005: rank {} calls {} in communicator {}, but rank {} sends {} x {}.",
                   team_.rank, ItemText(item), team_.name, item.peer, line.print.count, InfoOf(line.print.type).name)
          .Remedy("Make count and type of send and receive equal, and their order the same on both ranks.");
    }
    if (from.Maps()) {
      NPU_ASSIGN(void* base, from.Map(item.peer, line.in));
      const auto* source = static_cast<const std::byte*>(base);
      parallel.For(static_cast<int64_t>(item.bytes), kGrainBytes, [&](int64_t begin, int64_t end) {
        std::memcpy(item.data + begin, source + begin, static_cast<size_t>(end - begin));
      });
    } else {
      NPU_TRY(from.Fetch(item.peer, Lane::kPair, item.seq, Buffer::kIn, 0, {item.data, item.bytes}, &one.pending));
    }
    one.state = State::kFetched;
  }
  if (one.pending.load(std::memory_order_acquire) != 0) return {};
  from.Reach(Lane::kPair, item.peer, Taken(item.seq));
  one.state = State::kOver;
  return {};
}

// Sends of a batch to this very rank go to its receives from itself, in order.
Status PairOp::MatchOwn() {
  size_t next = 0;
  for (auto& send : items_) {
    if (!send->item.send || send->item.peer != team_.rank || send->state == State::kOver) continue;
    while (next < items_.size() && (items_[next]->item.send || items_[next]->item.peer != team_.rank)) ++next;
    if (next == items_.size() || items_[next]->item.print != send->item.print) {
      return Error(Code::kCommMismatch, "EI0005: rank {} calls {} with no equal receive from itself in the same batch.",
                   team_.rank, ItemText(send->item))
          .Remedy("Put the HcclRecv of the same count and type into the batch.");
    }
    std::memmove(items_[next]->item.data, send->item.data, send->item.bytes);
    items_[next]->state = send->state = State::kOver;
    ++next;
  }
  for (const auto& one : items_) {
    if (one->item.peer == team_.rank && one->state != State::kOver) {
      return Error(Code::kCommMismatch, "EI0005: rank {} calls {} with no send to itself in the same batch.",
                   team_.rank, ItemText(one->item))
          .Remedy("Put the matching HcclSend into the batch.");
    }
  }
  return {};
}

Status PairOp::Start() {
  for (auto& one : items_) {
    if (one->item.send && one->item.peer != team_.rank && one->state == State::kPost) NPU_TRY(AdvanceSend(*one));
  }
  return {};
}

Status PairOp::Advance(Parallel& parallel, bool* done) {
  NPU_TRY(MatchOwn());
  *done = true;
  for (auto& one : items_) {
    if (one->state == State::kOver) continue;
    NPU_TRY(one->item.send ? AdvanceSend(*one) : AdvanceReceive(*one, parallel));
    if (one->state != State::kOver) *done = false;
  }
  return {};
}

}  // namespace npu::coll
