#include "device/meters/meters.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <unordered_map>

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
    if (rank.ranks.load(kRelaxed) == 0) continue;
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

// What this process alone knows of a card.
struct alignas(64) CardNow {
  std::atomic<uint64_t> last_end{0};  // of a kernel
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

// Where the steps of one card begin and end.
struct StepClock {
  uint64_t anchor = 0;
  uint64_t began = 0;
  uint64_t waited = 0;
  std::unordered_map<uint64_t, int> seen;  // since the anchor came last

  static constexpr int kSettled = 3;  // so often another collective comes before the anchor is taken for gone
  static constexpr size_t kMostSeen = 4096;

  void Mark(uint64_t key, uint64_t now, RankMeter& rank) {
    if (key == anchor) {
      Record(now - began, rank);
    } else {
      if (anchor != 0 && seen.size() < kMostSeen && ++seen[key] < kSettled) return;
      anchor = key;
    }
    seen.clear();
    began = now;
    waited = 0;
  }

  void Record(uint64_t wall_ns, RankMeter& rank) {
    const uint64_t own_ns = wall_ns - std::min(wall_ns, waited);
    const uint64_t step = rank.steps.load(kRelaxed);
    const auto microseconds = [](uint64_t ns) { return static_cast<uint32_t>(std::min<uint64_t>(ns / 1000, ~0u)); };
    rank.recent_own_us[step % kRecentSteps].store(microseconds(own_ns), kRelaxed);
    rank.recent_wall_us[step % kRecentSteps].store(microseconds(wall_ns), kRelaxed);
    rank.own_ns.fetch_add(own_ns, kRelaxed);
    rank.wall_ns.fetch_add(wall_ns, kRelaxed);
    rank.steps.store(step + 1, std::memory_order_release);
  }
};
struct StepClocks {
  std::mutex mutex;
  StepClock by_card[kMaxCards];
};
StepClocks& Clocks() {
  static auto* clocks = new StepClocks;
  return *clocks;
}

RankMeter* RankOf(int card, uint32_t slot) {
  uint32_t now = 0;
  Meters* mine = slot != 0 ? Mine(&now) : nullptr;
  return mine != nullptr && now == slot ? &mine->ranks[card] : nullptr;
}

}  // namespace

void KernelEnded(int card, uint64_t now) {
  if (card >= 0 && card < kMaxCards) cards[card].last_end.store(now, kRelaxed);
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
    : card_(card), key_(key), slot_([&] {
        uint32_t slot = 0;
        const bool counted = card >= 0 && card < kMaxCards && ranks > 0 && Mine(&slot) != nullptr;
        return counted ? slot : 0;
      }()) {
  RankMeter* meter = RankOf(card_, slot_);
  if (meter == nullptr) return;
  if (ranks >= meter->ranks.load(kRelaxed)) {
    meter->rank.store(rank, kRelaxed);
    meter->ranks.store(ranks, kRelaxed);
  }
  meter->issued.fetch_add(1, kRelaxed);
}

void Collective::Begins() {
  if (began_ != 0) return;
  began_ = TicksNs();
  RankMeter* meter = RankOf(card_, slot_);
  if (meter == nullptr || key_ == 0) return;
  StepClocks& clocks = Clocks();
  const std::lock_guard lock(clocks.mutex);
  clocks.by_card[card_].Mark(key_, began_, *meter);
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
  if (began_ == 0) return;
  if (Joined()->Work(card_).now.running.load(kRelaxed) >= kOneKernel) return;
  const uint64_t now = TicksNs(), from = std::max(began_, cards[card_].last_end.load(kRelaxed));
  StepClocks& clocks = Clocks();
  const std::lock_guard lock(clocks.mutex);
  clocks.by_card[card_].waited += now - std::min(now, from);
}

}  // namespace meters
}  // namespace npu::device
