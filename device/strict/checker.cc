#include "device/strict/checker.h"

#include <fmt/format.h>
#include <pthread.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "device/hbm/region.h"
#include "device/strict/pattern.h"

namespace npu::strict {

std::atomic<bool> on{false};

namespace {

constexpr uint64_t kMostRuns = 65536;      // of a view that is followed exactly for what was written
constexpr uint64_t kMostOrderRuns = 4096;  // and for order
thread_local int in_callback = 0;
constexpr std::string_view kUnwritten = "use before write";

[[maybe_unused]] const bool kStarted = [] {
  const char* wish = std::getenv("ANYNPU_STRICT");
  if (wish == nullptr || *wish == 0 || std::strcmp(wish, "0") == 0) return false;
  SetWarnOnly(std::strcmp(wish, "warn") == 0);
  hbm::SetInaccessibleClients(true);
  Checker::Get();
  CatchFaults();
  TellAtExit();
  // A lock may be held at the fork, and a forked child has none of the memory: it is not followed.
  pthread_atfork(nullptr, nullptr, [] { on.store(false, std::memory_order_relaxed); });
  on.store(true, std::memory_order_relaxed);
  return true;
}();

bool Reads(Does does) { return does == Does::kReads || does == Does::kUpdates; }
bool Writes(Does does) { return does != Does::kReads && does != Does::kMoves; }

// torch computes what a card has no operator for on the processor and then copies all arguments there, also those that are
// only written: what they hold is not used.
bool OfFallback(const Finding& finding) {
  return finding.kind == kUnwritten && finding.call.starts_with("aclrtMemcpy") && Stack::HereThrough("cpu_fallback");
}

void TellAll(const std::vector<Finding>& findings) {
  for (const Finding& finding : findings) {
    if (!OfFallback(finding)) Tell(finding);
  }
}

// Judges the uses of one step under the checker's lock.
class Judge {
 public:
  Judge(Checker& checker, const Step& step, uint32_t line, uint32_t time) : c_(checker), step_(step), line_(line), time_(time) {}

  void All() {
    if (step_.copy != Step::Copy::kNo && step_.uses.size() >= 2) {
      CopyOf(step_.uses[0], step_.uses[1]);
    } else {
      for (const Use& use : step_.uses) Written(use);
    }
    for (const Use& use : step_.uses) {
      Where(use);
      if (in_callback == 0) Ordered(use);
    }
  }
  std::vector<Finding> found;
  bool lives = true;

 private:
  std::string Who(const Use& use) const { return fmt::format("{} ({})", step_.call, use.param); }

  void Where(const Use& use) {
    const Pattern bytes(use.view);
    if (bytes.hull() == 0) return;
    ++c_.uses;
    Block* block = c_.blocks.Find(bytes.begin());
    if (block == nullptr) {
      const Gone* gone = c_.blocks.FindGone(bytes.begin());
      if (gone == nullptr) return;
      lives = false;
      found.push_back({"use after free", step_.call,
                       fmt::format("{} {} {} {} bytes at {:#x}, which were freed.", Who(use), Place(step_.card, step_.stream),
                                   Writes(use.does) ? "writes" : "reads", bytes.hull(), gone->block.ClientOf(bytes.begin())),
                       "Free memory after the last use of it, or keep the allocation as long as the tensor.",
                       gone->block.Tell() + gone->freed.Tell("freed")});
      return;
    }
    if (bytes.begin() + bytes.hull() > block->end()) {
      found.push_back({"out of bounds", step_.call,
                       fmt::format("{} {} uses {} bytes at {:#x}, {} more than the allocation has from there.", Who(use),
                                   Place(step_.card, step_.stream), bytes.hull(), block->ClientOf(bytes.begin()),
                                   bytes.begin() + bytes.hull() - block->end()),
                       fmt::format("Make {} smaller, or allocate {} bytes.", use.param, bytes.begin() - block->begin() + bytes.hull()),
                       block->Tell()});
    }
    const bool peer = step_.card >= 0 && step_.card != block->card && step_.copy == Step::Copy::kNo &&
                      !c_.peers[static_cast<size_t>(step_.card % 64 * 64 + block->card % 64)];
    if (peer) {
      found.push_back({"wrong device", step_.call,
                       fmt::format("{} {} uses memory of card {} at {:#x}.", Who(use), Place(step_.card, step_.stream), block->card,
                                   block->ClientOf(bytes.begin())),
                       fmt::format("Copy the data to card {} first, or enable peer access between the two.", step_.card), block->Tell()});
    }
  }

  // What of the use was never written; only the first byte is told.
  std::optional<uintptr_t> Missing(const Block& block, const Pattern& bytes) {
    const uint64_t from = bytes.begin() - block.begin();
    auto missing = block.written.FirstMissing(from, from + bytes.hull());
    if (missing && bytes.runs() > 1) {
      missing.reset();
      if (bytes.runs() <= kMostRuns) {
        bytes.Each([&](uintptr_t at, uint64_t run) {
          missing = block.written.FirstMissing(at - block.begin(), at - block.begin() + run);
          return !missing;
        });
      }
    }
    return missing ? std::optional<uintptr_t>(block.begin() + *missing) : std::nullopt;
  }

  void Set(Block& block, const Pattern& bytes, bool whole, bool written = true) {
    const uint64_t from = bytes.begin() - block.begin();
    if (written && block.written.All()) return;
    if (whole || bytes.runs() == 1 || bytes.runs() > kMostRuns) {
      block.written.Set(from, from + bytes.hull(), written);
      return;
    }
    bytes.Each([&](uintptr_t at, uint64_t run) {
      block.written.Set(at - block.begin(), at - block.begin() + run, written);
      return true;
    });
  }

  void Written(const Use& use) {
    const Pattern bytes(use.view);
    Block* block = bytes.hull() == 0 ? nullptr : c_.blocks.Find(bytes.begin());
    if (block == nullptr) return;
    if (Reads(use.does)) {
      if (const auto missing = Missing(*block, bytes)) {
        found.push_back({kUnwritten, step_.call,
                         fmt::format("{} {} reads {} bytes at {:#x}; byte {} of them ({:#x}) was never written.", Who(use),
                                     Place(step_.card, step_.stream), bytes.bytes(), block->ClientOf(bytes.begin()),
                                     *missing - bytes.begin(), block->ClientOf(*missing)),
                         fmt::format("Fill {} first (zeros, a copy, an operator's output), or do not read it.", use.param), block->Tell()});
        Set(*block, bytes, /*whole=*/true);  // told once
      }
    }
    if (Writes(use.does)) Set(*block, bytes, use.does == Does::kPatches);
  }

  // What was never written stays so in the copy: reading it there is the fault.
  void CopyOf(const Use& from, const Use& to) {
    const Pattern source(from.view), target(to.view);
    Block* a = source.hull() == 0 ? nullptr : c_.blocks.Find(source.begin());
    Block* b = target.hull() == 0 ? nullptr : c_.blocks.Find(target.begin());
    if (b == nullptr) return Written(from);
    if (a == nullptr || !Missing(*a, source)) return Set(*b, target, /*whole=*/false);
    const uint64_t at = source.begin() - a->begin(), onto = target.begin() - b->begin();
    const bool whole = step_.copy == Step::Copy::kWhole && source.runs() == 1 && target.runs() == 1 && source.hull() == target.hull();
    if (whole && a->end() - source.begin() >= source.hull() && b->end() - target.begin() >= source.hull()) {
      b->written.CopyFrom(a->written, at, onto, source.hull());
    } else {
      Set(*b, target, /*whole=*/false, !a->written.None(at, at + source.hull()));
    }
  }

  void Ordered(const Use& use) {
    const Pattern bytes(use.view);
    if (bytes.runs() > kMostOrderRuns) {
      ++c_.fragmented;
      return;
    }
    const Mark mark{line_, time_, step_.stream, step_.card, Writes(use.does), step_.call, use.param};
    std::optional<Mark> race;
    uintptr_t place = 0;
    bytes.Each([&](uintptr_t at, uint64_t run) {
      auto other = c_.order.Touch(at, at + run, mark);
      if (other && !race) race = other, place = at;
      return true;
    });
    if (!race) return;
    c_.order.Join(line_, *c_.order.Now(race->line));  // told once for the two
    const Block* block = c_.blocks.Find(place);
    const std::string ours = Place(step_.card, step_.stream), theirs = Place(race->card, race->stream);
    std::string remedy;
    if (race->stream < 0) {
      remedy = "Let the host's copy end before, or make it on the stream.";
    } else if (step_.stream < 0) {
      remedy = fmt::format("Synchronise stream {} first, or make the copy on that stream.", race->stream);
    } else {
      remedy = fmt::format(
          "Record an event on stream {} behind {} and let stream {} wait for it (aclrtRecordEvent, aclrtStreamWaitEvent; in torch "
          "wait_stream or record_stream), or synchronise.",
          race->stream, race->call, step_.stream);
    }
    found.push_back({"wrong stream order", step_.call,
                     fmt::format("{} {} {} {} bytes at {:#x} that {} ({}) {} {}; nothing orders the two.", Who(use), ours,
                                 Writes(use.does) ? "writes" : "reads", bytes.bytes(), block != nullptr ? block->ClientOf(place) : place,
                                 race->call, race->param, race->writes ? "writes" : "reads", theirs),
                     remedy, block != nullptr ? block->Tell() : ""});
  }

  Checker& c_;
  const Step& step_;
  const uint32_t line_, time_;
};

uint32_t IndexOf(Checker& c, Line& line) {
  uint32_t index = line.index.load(std::memory_order_relaxed);
  if (index == 0) line.index.store(index = c.order.NewLine(), std::memory_order_relaxed);
  return index;
}

bool Holds(const std::byte* from, uint64_t bytes, const std::byte** bad) {
  for (uint64_t i = 0; i < bytes; ++i) {
    if (from[i] != static_cast<std::byte>(kRedZone)) {
      *bad = from + i;
      return false;
    }
  }
  return true;
}

// The first byte of the block's red zones that is not as we left it; mended, so that it is told once.
std::optional<uintptr_t> Damage(const Block& block) {
  const std::byte* bad = nullptr;
  std::byte* const before = block.local - block.zones.before;
  std::byte* const after = block.local + block.bytes;
  if (Holds(after, block.zones.after, &bad) && Holds(before, block.zones.before, &bad)) return std::nullopt;
  std::memset(before, kRedZone, block.zones.before);
  std::memset(after, kRedZone, block.zones.after);
  return reinterpret_cast<uintptr_t>(bad);
}

std::string Beside(const Block& block, uintptr_t at) {
  return at >= block.end() ? fmt::format("{} bytes behind its end", at - block.end())
                           : fmt::format("{} bytes before its start", block.begin() - at);
}

constexpr std::string_view kBounds = "Look at the sizes and offsets that the kernel computes with.";

}  // namespace

Checker& Checker::Get() {
  static auto* checker = new Checker;
  return *checker;
}

std::string Place(int card, int stream) {
  return stream < 0 ? "on the calling thread" : fmt::format("on stream {} of card {}", stream, card);
}

bool Queued(const Step& step, Line& line) {
  Checker& c = Checker::Get();
  std::vector<Finding> found;
  bool lives = true;
  {
    const std::lock_guard lock(c.mutex);
    const uint32_t index = IndexOf(c, line);
    if (in_callback != 0) c.order.JoinAll(index);
    Judge judge(c, step, index, c.order.Step(index));
    judge.All();
    found = std::move(judge.found);
    lives = judge.lives;
  }
  TellAll(found);
  return lives;
}

void Now(const Step& step) {
  Checker& c = Checker::Get();
  std::vector<Finding> found;
  {
    const std::lock_guard lock(c.mutex);
    Judge judge(c, step, 0, c.order.Step(0));
    judge.All();
    found = std::move(judge.found);
  }
  TellAll(found);
}

void Ran(std::string_view call, int card, int stream, std::span<const Use> uses) {
  Checker& c = Checker::Get();
  std::vector<Finding> found;
  {
    const std::lock_guard lock(c.mutex);
    for (const Use& use : uses) {
      if (!Writes(use.does)) continue;
      const Block* block = c.blocks.Find(reinterpret_cast<uintptr_t>(use.view.local));
      if (block == nullptr) continue;
      if (const auto bad = Damage(*block)) {
        found.push_back({"out of bounds", call,
                         fmt::format("{} {} wrote beside {}: {}, at {:#x}.", call, Place(card, stream), use.param, Beside(*block, *bad),
                                     block->ClientOf(*bad)),
                         std::string(kBounds), block->Tell()});
      }
    }
  }
  for (const Finding& finding : found) TellBare(finding);
}

Stamp Record(Line& line) {
  Checker& c = Checker::Get();
  const std::lock_guard lock(c.mutex);
  const uint32_t index = IndexOf(c, line);
  c.order.Step(index);
  return c.order.Now(index);
}

void Wait(Line& line, const Stamp& stamp) {
  if (!stamp) return;
  Checker& c = Checker::Get();
  const std::lock_guard lock(c.mutex);
  c.order.Join(IndexOf(c, line), *stamp);
}

void Synchronized(Line& line) {
  Checker& c = Checker::Get();
  const std::lock_guard lock(c.mutex);
  c.order.See(IndexOf(c, line));
}

void Reached(const Stamp& stamp) {
  if (!stamp) return;
  Checker& c = Checker::Get();
  const std::lock_guard lock(c.mutex);
  c.order.Join(0, *stamp);
}

void Unknown(Line& line) {
  Checker& c = Checker::Get();
  const std::lock_guard lock(c.mutex);
  const uint32_t index = IndexOf(c, line);
  c.order.JoinAll(index);
  c.order.Blind(index);
}

void Ended(Line& line) {
  const uint32_t index = line.index.exchange(0, std::memory_order_relaxed);
  if (index == 0) return;
  Checker& c = Checker::Get();
  const std::lock_guard lock(c.mutex);
  c.order.GiveLine(index);
}

Callback::Callback() { ++in_callback; }
Callback::~Callback() { --in_callback; }

void PeersMay(int card, int other, bool may) {
  Checker& c = Checker::Get();
  const std::lock_guard lock(c.mutex);
  c.peers[static_cast<size_t>(card % 64 * 64 + other % 64)] = may;
}

void Allocated(int card, void* client, std::byte* local, uint64_t bytes, Zones zones, std::string_view call) {
  std::memset(local - zones.before, kRedZone, zones.before);
  std::memset(local, kPoison, bytes);
  std::memset(local + bytes, kRedZone, zones.after);
  Block block{card, reinterpret_cast<uintptr_t>(client), local, bytes, zones, Origin::Here(call), Written(bytes)};
  Checker& c = Checker::Get();
  const std::lock_guard lock(c.mutex);
  ++c.allocations;
  c.blocks.Add(std::move(block));
}

bool Freed(std::byte* local, std::string_view call) {
  Checker& c = Checker::Get();
  std::vector<Finding> found;
  bool done = true;
  Origin freed = Origin::Here(call);
  {
    const std::lock_guard lock(c.mutex);
    Block* block = c.blocks.Find(reinterpret_cast<uintptr_t>(local));
    if (block == nullptr) return true;
    if (const auto bad = Damage(*block)) {
      found.push_back({"out of bounds", call,
                       fmt::format("Something wrote beside the {} bytes at {:#x}: {}. It is seen now, as they are freed.", block->bytes,
                                   block->client, Beside(*block, *bad)),
                       std::string(kBounds), block->Tell()});
    }
    const auto user = c.order.Pending(block->begin(), block->end());
    if (user && in_callback == 0) {
      done = false;
      found.push_back({"freed in use", call,
                       fmt::format("{} frees {} bytes at {:#x} that {} ({}) {} {}; the host has not waited for that.", call, block->bytes,
                                   block->client, user->call, user->param, user->writes ? "writes" : "reads", Place(user->card, user->stream)),
                       fmt::format("Synchronise stream {} before the memory is freed.", user->stream), block->Tell()});
    }
    if (done) std::memset(block->local, kPoison, block->bytes);
    c.order.Forget(block->begin(), block->end());
    c.blocks.Remove(block->begin(), std::move(freed));
  }
  TellAll(found);
  return done;
}

void Forgotten(const void* begin, uint64_t bytes) {
  Checker& c = Checker::Get();
  const std::lock_guard lock(c.mutex);
  c.order.Forget(reinterpret_cast<uintptr_t>(begin), reinterpret_cast<uintptr_t>(begin) + bytes);
}

void Shared(const std::byte* local) {
  Checker& c = Checker::Get();
  const std::lock_guard lock(c.mutex);
  Block* block = c.blocks.Find(reinterpret_cast<uintptr_t>(local));
  if (block != nullptr) block->written.Set(0, block->bytes, true);
}

void Refused(const void* client, std::string_view what, std::string_view remedy) {
  Checker& c = Checker::Get();
  Finding finding{"refused address", what.substr(0, what.find(':')), std::string(what), std::string(remedy), ""};
  {
    const std::lock_guard lock(c.mutex);
    const auto at = reinterpret_cast<uintptr_t>(client);
    if (const Block* block = c.blocks.FindClient(at)) {
      finding.kind = "out of bounds";
      finding.more = block->Tell();
    } else if (const Gone* gone = c.blocks.FindGoneClient(at)) {
      finding.kind = "use after free";
      finding.more = gone->block.Tell() + gone->freed.Tell("freed");
    }
  }
  Tell(finding);
}

uint64_t Findings() { return Told(); }

}  // namespace npu::strict
