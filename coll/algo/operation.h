// A collective call while it runs: a state machine that is pushed on by whoever serves its stream and never waits.
//
//   bool done = false;
//   NPU_TRY(operation.Advance(parallel, &done));
//   if (!done) park;                   // operation.Waiting() says for whom
//
// The ranks of a call are those of its Team. Advance comes from one thread at a time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status/status.h"
#include "base/task/parallel.h"
#include "coll/transport/transport.h"

namespace npu::coll {

// The ranks by hosts, when there are several with the same number of ranks each, at least two. Ranks of one host map
// each other's memory; those with the same place on their hosts form a column.
struct Layers {
  uint32_t hosts = 1, per_host = 1;
  uint32_t host = 0, local = 0;   // of this rank
  std::vector<uint32_t> rank_at;  // [host * per_host + local]
  bool used() const { return hosts > 1 && per_host > 1; }
  uint32_t At(uint32_t h, uint32_t l) const { return rank_at[h * per_host + l]; }
};
// `host_of` by rank; hosts are numbered as their first ranks come. Empty when the hosts differ in size.
Layers LayersOf(const std::vector<uint32_t>& host_of, uint32_t rank);

// What an operation knows of its communicator.
struct Team {
  uint32_t rank = 0;
  uint32_t size = 1;
  std::vector<Transport*> to;          // by rank; null for itself
  std::vector<Transport*> transports;  // each once
  bool direct = true;                  // all memory is mapped everywhere
  bool wires = false;                  // no two ranks share memory
  Layers layers;
  std::string name;  // of the communicator
};

class Operation {
 public:
  virtual ~Operation() = default;
  // Shows the peers what this rank gives, if its turn has come, and moves no data.
  virtual Status Start() = 0;
  // Whether Advance has something to do: false while it waits for its turn or for what Start of the peers shows.
  virtual bool Ready() = 0;
  virtual Status Advance(Parallel& parallel, bool* done) = 0;
  // The ranks that the next step needs something from. Empty when it waits for an earlier call of this rank.
  virtual std::vector<uint32_t> Waiting() const = 0;
  // Whether all peers have shown what they give.
  virtual bool Received() const = 0;
  // Bytes are under way: who is asked for them is not late merely because time passes.
  virtual bool Moving() const = 0;
  // Of all buffers this rank gave or got, for the view.
  virtual uint64_t Bytes() const = 0;
  virtual const char* Name() const = 0;
  // What it moves, for the card's figures: bytes that this rank gives and takes.
  virtual uint64_t SentBytes() const = 0;
  virtual uint64_t ReceivedBytes() const = 0;
  // For errors, e.g. "HcclAllReduce #7 (1024 x fp32, sum)".
  virtual std::string Describe() const = 0;
};

std::string Describe(const Fingerprint& print);

}  // namespace npu::coll
