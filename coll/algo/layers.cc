// Large calls on several hosts: within each host through memory first, then across, so that a byte crosses the wire as
// often as there are hosts, not ranks.
//
// Reductions: rank (host, local) adds up, over its host, the parts that the ranks of its column will sum (step 1),
// fetches the other hosts' sums of its own part and adds them in host order (step 2), then fetches its column's results
// and stores them into all outputs of its host. Halves skip the sums by hosts, because those would be rounded once
// more: each rank adds its part of all inputs in rank order, as on one host, and only the results take the layered way.
#include <map>

#include "coll/algo/group_op.h"
#include "coll/comm/types.h"

namespace npu::coll {

Layers LayersOf(const std::vector<uint32_t>& host_of, uint32_t rank) {
  std::map<uint32_t, uint32_t> number;  // of a host
  std::vector<std::vector<uint32_t>> ranks;
  for (uint32_t r = 0; r < host_of.size(); ++r) {
    const auto [at, added] = number.try_emplace(host_of[r], static_cast<uint32_t>(ranks.size()));
    if (added) ranks.emplace_back();
    ranks[at->second].push_back(r);
  }
  Layers layers;
  for (const auto& host : ranks) {
    if (host.size() != ranks[0].size()) return {};
  }
  layers.hosts = static_cast<uint32_t>(ranks.size());
  layers.per_host = static_cast<uint32_t>(ranks[0].size());
  for (uint32_t h = 0; h < layers.hosts; ++h) {
    for (uint32_t l = 0; l < layers.per_host; ++l) {
      layers.rank_at.push_back(ranks[h][l]);
      if (ranks[h][l] == rank) layers.host = h, layers.local = l;
    }
  }
  return layers;
}

// The same answer on all ranks.
bool GroupOp::LayersSuit() const {
  if (!team_.layers.used() || !call_.table.empty()) return false;
  uint64_t bytes = call_.print.count * InfoOf(call_.print.type).bytes;
  switch (call_.print.op) {
    case Op::kAllReduce:
    case Op::kAllGather:
    case Op::kBroadcast:
      break;
    case Op::kReduceScatter:
      bytes *= team_.size;
      [[fallthrough]];
    case Op::kReduce:
      if (!SumsByHosts()) return false;
      break;
    default:
      return false;
  }
  return bytes > kInlineBytes;
}

bool GroupOp::SumsByHosts() const {
  return call_.reduce && call_.reduce->what.type != DType::f16 && call_.reduce->what.type != DType::bf16;
}

bool GroupOp::Layered() const {
  if (!LayersSuit()) return false;
  if (OutHidesIn() && !call_.reduce && !Harmless()) return false;
  for (uint32_t p = 0; p < team_.size; ++p) {
    if (p != team_.rank && (lines_[p].line->flags & kOverlaps) != 0) return false;
  }
  return true;
}

uint64_t GroupOp::PartBegin(uint32_t rank) const {
  const Reducing& reduce = *call_.reduce;
  return (reduce.keep == Keep::kBlock ? rank * reduce.count : SliceBegin(rank)) * reduce.element_bytes;
}

uint64_t GroupOp::PartBytes(uint32_t rank) const {
  const Reducing& reduce = *call_.reduce;
  if (reduce.keep == Keep::kBlock) return reduce.count * reduce.element_bytes;
  return (SliceBegin(rank + 1) - SliceBegin(rank)) * reduce.element_bytes;
}

// Where, in the buffer of sums of a rank with that place on its host, those for host `host` begin; for the number of
// hosts: their end.
uint64_t GroupOp::PartialAt(uint32_t host, uint32_t local) const {
  uint64_t at = 0;
  for (uint32_t h = 0; h < host; ++h) at += PartBytes(team_.layers.At(h, local));
  return at;
}

Result<std::byte*> GroupOp::OutOf(uint32_t rank, uint64_t bytes) {
  if (rank == team_.rank) return call_.out;
  if (lines_[rank].line->out.bytes < bytes) {
    return Error(Code::kCommMismatch, "EI0005: {}: the receive buffer of rank {} has {} bytes, {} are needed.",
                 Describe(), rank, lines_[rank].line->out.bytes, bytes);
  }
  NPU_ASSIGN(void* base, team_.to[rank]->Map(rank, lines_[rank].line->out));
  return static_cast<std::byte*>(base);
}

Status GroupOp::SumOfHost(Parallel& parallel) {
  const Layers& layers = team_.layers;
  for (uint32_t h = 0; h < layers.hosts; ++h) {
    const uint32_t owner = layers.At(h, layers.local);
    const uint64_t begin = PartBegin(owner), bytes = PartBytes(owner);
    sources_.clear();
    sinks_.assign(1, partial_.get() + PartialAt(h, layers.local));
    for (uint32_t l = 0; l < layers.per_host; ++l) {
      const uint32_t p = layers.At(layers.host, l);
      if (p == team_.rank) {
        sources_.push_back(call_.in + begin);
      } else {
        NPU_ASSIGN(const std::byte* source, Source(p, begin, bytes, nullptr));
        sources_.push_back(source);
      }
    }
    RunReduction(parallel, 0, bytes / call_.reduce->element_bytes);
  }
  return {};
}

// What this rank's part is summed from: sums of hosts, or all inputs.
Status GroupOp::FetchSums() {
  const Layers& layers = team_.layers;
  const uint64_t begin = PartBegin(team_.rank), bytes = PartBytes(team_.rank);
  NPU_ASSIGN(staging_, Allocate(bytes * team_.size));
  sources_.clear();
  sinks_.clear();
  if (bytes == 0) return {};
  if (SumsByHosts()) {
    const uint64_t at = PartialAt(layers.host, layers.local);
    for (uint32_t h = 0; h < layers.hosts; ++h) {
      std::byte* to = h == layers.host ? partial_.get() + at : staging_.get() + h * bytes;
      sources_.push_back(to);
      if (h == layers.host) continue;
      const uint32_t p = layers.At(h, layers.local);
      NPU_TRY(team_.to[p]->Fetch(p, Lane::kGroup, seq_, Buffer::kPartial, at, {to, bytes}, &pending_));
    }
  } else {
    for (uint32_t p = 0; p < team_.size; ++p) {
      if (p == team_.rank) {
        sources_.push_back(call_.in + begin);
      } else {
        NPU_ASSIGN(const std::byte* source, Source(p, begin, bytes, staging_.get() + p * bytes));
        sources_.push_back(source);
      }
    }
  }
  switch (call_.reduce->keep) {
    case Keep::kBlock:
      sinks_.push_back(call_.out);
      break;
    case Keep::kRoot: {
      const uint32_t root = call_.print.root;
      if (root == team_.rank || team_.to[root]->Maps()) {
        NPU_ASSIGN(std::byte * out, OutOf(root, call_.reduce->count * call_.reduce->element_bytes));
        sinks_.push_back(out + begin);
      } else {
        sinks_.push_back(partial_.get() + PartialAt(layers.hosts, layers.local));
      }
      break;
    }
    case Keep::kAll:
      for (uint32_t l = 0; l < layers.per_host; ++l) {
        NPU_ASSIGN(std::byte * out,
                   OutOf(layers.At(layers.host, l), call_.reduce->count * call_.reduce->element_bytes));
        sinks_.push_back(out + begin);
      }
      break;
  }
  return {};
}

// The parts of the result that other hosts have; spread_ says which go to the other ranks of this one.
Status GroupOp::FetchParts(Parallel& parallel) {
  const Layers& layers = team_.layers;
  const auto fetch = [&](uint32_t peer, Buffer buffer, uint64_t from, uint64_t to, uint64_t bytes,
                         bool spread) -> Status {
    if (bytes == 0) return {};
    if (spread) spread_.push_back({peer, from, to, bytes});
    return team_.to[peer]->Fetch(peer, Lane::kGroup, seq_, buffer, from, {call_.out + to, bytes}, &pending_);
  };
  if (call_.reduce && call_.reduce->keep == Keep::kBlock) return {};
  if (call_.reduce && call_.reduce->keep == Keep::kRoot) {
    if (call_.print.root != team_.rank) return {};
    for (uint32_t h = 0; h < layers.hosts; ++h) {
      for (uint32_t l = 0; l < layers.per_host && h != layers.host; ++l) {
        const uint32_t p = layers.At(h, l);
        NPU_TRY(fetch(p, Buffer::kPartial, PartialAt(layers.hosts, l), PartBegin(p), PartBytes(p), false));
      }
    }
    return {};
  }
  if (call_.reduce) {
    for (uint32_t h = 0; h < layers.hosts; ++h) {
      const uint32_t p = layers.At(h, layers.local);
      if (h != layers.host) NPU_TRY(fetch(p, Buffer::kOut, PartBegin(p), PartBegin(p), PartBytes(p), true));
    }
    return {};
  }
  if (call_.print.op == Op::kBroadcast) {
    const uint32_t root = call_.print.root;
    if (root == team_.rank) return {};
    const uint64_t bytes = call_.out_bytes;
    if (team_.to[root]->Maps()) {
      NPU_ASSIGN(const std::byte* from, Source(root, 0, bytes, nullptr));
      CopyBytes(parallel, from, call_.out, bytes);
      return {};
    }
    const auto begin = [&](uint32_t l) { return l == layers.per_host ? bytes : bytes / layers.per_host * l / 64 * 64; };
    const uint64_t at = begin(layers.local);
    return fetch(root, Buffer::kIn, at, at, begin(layers.local + 1) - at, true);
  }
  for (const Pull& pull : call_.pulls) {  // an all-gather
    const bool own = pull.peer == team_.rank;
    if (own || team_.to[pull.peer]->Maps()) {
      const std::byte* from = call_.in;
      if (!own) {
        NPU_ASSIGN(from, Source(pull.peer, 0, pull.bytes, nullptr));
      }
      CopyBytes(parallel, from, call_.out + pull.to, pull.bytes);
      continue;
    }
    bool column = false;
    for (uint32_t h = 0; h < layers.hosts; ++h) column = column || layers.At(h, layers.local) == pull.peer;
    if (column) NPU_TRY(fetch(pull.peer, Buffer::kIn, 0, pull.to, pull.bytes, true));
  }
  return {};
}

Status GroupOp::SpreadParts(Parallel& parallel) {
  const Layers& layers = team_.layers;
  for (const Pull& part : spread_) {
    for (uint32_t l = 0; l < layers.per_host; ++l) {
      const uint32_t p = layers.At(layers.host, l);
      if (p == team_.rank) continue;
      NPU_ASSIGN(std::byte * out, OutOf(p, part.to + part.bytes));
      CopyBytes(parallel, call_.out + part.to, out + part.to, part.bytes);
    }
  }
  return {};
}

Status GroupOp::AdvanceLayered(Parallel& parallel, bool* waits) {
  *waits = true;
  const auto reach = [&](uint32_t step) {
    for (Transport* transport : team_.transports) transport->Reach(Lane::kGroup, 0, Step(step));
    next_ = 0;
  };
  switch (state_) {
    case State::kWork:
      if (SumsByHosts()) {
        NPU_TRY(SumOfHost(parallel));
        reach(kPartialStep);
      }
      state_ = State::kPartial;
      [[fallthrough]];
    case State::kPartial:
      if (SumsByHosts() && !AllReached(Step(kPartialStep))) return {};
      if (call_.reduce) NPU_TRY(FetchSums());
      state_ = State::kFetched;
      [[fallthrough]];
    case State::kFetched:
      if (pending_.load(std::memory_order_acquire) != 0) return {};
      if (call_.reduce) {
        RunReduction(parallel, 0, PartBytes(team_.rank) / call_.reduce->element_bytes);
        reach(kReducedStep);
      }
      state_ = State::kReduced;
      [[fallthrough]];
    case State::kReduced:
      // Also where our results do not depend on it: peers may still read what the next step writes over.
      if (call_.reduce && call_.reduce->keep != Keep::kBlock && !AllReached(Step(kReducedStep))) return {};
      NPU_TRY(FetchParts(parallel));
      state_ = State::kGathered;
      [[fallthrough]];
    case State::kGathered:
      if (pending_.load(std::memory_order_acquire) != 0) return {};
      NPU_TRY(SpreadParts(parallel));
      reach(kEndStep);
      state_ = State::kLast;
      [[fallthrough]];
    default:
      *waits = false;
      return {};
  }
}

}  // namespace npu::coll
