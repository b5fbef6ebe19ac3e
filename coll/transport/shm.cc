#include "coll/transport/shm.h"

#include <algorithm>
#include <cstring>

namespace npu::coll {

ShmTransport::ShmTransport(uint32_t rank, std::vector<Member> members, std::vector<uint32_t> here,
                           std::shared_ptr<ControlBlock> block, Host& host)
    : rank_(rank), members_(std::move(members)), here_(std::move(here)), block_(std::move(block)), host_(host) {}

ShmTransport::~ShmTransport() { ShmTransport::Leave(false); }

// A waiter arms, then looks again; a poster stores, then looks whether somebody is armed. The two fences make sure that
// at least one sees the other.
void ShmTransport::RingIfArmed(uint32_t peer) {
  RankBox& box = block_->box(peer);
  if (box.armed.load(std::memory_order_relaxed) != 0 && box.armed.exchange(0, std::memory_order_relaxed) != 0) {
    host_.Ring(members_[peer].slot);
  }
}

void ShmTransport::RingAll() {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  for (const uint32_t peer : here_) {
    if (peer != rank_) RingIfArmed(peer);
  }
}

bool ShmTransport::Post(Lane lane, uint32_t peer, uint64_t seq, const Line& line, std::span<const std::byte> payload,
                        const Offer&) {
  if (lane == Lane::kGroup) {
    GroupLine& at = block_->box(rank_).lines[seq & 1];
    at.line = line;
    if (!payload.empty()) std::memcpy(at.payload, payload.data(), std::min<size_t>(payload.size(), kInlineBytes));
    at.seq.store(seq, std::memory_order_release);  // pairs with Peek
    RingAll();
    return true;
  }
  PairCell& cell = block_->cell(rank_, peer);
  if (cell.answer.load(std::memory_order_acquire) / 4 + 1 != seq) return false;  // the line before is not answered
  cell.line = line;
  cell.seq.store(seq, std::memory_order_release);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  RingIfArmed(peer);
  return true;
}

Posted ShmTransport::Peek(uint32_t peer, Lane lane, uint64_t seq) {
  if (lane == Lane::kGroup) {
    const GroupLine& at = block_->box(peer).lines[seq & 1];
    if (at.seq.load(std::memory_order_acquire) != seq) return {};
    return {&at.line, at.payload};
  }
  const PairCell& cell = block_->cell(peer, rank_);
  if (cell.seq.load(std::memory_order_acquire) != seq) return {};
  return {&cell.line, nullptr};
}

void ShmTransport::Reach(Lane lane, uint32_t peer, uint64_t step) {
  if (lane == Lane::kGroup) {
    block_->box(rank_).progress.store(step, std::memory_order_release);  // pairs with ReachedBy
    RingAll();
    return;
  }
  block_->cell(peer, rank_).answer.store(step, std::memory_order_release);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  RingIfArmed(peer);
}

uint64_t ShmTransport::ReachedBy(uint32_t peer, Lane lane) {
  if (lane == Lane::kGroup) return block_->box(peer).progress.load(std::memory_order_acquire);
  return block_->cell(rank_, peer).answer.load(std::memory_order_acquire);
}

Result<void*> ShmTransport::Map(uint32_t peer, const Place& place) {
  Result<void*> mapped = host_.Map(place);
  if (mapped.ok()) return mapped;
  bool gone = false;
  if (Status state = Check(peer, &gone); !state.ok()) return state;
  const Member& member = members_[peer];
  return Error(mapped.status().code(), "rank {} (pid {}, device {}): {}", peer, member.pid, member.card,
               mapped.status().text())
      .Remedy("{}", mapped.status().remedy());
}

Status ShmTransport::Fetch(uint32_t, Lane, uint64_t, Buffer, uint64_t, std::span<std::byte>, std::atomic<uint32_t>*,
                           uint64_t) {
  return Error(Code::kInternal, "Memory that is mapped was to be fetched.");
}

Status ShmTransport::Check(uint32_t peer, bool* gone) {
  const uint32_t state = block_->box(peer).state.load(std::memory_order_acquire);
  const Member& member = members_[peer];
  *gone = state == kRankHere;
  if (state == kRankHere && host_.Alive(member.slot)) return {};
  const char* what = state == kRankLeft     ? "has left the communicator"
                     : state == kRankFailed ? "gave up after an error of its own"
                                            : "is dead (killed or exited)";
  return Error(Code::kRemoteError, "rank {} (pid {}, device {}) {}", peer, member.pid, member.card, what);
}

bool ShmTransport::Newest(uint32_t peer, Line* line, uint64_t* seq) {
  const RankBox& box = block_->box(peer);
  const uint64_t a = box.lines[0].seq.load(std::memory_order_acquire);
  const uint64_t b = box.lines[1].seq.load(std::memory_order_acquire);
  *seq = std::max(a, b);
  if (*seq == 0) return false;
  // The peer may be writing the next one: a torn line says something odd, never something dangerous.
  std::memcpy(static_cast<void*>(line), &box.lines[*seq & 1].line, sizeof *line);
  return true;
}

void ShmTransport::Arm(bool armed) {
  block_->box(rank_).armed.store(armed ? 1 : 0, std::memory_order_relaxed);
  if (armed) std::atomic_thread_fence(std::memory_order_seq_cst);
}

void ShmTransport::Leave(bool failed) {
  uint32_t here = kRankHere;
  const uint32_t state = failed ? kRankFailed : kRankLeft;
  if (!block_->box(rank_).state.compare_exchange_strong(here, state, std::memory_order_release)) return;
  RingAll();
}

}  // namespace npu::coll
