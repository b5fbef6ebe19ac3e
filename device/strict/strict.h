// Strict memory: what the memory of a card would not tell (docs/decisions/strict-memory.md). On when ANYNPU_STRICT is
// set as the libraries are loaded (`anynpu run --strict`); off, every hook is one load of On().
//
//   if (strict::On()) strict::Queued({.call = "aclnnAdd", .card = 0, .stream = 3, .uses = uses}, stream.line());
//   if (strict::On()) strict::Ran("aclnnAdd", written);      // looks at the red zones of what it wrote
//
// Everything is judged when work is given, not when it runs: in a program without races each write that a read needs has
// been given before, and the culprit's stack is still there. Who is ordered behind whom is followed with vector clocks:
// the host is one line (all its threads together), each stream another. Addresses are kernels' addresses (hbm::Local).
// Any thread may call anything; no lock of ours is held while a finding is written.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace npu::strict {

extern std::atomic<bool> on;
inline bool On() { return on.load(std::memory_order_relaxed); }

// A moment of every line, as far as one of them knows.
using Stamp = std::shared_ptr<const std::vector<uint32_t>>;

// A stream's place among the clocks; 0 until its first work.
struct Line {
  std::atomic<uint32_t> index{0};
};

// The bytes of a tensor, or of a plain range (rank 0, `item` bytes). Strides in items.
struct View {
  const void* local = nullptr;
  uint64_t item = 0;
  std::span<const int64_t> shape, strides;
};

enum class Does : uint8_t {
  kReads,
  kWrites,   // all of it
  kUpdates,  // reads and writes
  kPatches,  // writes some of it and reads nothing
  kMoves,    // reads, and may carry on what was never written
};

struct Use {
  View view;
  Does does = Does::kReads;
  std::string_view param;
};

struct Step {
  std::string_view call;  // static text
  int card = -1;
  int stream = -1;  // its number; -1: the calling thread itself
  std::span<const Use> uses;
  // A copy: what uses[0] never got uses[1] does not get either, and that is no fault yet. `whole`: byte by byte.
  enum class Copy : uint8_t { kNo, kLoose, kWhole } copy = Copy::kNo;
};

// Work given to a stream; work done here and now by the calling thread. False: it uses memory that was freed, and would
// fault.
bool Queued(const Step& step, Line& line);
void Now(const Step& step);
// While it lives its step counts as running: a fault in a kernel names it. Static texts only.
class Running {
 public:
  Running(std::string_view call, int card, int stream);
  ~Running();
  Running(const Running&) = delete;

 private:
  int slot_;
};
// After the step has run: red zones around the blocks of what it wrote.
void Ran(std::string_view call, int card, int stream, std::span<const Use> uses);

// Order.
Stamp Record(Line& line);                       // what an event on this stream will stand for
void Wait(Line& line, const Stamp& stamp);      // the stream waits for it; null: for nothing
void Synchronized(Line& line);                  // the host has seen all of the stream
void Reached(const Stamp& stamp);               // the host has seen the event
void Unknown(Line& line);                       // waits for something that cannot be followed: no races of it are told
void Ended(Line& line);
// Inside a function of the client that a stream calls: such work is not judged for order.
class Callback {
 public:
  Callback();
  ~Callback();
};

// Memory. `client` is what programs see, `before` and `after` are the bytes of red zone around it.
struct Zones {
  uint64_t before = 0, after = 0;
};
void Allocated(int card, void* client, std::byte* local, uint64_t bytes, Zones zones, std::string_view call);
// False: work that is not ordered before may still use it, so it must stay readable for a while.
bool Freed(std::byte* local, std::string_view call);
// Host memory that copies use: only order is followed.
void Forgotten(const void* begin, uint64_t bytes);
// Another process may write it from now on.
void Shared(const std::byte* local);
// Operators of `card` may use memory of `other`.
void PeersMay(int card, int other, bool may);
// A call was refused because of this address: what is known of it, as a finding.
void Refused(const void* client, std::string_view what, std::string_view remedy);

inline constexpr int kPoison = 0xFF;   // NaN in every float type, -1 in the integers
inline constexpr int kRedZone = 0xFD;

uint64_t Findings();

}  // namespace npu::strict
