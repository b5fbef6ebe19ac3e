#include "coll/algo/group_op.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "coll/comm/types.h"

namespace npu::coll {
namespace {

// From here copies and results go round the caches (docs/performance.md, Collectives).
constexpr uint64_t kStreamingCopyBytes = 16u << 20, kStreamingResultBytes = 4u << 20;
// Up to there and from here on, a reduction that just about fits the second level cache goes through its slice
// backwards every other time: what the call before used last is still there.
constexpr uint64_t kTurningBytes = 512u << 10;
// Work for one thread at a time.
constexpr uint64_t kGrainBytes = 64u << 10;

simd::Stores StoresFor(uint64_t bytes, uint64_t from) {
  return bytes >= from ? simd::Stores::kStreaming : simd::Stores::kPlain;
}

}  // namespace

std::string Describe(const Fingerprint& print) {
  std::string text = fmt::format("{} of {} x {}", NameOf(print.op), print.count, InfoOf(print.type).name);
  switch (print.op) {
    case Op::kBarrier:
      return NameOf(print.op);
    case Op::kAllGatherV:
    case Op::kReduceScatterV:
    case Op::kAlltoAllV:
    case Op::kAlltoAllVC:
      text = fmt::format("{} of {}", NameOf(print.op), InfoOf(print.type).name);
      break;
    default:
      break;
  }
  if (print.reduce <= 3) text += fmt::format(", {}", NameOfReduce(print.reduce));
  if (print.op == Op::kBroadcast || print.op == Op::kReduce || print.op == Op::kScatter) {
    text += fmt::format(", root {}", print.root);
  }
  return text;
}

void GroupOp::CopyBytes(Parallel& parallel, const std::byte* from, std::byte* to, uint64_t bytes) {
  if (bytes == 0 || from == to) return;
  const auto stores = StoresFor(bytes, kStreamingCopyBytes);
  parallel.For(static_cast<int64_t>(bytes), static_cast<int64_t>(kGrainBytes), [&](int64_t begin, int64_t end) {
    simd::CopyInto(from + begin, to + begin, static_cast<size_t>(end - begin), stores);
  });
}

GroupOp::GroupOp(const Team& team, uint64_t seq, GroupCall call, std::atomic<uint64_t>* finished)
    : team_(team), seq_(seq), call_(std::move(call)), finished_(finished), lines_(team.size) {}

std::string GroupOp::Describe() const {
  return fmt::format("{} (call {} of {})", coll::Describe(call_.print), seq_, team_.name);
}

// Small buffers travel in the line: nobody then looks into ours, and the call ends without a closing barrier.
bool GroupOp::DataInline() const {
  if (call_.in == nullptr || !call_.table.empty()) return false;
  if (call_.in_bytes <= kInlineBytes) return true;
  // Over wires alone everybody sends all of it to everybody: one way instead of three. Where each peer wants a part only
  // (or the sums are shared out), that is worth it as long as little is sent in vain.
  if (!team_.wires || call_.in_bytes > kWireInlineBytes) return false;
  switch (call_.print.op) {
    case Op::kAllGather:
    case Op::kBroadcast:
      return true;
    case Op::kAllReduce:
      return (team_.size - 1) * call_.in_bytes <= kWireInlineBytes;
    default:
      return false;
  }
}

void GroupOp::Post() {
  Line line;
  line.print = call_.print;
  line.in = call_.in_place;
  line.in.bytes = call_.in != nullptr ? call_.in_bytes : 0;
  line.out = call_.out_place;
  line.out.bytes = call_.out != nullptr ? call_.out_bytes : 0;
  std::span<const std::byte> payload;
  if (DataInline()) payload = {call_.in, call_.in_bytes};
  if (!call_.table.empty()) payload = std::as_bytes(std::span(call_.table));
  line.payload_bytes = static_cast<uint32_t>(payload.size());
  if (OutHidesIn() && !call_.reduce && !Harmless()) line.flags |= kOverlaps;
  const Offer offer{call_.in, call_.out, partial_.get(), partial_bytes_};
  for (Transport* transport : team_.transports) transport->Post(Lane::kGroup, 0, seq_, line, payload, offer);
}

bool GroupOp::AllPosted() {
  for (; next_ < team_.size; ++next_) {
    if (next_ == team_.rank) continue;
    lines_[next_] = team_.to[next_]->Peek(next_, Lane::kGroup, seq_);
    if (lines_[next_].line == nullptr) return false;
  }
  return true;
}

bool GroupOp::Ready() {
  if (state_ == State::kTurn) return finished_->load(std::memory_order_acquire) == seq_ - 1;
  return state_ != State::kLines || AllPosted();
}

bool GroupOp::AllReached(uint64_t step) {
  for (; next_ < team_.size; ++next_) {
    if (next_ != team_.rank && team_.to[next_]->ReachedBy(next_, Lane::kGroup) < step) return false;
  }
  return true;
}

std::vector<uint32_t> GroupOp::Waiting() const {
  std::vector<uint32_t> ranks;
  if (state_ == State::kTurn) return ranks;
  for (uint32_t p = 0; p < team_.size; ++p) {
    if (p == team_.rank) continue;
    bool missing = false;
    switch (state_) {
      case State::kLines:
        missing = team_.to[p]->Peek(p, Lane::kGroup, seq_).line == nullptr;
        break;
      case State::kPartial:
        missing = team_.to[p]->ReachedBy(p, Lane::kGroup) < Step(kPartialStep);
        break;
      case State::kReduced:
        missing = team_.to[p]->ReachedBy(p, Lane::kGroup) < Step(kReducedStep);
        break;
      case State::kLast:
        missing = team_.to[p]->ReachedBy(p, Lane::kGroup) < Step(kEndStep);
        break;
      default:
        missing = true;
        break;  // bytes under way: from whom is not kept
    }
    if (missing) ranks.push_back(p);
  }
  return ranks;
}

Status GroupOp::CheckLines() const {
  for (uint32_t p = 0; p < team_.size; ++p) {
    if (p == team_.rank || lines_[p].line->print == call_.print) continue;
    return Error(Code::kCommMismatch,
                 "EI0005: the ranks of communicator {} do not call the same collective (call {}): rank {} calls {}, "
                 "rank {} "
                 "calls {}.",
                 team_.name, seq_, team_.rank, coll::Describe(call_.print), p, coll::Describe(lines_[p].line->print))
        .Remedy(
            "Make all ranks issue the same collectives in the same order with equal count, type, operation and root.");
  }
  return CheckSizes();
}

// The V forms: what a peer gives us must be what we take.
Status GroupOp::CheckSizes() const {
  const auto differ = [&](uint32_t p, uint64_t gives, uint64_t takes) {
    return Error(Code::kCommMismatch,
                 "EI0005: {} in communicator {} (call {}): rank {} gives {} bytes to rank {}, which expects {}.",
                 Name(), team_.name, seq_, p, gives, team_.rank, takes)
        .Remedy("Make the counts that rank {} passes for rank {} equal those that rank {} passes for rank {}.", p,
                team_.rank, team_.rank, p);
  };
  for (const Pull& pull : call_.pulls) {
    if (pull.peer == team_.rank) continue;
    const Posted& posted = lines_[pull.peer];
    if (pull.from == Pull::kPeerKnows) {
      if (posted.line->payload_bytes != 16 * uint64_t{team_.size}) return differ(pull.peer, 0, pull.bytes);
      uint64_t entry[2];
      std::memcpy(entry, posted.payload + 16 * team_.rank, sizeof entry);
      if (entry[1] != pull.bytes) return differ(pull.peer, entry[1], pull.bytes);
    } else if (call_.print.op == Op::kAllGatherV && posted.line->in.bytes != pull.bytes) {
      return differ(pull.peer, posted.line->in.bytes, pull.bytes);
    }
  }
  if (call_.reduce && call_.reduce->peer_knows) {
    const uint64_t mine = call_.reduce->count * call_.reduce->element_bytes;
    for (uint32_t p = 0; p < team_.size; ++p) {
      if (p == team_.rank) continue;
      uint64_t entry[2] = {};
      if (lines_[p].line->payload_bytes == 16 * uint64_t{team_.size})
        std::memcpy(entry, lines_[p].payload + 16 * team_.rank, 16);
      if (entry[1] != mine) return differ(p, entry[1], mine);
    }
  }
  return {};
}

Result<std::unique_ptr<std::byte[]>> GroupOp::Allocate(uint64_t bytes) const {
  std::unique_ptr<std::byte[]> memory(new (std::nothrow) std::byte[std::max<uint64_t>(bytes, 1)]);
  if (memory) return memory;
  return Error(Code::kOutOfHostMemory, "{}: no host memory for {} bytes of staging.", Describe(), bytes)
      .Remedy("Free host memory or use smaller collectives.");
}

Status GroupOp::Short(uint32_t peer, uint64_t offers, uint64_t bytes, uint64_t from) const {
  return Error(Code::kCommMismatch, "EI0005: {}: rank {} offers {} bytes, rank {} needs {} from offset {}.", Describe(),
               peer, offers, team_.rank, bytes, from)
      .Remedy("Pass the same counts on all ranks.");
}

// Where a peer's bytes can be read: in its line, in its memory, or (once they have come) in `staging`.
Result<const std::byte*> GroupOp::Source(uint32_t peer, uint64_t from, uint64_t bytes, std::byte* staging) {
  const Posted& posted = lines_[peer];
  const bool in_line = posted.line->payload_bytes != 0 && call_.table.empty();
  if (from == Pull::kPeerKnows) std::memcpy(&from, posted.payload + 16 * team_.rank, sizeof from);
  const uint64_t limit = in_line ? posted.line->payload_bytes : posted.line->in.bytes;
  if (from > limit || bytes > limit - from) return Short(peer, limit, bytes, from);
  if (in_line) return posted.payload + from;
  if (team_.to[peer]->Maps()) {
    NPU_ASSIGN(void* base, team_.to[peer]->Map(peer, posted.line->in));
    return static_cast<const std::byte*>(base) + from;
  }
  NPU_TRY(team_.to[peer]->Fetch(peer, Lane::kGroup, seq_, Buffer::kIn, from, {staging, bytes}, &pending_));
  return staging;
}

// True when what this rank takes would cover what it still gives to others.
bool GroupOp::OutHidesIn() const {
  if (call_.in == nullptr || call_.out == nullptr || DataInline()) return false;
  return call_.out < call_.in + call_.in_bytes && call_.in < call_.out + call_.out_bytes;
}

// The usual in-place form moves nothing onto the in-buffer: our own part is where it was.
bool GroupOp::Harmless() const {
  return std::all_of(call_.pulls.begin(), call_.pulls.end(), [&](const Pull& pull) {
    const std::byte* at = call_.out + pull.to;
    const bool apart = at >= call_.in + call_.in_bytes || at + pull.bytes <= call_.in;
    return apart || (pull.peer == team_.rank && pull.from != Pull::kPeerKnows && at == call_.in + pull.from);
  });
}

Status GroupOp::Copies(Parallel& parallel) {
  std::byte* to = call_.out;
  if (OutHidesIn()) {
    // A peer reads our in-buffer while we fill the out-buffer: what would cover it waits in a scratch buffer until the
    // peers are through.
    if (!Harmless()) {
      NPU_ASSIGN(held_, Allocate(call_.out_bytes));
      to = held_.get();
    }
  }
  for (const Pull& pull : call_.pulls) {
    if (pull.bytes == 0) continue;
    const std::byte* from = nullptr;
    if (pull.peer == team_.rank) {
      uint64_t begin = pull.from;
      if (begin == Pull::kPeerKnows) begin = call_.table[2 * team_.rank];
      from = call_.in + begin;
    } else {
      NPU_ASSIGN(from, Source(pull.peer, pull.from, pull.bytes, to + pull.to));
    }
    CopyBytes(parallel, from, to + pull.to, pull.bytes);
  }
  return {};
}

uint64_t GroupOp::SliceBegin(uint32_t rank) const {
  // Whole cache lines, so that no two ranks write one.
  const uint64_t line = 64 / call_.reduce->element_bytes;
  const uint64_t lines = (call_.reduce->count + line - 1) / line;
  return std::min(call_.reduce->count, lines * rank / team_.size * line);
}

// Finds what this rank has to add up and where the sums go.
Status GroupOp::GatherSources() {
  const Reducing& reduce = *call_.reduce;
  const bool in_line = DataInline();
  const bool sliced = !in_line && (reduce.keep == Keep::kAll || (reduce.keep == Keep::kRoot && team_.direct));
  const bool is_root = call_.print.root == team_.rank;
  begin_ = sliced ? SliceBegin(team_.rank) : 0;
  end_ = sliced ? SliceBegin(team_.rank + 1) : reduce.count;
  if (reduce.keep == Keep::kRoot && !sliced && !is_root) end_ = begin_;
  if (begin_ == end_) return {};

  const uint64_t bytes = (end_ - begin_) * reduce.element_bytes;
  uint64_t first = begin_ * reduce.element_bytes;  // of the part in everybody's in-buffer
  if (reduce.keep == Keep::kBlock)
    first = reduce.peer_knows ? Pull::kPeerKnows : team_.rank * reduce.count * reduce.element_bytes;

  if (InPieces()) {
    NPU_ASSIGN(staging_, Allocate(std::min(bytes, kPiecesAhead * PieceElements() * reduce.element_bytes) * team_.size));
    mapped_.assign(team_.size, nullptr);
    firsts_.assign(team_.size, first);
    for (uint32_t p = 0; p < team_.size; ++p) {
      if (p == team_.rank) {
        mapped_[p] = call_.in + (first == Pull::kPeerKnows ? call_.table[2 * p] : first);
        continue;
      }
      if (first == Pull::kPeerKnows) std::memcpy(&firsts_[p], lines_[p].payload + 16 * team_.rank, sizeof firsts_[p]);
      const uint64_t limit = lines_[p].line->in.bytes;
      if (firsts_[p] > limit || bytes > limit - firsts_[p]) return Short(p, limit, bytes, firsts_[p]);
      if (!team_.to[p]->Maps()) continue;
      NPU_ASSIGN(void* base, team_.to[p]->Map(p, lines_[p].line->in));
      mapped_[p] = static_cast<const std::byte*>(base) + firsts_[p];
    }
    sum_ = call_.out + (sliced ? first : 0);
    return {};
  }
  for (uint32_t p = 0; p < team_.size; ++p) {
    if (p == team_.rank) {
      sources_.push_back(call_.in + (first == Pull::kPeerKnows ? call_.table[2 * p] : first));
    } else {
      NPU_ASSIGN(const std::byte* source, Source(p, first, bytes, nullptr));
      sources_.push_back(source);
    }
  }
  const auto add_peer_sink = [&](uint32_t p) -> Status {
    if (lines_[p].line->out.bytes < reduce.count * reduce.element_bytes) {
      return Error(Code::kCommMismatch, "EI0005: {}: the receive buffer of rank {} has {} bytes, the result {}.",
                   Describe(), p, lines_[p].line->out.bytes, reduce.count * reduce.element_bytes);
    }
    NPU_ASSIGN(void* base, team_.to[p]->Map(p, lines_[p].line->out));
    sinks_.push_back(static_cast<std::byte*>(base) + first);
    return {};
  };
  if (reduce.keep == Keep::kBlock || !sliced) {
    sinks_.push_back(call_.out);
  } else if (reduce.keep == Keep::kRoot) {
    if (is_root) {
      sinks_.push_back(call_.out + first);
    } else {
      NPU_TRY(add_peer_sink(call_.print.root));
    }
  } else {
    sinks_.push_back(call_.out + first);
    if (team_.direct) {
      for (uint32_t p = 0; p < team_.size; ++p) {
        if (p != team_.rank) NPU_TRY(add_peer_sink(p));
      }
    }
  }
  return {};
}

Status GroupOp::AskForPiece() {
  const uint64_t size = call_.reduce->element_bytes, most = PieceElements() * size;
  const uint64_t slot = asked_ / PieceElements() % kPiecesAhead;
  const uint64_t bytes = std::min(most, (end_ - begin_ - asked_) * size);
  for (uint32_t p = 0; p < team_.size; ++p) {
    if (mapped_[p] != nullptr) continue;
    std::byte* to = staging_.get() + (p * std::min(kPiecesAhead * most, (end_ - begin_) * size) + slot * most);
    NPU_TRY(team_.to[p]->Fetch(p, Lane::kGroup, seq_, Buffer::kIn, firsts_[p] + asked_ * size, {to, bytes},
                               &piece_pending_[slot]));
  }
  asked_ += bytes / size;
  return {};
}

Status GroupOp::SumPieces(Parallel& parallel, bool* over) {
  const uint64_t size = call_.reduce->element_bytes, most = PieceElements() * size, all = end_ - begin_;
  while (summed_ < all) {
    while (asked_ < all && asked_ - summed_ < kPiecesAhead * PieceElements()) NPU_TRY(AskForPiece());
    const uint64_t slot = summed_ / PieceElements() % kPiecesAhead;
    if (piece_pending_[slot].load(std::memory_order_acquire) != 0) {
      *over = false;
      return {};
    }
    sources_.clear();
    for (uint32_t p = 0; p < team_.size; ++p) {
      const std::byte* staged = staging_.get() + (p * std::min(kPiecesAhead * most, all * size) + slot * most);
      sources_.push_back(mapped_[p] != nullptr ? mapped_[p] + summed_ * size : staged);
    }
    sinks_.assign(1, sum_ + summed_ * size);
    const uint64_t count = std::min(PieceElements(), all - summed_);
    RunReduction(parallel, 0, count);
    summed_ += count;
  }
  sources_.clear();
  *over = true;
  return {};
}

void GroupOp::RunReduction(Parallel& parallel, uint64_t begin, uint64_t end) {
  const Reducing& reduce = *call_.reduce;
  if (begin == end) return;
  const uint64_t result = reduce.count * reduce.element_bytes;
  // In place, a line that is written was just read: going round the caches would only lose it.
  const bool in_place = std::any_of(sinks_.begin(), sinks_.end(), [&](const void* sink) {
    return std::find(sources_.begin(), sources_.end(), sink) != sources_.end();
  });
  const auto stores = in_place || !team_.direct ? simd::Stores::kPlain : StoresFor(result, kStreamingResultBytes);
  const bool back = stores == simd::Stores::kPlain && result >= kTurningBytes && seq_ % 2 == 1;
  const auto grain = static_cast<int64_t>(std::max<uint64_t>(1, kGrainBytes / reduce.element_bytes));
  const auto part = [&](int64_t b, int64_t e) {
    constexpr size_t kFew = 16;
    const void* few_sources[kFew];
    void* few_sinks[kFew];
    std::vector<const void*> many_sources(sources_.size() > kFew ? sources_.size() : 0);
    std::vector<void*> many_sinks(sinks_.size() > kFew ? sinks_.size() : 0);
    const void** from = many_sources.empty() ? few_sources : many_sources.data();
    void** to = many_sinks.empty() ? few_sinks : many_sinks.data();
    const auto offset = static_cast<size_t>(b) * reduce.element_bytes;
    for (size_t i = 0; i < sources_.size(); ++i) from[i] = static_cast<const std::byte*>(sources_[i]) + offset;
    for (size_t i = 0; i < sinks_.size(); ++i) to[i] = static_cast<std::byte*>(sinks_[i]) + offset;
    simd::ReduceInto(reduce.what, {from, sources_.size()}, {to, sinks_.size()}, static_cast<size_t>(e - b), stores);
  };
  parallel.For(static_cast<int64_t>(end - begin), grain, [&](int64_t b, int64_t e) {
    if (!back) return part(b, e);
    for (; e > b; e = std::max(b, e - grain)) part(std::max(b, e - grain), e);
  });
}

// Where memory is not mapped, everybody takes the slices of the others from their out-buffers, and asks for them before
// they are summed: the owner sends them when they are. They may fall on our in-buffer, since whoever has summed a slice
// has ours of it.
Status GroupOp::AskForResults() {
  for (uint32_t p = 0; p < team_.size; ++p) {
    if (p == team_.rank || team_.to[p]->Maps()) continue;
    const uint64_t from = SliceBegin(p) * call_.reduce->element_bytes;
    const uint64_t bytes = SliceBegin(p + 1) * call_.reduce->element_bytes - from;
    if (bytes == 0) continue;
    NPU_TRY(team_.to[p]->Fetch(p, Lane::kGroup, seq_, Buffer::kOut, from, {call_.out + from, bytes}, &pending_,
                               Step(kReducedStep)));
  }
  return {};
}

Status GroupOp::CopyResults() {
  for (uint32_t p = 0; p < team_.size; ++p) {
    if (p == team_.rank || !team_.to[p]->Maps()) continue;
    const uint64_t from = SliceBegin(p) * call_.reduce->element_bytes;
    const uint64_t bytes = SliceBegin(p + 1) * call_.reduce->element_bytes - from;
    if (bytes == 0) continue;
    NPU_ASSIGN(void* base, team_.to[p]->Map(p, lines_[p].line->out));
    std::memcpy(call_.out + from, static_cast<const std::byte*>(base) + from, bytes);
  }
  return {};
}

Status GroupOp::Work(Parallel& parallel) {
  if (!call_.reduce) return Copies(parallel);
  NPU_TRY(GatherSources());
  if (InPieces()) {
    if (call_.reduce->keep == Keep::kBlock && OutHidesIn() && begin_ != end_ && sum_ != mapped_[team_.rank]) {
      NPU_ASSIGN(held_, Allocate(call_.out_bytes));
      sum_ = held_.get();
    }
    return {};
  }
  if (call_.reduce->keep == Keep::kBlock && OutHidesIn() && !sinks_.empty()) {
    // Our block may lie where a peer still reads another one, unless it is exactly our own.
    if (sinks_[0] != sources_[team_.rank]) {
      NPU_ASSIGN(held_, Allocate(call_.out_bytes));
      sinks_[0] = held_.get();
    }
  }
  return {};
}

Status GroupOp::Start() {
  if (state_ != State::kTurn || finished_->load(std::memory_order_acquire) != seq_ - 1) return {};
  if (LayersSuit() && SumsByHosts()) {
    partial_bytes_ = PartialAt(team_.layers.hosts, team_.layers.local) + PartBytes(team_.rank);
    NPU_ASSIGN(partial_, Allocate(partial_bytes_));
  }
  Post();
  next_ = 0;
  state_ = State::kLines;
  return {};
}

Status GroupOp::Advance(Parallel& parallel, bool* done) {
  *done = false;
  const bool exchange = call_.reduce && call_.reduce->keep == Keep::kAll && !team_.direct && !DataInline();
  switch (state_) {
    case State::kTurn:
      NPU_TRY(Start());
      if (state_ == State::kTurn) return {};
      [[fallthrough]];
    case State::kLines:
      if (!AllPosted()) return {};
      NPU_TRY(CheckLines());
      state_ = State::kWork;
      layered_ = Layered();
      [[fallthrough]];
    case State::kPartial:
    case State::kWork:
      if (layered_) break;
      NPU_TRY(Work(parallel));
      if (exchange) NPU_TRY(AskForResults());
      state_ = State::kFetched;
      [[fallthrough]];
    case State::kFetched:
      if (layered_) break;
      if (!InPieces() && pending_.load(std::memory_order_acquire) != 0) return {};
      if (InPieces()) {
        bool over = false;
        NPU_TRY(SumPieces(parallel, &over));
        if (!over) return {};
      } else if (call_.reduce && !sources_.empty()) {
        RunReduction(parallel, begin_, end_);
      }
      next_ = 0;
      state_ = State::kReduced;
      if (exchange) {
        for (Transport* transport : team_.transports) transport->Reach(Lane::kGroup, 0, Step(kReducedStep));
      }
      [[fallthrough]];
    case State::kReduced:
      if (layered_) break;
      if (exchange) {
        const bool mapped = std::any_of(team_.to.begin(), team_.to.end(),
                                        [](const Transport* to) { return to != nullptr && to->Maps(); });
        if (mapped && !AllReached(Step(kReducedStep))) return {};
        NPU_TRY(CopyResults());
      }
      state_ = State::kGathered;
      [[fallthrough]];
    case State::kGathered:
      if (layered_) break;
      if (pending_.load(std::memory_order_acquire) != 0) return {};
      for (Transport* transport : team_.transports) transport->Reach(Lane::kGroup, 0, Step(kEndStep));
      next_ = 0;
      state_ = State::kLast;
      [[fallthrough]];
    case State::kLast: {
      // Peers may still read our in-buffer or write our out-buffer, unless all data was in the lines.
      const bool untouched = !layered_ && (call_.in == nullptr || call_.in_bytes == 0 || DataInline()) &&
                             !(call_.reduce && !DataInline() && call_.reduce->keep != Keep::kBlock);
      if (!untouched && !AllReached(Step(kEndStep))) return {};
      if (held_) CopyBytes(parallel, held_.get(), call_.out, call_.out_bytes);
      state_ = State::kOver;
      finished_->store(seq_, std::memory_order_release);
      [[fallthrough]];
    }
    case State::kOver:
      *done = true;
      return {};
  }
  bool waits = false;
  NPU_TRY(AdvanceLayered(parallel, &waits));
  return waits ? Status() : Advance(parallel, done);
}

}  // namespace npu::coll
