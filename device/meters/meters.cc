#include "device/meters/meters.h"

#include <algorithm>
#include <cstring>
#include <mutex>

#include "base/time/ticks.h"
#include "device/machine/machine.h"
#include "device/meters/layout.h"

namespace npu::device {
namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;

}  // namespace

void ClearMeters(Meters& meters) {
  if (meters.used.load(kRelaxed) == 0) return;
  const uint32_t high = std::min(meters.op_high.load(kRelaxed), kMaxOpMeters);
  meters.op_high.store(0, kRelaxed);
  for (uint32_t i = 0; i < high; ++i) {
    OpMeter& op = meters.ops[i];
    std::memset(op.name, 0, sizeof op.name);
    op.sum_ns.store(0, kRelaxed);
    for (auto& bucket : op.buckets) bucket.store(0, kRelaxed);
  }
  for (RankMeter& rank : meters.ranks) {
    if (rank.ranks.load(kRelaxed) == 0 && rank.steps.load(kRelaxed) == 0) continue;
    for (auto* word : {&rank.rank, &rank.ranks}) word->store(0, kRelaxed);
    for (auto* word : {&rank.issued, &rank.received, &rank.completed, &rank.steps, &rank.own_ns, &rank.wall_ns})
      word->store(0, kRelaxed);
    for (auto& us : rank.recent_own_us) us.store(0, kRelaxed);
    for (auto& us : rank.recent_wall_us) us.store(0, kRelaxed);
  }
  meters.used.store(0, kRelaxed);
}

namespace meters {
namespace {

bool IsCard(int card) { return card >= 0 && card < kMaxCards; }

// What this process alone knows of a card: its own work, as against waiting for others.
struct alignas(64) CardNow {
  std::atomic<uint64_t> busy_since_ns{0};  // 0: it has none
  std::atomic<uint64_t> busy_ns{0}, off_caller_ns{0};
  std::atomic<bool> updated{false};  // since the last product
};
CardNow cards[kMaxCards];

Meters* Mine(uint32_t* slot = nullptr) {
  const Machine* machine = Joined();
  if (machine == nullptr || machine->left()) return nullptr;
  if (slot != nullptr) *slot = machine->slot();
  Meters& mine = machine->shared().meters[SlotIndex(machine->slot())];
  if (mine.used.load(kRelaxed) == 0) mine.used.store(1, kRelaxed);
  return &mine;
}

// From an operator's key to its place, without a lock. A place is written once and holds for the slot it was made in.
struct OpTable {
  static constexpr uint32_t kEntries = 1024;
  struct Entry {
    std::atomic<const void*> key{nullptr};
    std::atomic<uint64_t> place{0};  // slot word << 16 | index + 1
  };
  Entry entries[kEntries];
  std::mutex mutex;
};
OpTable& Table() {
  static auto* table = new OpTable;
  return *table;
}

uint32_t NewPlace(Meters& mine, std::string_view name) {
  const uint32_t high = mine.op_high.load(kRelaxed);
  // A name that is there already, under another key.
  for (uint32_t i = 0; i < high && i < kMaxOpMeters; ++i) {
    if (name == std::string_view(mine.ops[i].name)) return i;
  }
  if (high >= kMaxOpMeters) return kMaxOpMeters - 1;
  if (high == kMaxOpMeters - 1) name = "other";
  char* to = mine.ops[high].name;
  const size_t length = std::min(name.size(), sizeof mine.ops[high].name - 1);
  std::memcpy(to, name.data(), length);
  mine.op_high.store(high + 1, std::memory_order_release);
  return high;
}

OpMeter* PlaceOf(Meters& mine, uint32_t slot, const void* key, std::string_view name) {
  OpTable& table = Table();
  const auto bits = reinterpret_cast<uintptr_t>(key);
  uint32_t at = static_cast<uint32_t>((bits >> 4) * 0x9E3779B97F4A7C15ull >> 54);
  for (uint32_t probe = 0; probe < 16; ++probe, at = (at + 1) % OpTable::kEntries) {
    OpTable::Entry& entry = table.entries[at];
    const void* there = entry.key.load(std::memory_order_acquire);
    const uint64_t place = entry.place.load(std::memory_order_acquire);
    if (there == key && place >> 16 == slot) return &mine.ops[(place & 0xFFFF) - 1];
    if (there != nullptr && there != key) continue;
    const std::lock_guard lock(table.mutex);
    if (entry.key.load(kRelaxed) != nullptr && entry.key.load(kRelaxed) != key) continue;
    const uint32_t index = NewPlace(mine, name);
    entry.place.store(uint64_t{slot} << 16 | (index + 1), std::memory_order_release);
    entry.key.store(key, std::memory_order_release);
    return &mine.ops[index];
  }
  return nullptr;
}

void Record(const StepClock::Step& done, RankMeter& rank) {
  const uint64_t step = rank.steps.load(kRelaxed);
  const auto microseconds = [](uint64_t ns) { return static_cast<uint32_t>(std::min<uint64_t>(ns / 1000, ~0u)); };
  rank.recent_own_us[step % kRecentSteps].store(microseconds(done.own_ns), kRelaxed);
  rank.recent_wall_us[step % kRecentSteps].store(microseconds(done.wall_ns), kRelaxed);
  rank.own_ns.fetch_add(done.own_ns, kRelaxed);
  rank.wall_ns.fetch_add(done.wall_ns, kRelaxed);
  rank.steps.store(step + 1, std::memory_order_release);
}

struct StepClocks {
  std::mutex mutex;
  StepClock by_card[kMaxCards];
};
StepClocks& Clocks() {
  static auto* clocks = new StepClocks;
  return *clocks;
}

// The threads of this process that are blocked in calls that wait for a card.
struct alignas(64) Waits {
  std::mutex mutex;
  int now = 0;
  uint64_t since_ns = 0, sum_ns = 0;  // while at least one is
};
Waits& WaitsFor(int card) {
  static auto* waits = new Waits[kMaxCards];
  return waits[card];
}

HostStamp StampHost(int card, uint64_t now) {
  Waits& waits = WaitsFor(card);
  const std::lock_guard lock(waits.mutex);
  return {now, waits.sum_ns + (waits.now > 0 ? now - std::min(now, waits.since_ns) : 0)};
}

CardStamp StampCard(int card, uint64_t now) {
  const CardNow& c = cards[card];
  const uint64_t since = c.busy_since_ns.load(kRelaxed);
  return {now, c.busy_ns.load(kRelaxed) + (since != 0 ? now - std::min(now, since) : 0), c.off_caller_ns.load(kRelaxed)};
}

RankMeter* RankOf(int card, uint32_t slot) {
  uint32_t now = 0;
  Meters* mine = slot != 0 ? Mine(&now) : nullptr;
  return mine != nullptr && now == slot ? &mine->ranks[card] : nullptr;
}

}  // namespace

void WorkBegins(int card, uint64_t now) {
  if (IsCard(card)) cards[card].busy_since_ns.store(now, kRelaxed);
}
uint64_t WorkingSince(int card) { return IsCard(card) ? cards[card].busy_since_ns.load(kRelaxed) : 0; }
void WorkEnds(int card, uint64_t since, uint64_t now) {
  if (!IsCard(card) || since == 0) return;
  CardNow& c = cards[card];
  uint64_t mine = since;
  c.busy_since_ns.compare_exchange_strong(mine, 0, kRelaxed);  // another stream may have begun meanwhile
  c.busy_ns.fetch_add(now - std::min(now, since), kRelaxed);
}
void WorkedOffCaller(int card, uint64_t ns) {
  if (IsCard(card)) cards[card].off_caller_ns.fetch_add(ns, kRelaxed);
}

void Updated(int card) {
  if (IsCard(card) && !cards[card].updated.load(kRelaxed)) cards[card].updated.store(true, kRelaxed);
}

void Multiplied(int card, uint64_t now) {
  if (!IsCard(card) || !cards[card].updated.load(kRelaxed) || !cards[card].updated.exchange(false, kRelaxed)) return;
  Meters* mine = Mine();
  if (mine == nullptr || mine->ranks[card].ranks.load(kRelaxed) > 0) return;
  constexpr uint64_t kUpdateKey = 1;
  StepClocks& clocks = Clocks();
  const std::lock_guard lock(clocks.mutex);
  if (const auto step = clocks.by_card[card].Marks(kUpdateKey, StampCard(card, now))) Record(*step, mine->ranks[card]);
}

HostWait::HostWait(int card) : card_(card) {
  if (!IsCard(card)) return;
  Waits& waits = WaitsFor(card);
  const std::lock_guard lock(waits.mutex);
  if (waits.now++ == 0) waits.since_ns = TicksNs();
}
HostWait::~HostWait() {
  if (!IsCard(card_)) return;
  Waits& waits = WaitsFor(card_);
  const std::lock_guard lock(waits.mutex);
  if (--waits.now > 0) return;
  const uint64_t now = TicksNs();
  waits.sum_ns += now - std::min(now, waits.since_ns);
}

void CountKernel(const void* key, std::string_view name, uint64_t ns) {
  uint32_t slot = 0;
  Meters* mine = Mine(&slot);
  if (mine == nullptr) return;
  OpMeter* meter = PlaceOf(*mine, slot, key, name);
  if (meter == nullptr) return;
  const auto bound = std::lower_bound(kMeterBoundsNs.begin(), kMeterBoundsNs.end(), ns);
  meter->buckets[bound - kMeterBoundsNs.begin()].fetch_add(1, kRelaxed);
  meter->sum_ns.fetch_add(ns, kRelaxed);
}

Collective::Collective(int card, uint32_t rank, uint32_t ranks, uint64_t key)
    : card_(card),
      key_(key),
      slot_([&] {
        uint32_t slot = 0;
        const bool counted = IsCard(card) && ranks > 0 && Mine(&slot) != nullptr;
        return counted ? slot : 0;
      }()),
      called_(slot_ != 0 && key != 0 ? StampHost(card, TicksNs()) : HostStamp()) {
  RankMeter* meter = RankOf(card_, slot_);
  if (meter == nullptr) return;
  if (ranks >= meter->ranks.load(kRelaxed)) {
    meter->rank.store(rank, kRelaxed);
    meter->ranks.store(ranks, kRelaxed);
  }
  meter->issued.fetch_add(1, kRelaxed);
}

void Collective::Begins() {
  if (began_) return;
  RankMeter* meter = RankOf(card_, slot_);
  if (meter == nullptr) return;
  began_ = true;
  StepClocks& clocks = Clocks();
  const std::lock_guard lock(clocks.mutex);
  if (const auto step = clocks.by_card[card_].Begins(key_, called_, StampCard(card_, TicksNs()))) Record(*step, *meter);
}

void Collective::Received() {
  if (received_) return;
  received_ = true;
  if (RankMeter* meter = RankOf(card_, slot_)) meter->received.fetch_add(1, kRelaxed);
}

Collective::~Collective() {
  RankMeter* meter = RankOf(card_, slot_);
  if (meter == nullptr) return;
  Received();
  meter->completed.fetch_add(1, kRelaxed);
  if (!began_) return;
  StepClocks& clocks = Clocks();
  const std::lock_guard lock(clocks.mutex);
  clocks.by_card[card_].Ends(StampCard(card_, TicksNs()));
}

}  // namespace meters
}  // namespace npu::device
