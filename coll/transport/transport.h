// How the ranks of a communicator reach each other. Two kinds stand behind this seam: memory that all map (shm) and
// sockets (tcp). One communicator may use both, a peer is served by exactly one.
//
//   transport.Post(Lane::kGroup, 0, seq, line, payload);
//   while (transport.Peek(peer, Lane::kGroup, seq) == nullptr) …;       // never blocks, the caller parks
//   void* base = transport.Map(peer, line->in);                       // shm: the peer's memory itself
//   transport.Fetch(peer, …, &pending);                               // tcp: a copy of it, when pending is 0
//   transport.Reach(Lane::kGroup, 0, step);                           // progress that peers wait for
//
// No call waits for a peer. Calls of one lane come from one thread at a time, lanes are independent. Whoever waits asks
// Check now and then: it names a peer that is gone.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <span>

#include "base/status/status.h"
#include "coll/transport/line.h"

namespace npu::coll {

// Local memory that peers may fetch from while a line stands.
struct Offer {
  const void* in = nullptr;
  const void* out = nullptr;
  const void* partial = nullptr;  // sums of this host on their way to the others
  uint64_t partial_bytes = 0;
};

// A line as a peer sees it. Valid until this rank reaches the end of the call.
struct Posted {
  const Line* line = nullptr;
  const std::byte* payload = nullptr;
};

class Transport {
 public:
  virtual ~Transport() = default;

  // Shows line number `seq` of a lane; `peer` matters for pair lanes only. False while the line before it is still in
  // use (pair lanes; a group lane is free when the call before last has ended, which its caller knows).
  virtual bool Post(Lane lane, uint32_t peer, uint64_t seq, const Line& line, std::span<const std::byte> payload,
                    const Offer& offer) = 0;
  // The peer's line of that number; line is null while it has not come.
  virtual Posted Peek(uint32_t peer, Lane lane, uint64_t seq) = 0;

  // Progress of this rank: a number that only grows. For a pair lane it answers the lines that `peer` posted to us.
  virtual void Reach(Lane lane, uint32_t peer, uint64_t step) = 0;
  virtual uint64_t ReachedBy(uint32_t peer, Lane lane) = 0;

  // Whether Map works; otherwise Fetch does.
  virtual bool Maps() const = 0;
  virtual Result<void*> Map(uint32_t peer, const Place& place) = 0;
  // Copies a part of a buffer that the peer offers with line `seq`. *pending is raised now and lowered when the bytes
  // are here; the pair is release and acquire. After a failure it stays up and Check tells. With a step the peer sends
  // them once it has reached that one.
  virtual Status Fetch(uint32_t peer, Lane lane, uint64_t seq, Buffer buffer, uint64_t offset, std::span<std::byte> to,
                       std::atomic<uint32_t>* pending, uint64_t after = 0) = 0;

  // Whether the peer can still answer: fails when its process is gone or it has left the communicator. *gone: its
  // process or connection has ended without a word, so it is not the one that followed another's failure.
  virtual Status Check(uint32_t peer, bool* gone) = 0;
  // The newest group line that the peer showed, and its number; false when it showed none. For texts.
  virtual bool Newest(uint32_t peer, Line* line, uint64_t* seq) = 0;
  // How long the peer's process has given no sign of life; zero where that cannot be told.
  virtual std::chrono::milliseconds Silent(uint32_t peer) = 0;
  // Says that this rank is about to sleep (true) or awake again; peers ring its process when something changed.
  virtual void Arm(bool armed) = 0;
  // Tells the peers that this rank takes no further part. No byte is written for a Fetch after it.
  virtual void Leave(bool failed) = 0;
};

}  // namespace npu::coll
