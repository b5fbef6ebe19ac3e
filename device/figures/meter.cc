#include "device/figures/meter.h"

#include <algorithm>
#include <mutex>

#include "base/time/ticks.h"
#include "device/figures/model.h"
#include "device/meters/meters.h"

namespace npu::device {
namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;
constexpr uint64_t kMoveEveryNs = kWindowNs;

void Grow(std::atomic<uint64_t>& counter, uint64_t by) { counter.fetch_add(by, kRelaxed); }

// A task that computes: collectives wait for peers, copies have no operator.
bool IsKernel(const TaskWork& work) { return work.op != nullptr && work.unit != static_cast<uint8_t>(Unit::kLink); }

// The card's own work, as against waiting for others.
bool IsOwn(const TaskWork& work) { return work.unit != static_cast<uint8_t>(Unit::kLink); }

// What it adds to WorkNow::running.
uint64_t Running(const TaskWork& work) { return IsOwn(work) ? kOneOwn + 1 : 1; }

}  // namespace

Meter& Meter::Of(int card) {
  static std::mutex mutex;
  static std::array<std::atomic<Meter*>, kMaxCards> meters{};
  std::atomic<Meter*>& place = meters[static_cast<size_t>(std::clamp(card, 0, kMaxCards - 1))];
  if (Meter* meter = place.load(std::memory_order_acquire)) return *meter;
  const std::lock_guard lock(mutex);
  if (place.load(kRelaxed) == nullptr) place.store(new Meter(card), std::memory_order_release);  // never freed
  return *place.load(kRelaxed);
}

StateLayout* Meter::layout() {
  Machine* machine = machine_.load(kRelaxed);
  if (machine == nullptr) {
    machine = Joined();
    if (machine == nullptr || card_ >= machine->cards()) return nullptr;
    machine_.store(machine, kRelaxed);
  }
  return machine->left() ? nullptr : &machine->shared();
}

ProcessWork& Meter::Work() {
  static ProcessWork nowhere{};
  return layout() == nullptr ? nowhere : machine_.load(kRelaxed)->Work(card_);
}

// An entry holds the address of the name, which is static and below 2^61, above two bits of unit and one of update.
Meter::Kind Meter::KindOf(const TaskWork& work) {
  if (work.op == nullptr || work.unit != static_cast<uint8_t>(Unit::kVector))
    return {static_cast<uint8_t>(work.unit % kUnits), false};
  const auto key = reinterpret_cast<uintptr_t>(work.op) << 3;
  std::atomic<uintptr_t>& entry = kinds_[static_cast<size_t>(key * 0x9E3779B97F4A7C15ull >> 52)];
  uintptr_t seen = entry.load(kRelaxed);
  if (seen >> 3 << 3 != key) {
    seen = key | static_cast<uintptr_t>(UnitOfFunction(work.op)) | (IsUpdate(work.op) ? 4 : 0);
    entry.store(seen, kRelaxed);  // two names may share a place: they take turns
  }
  return {static_cast<uint8_t>(seen & 3), (seen & 4) != 0};
}

uint64_t Meter::Begin(const TaskWork& work) {
  ProcessWork& mine = Work();
  const uint64_t now = TicksNs();
  const uint64_t before = mine.now.running.fetch_add(Running(work), std::memory_order_acquire);
  if (IsOwn(work) && before < kOneOwn) meters::WorkBegins(card_, now);
  if (before == 0) {
    if (now - moved_.load(kRelaxed) > kMoveEveryNs) monotonic_.store(MonotonicNs() - now, kRelaxed);
    active_since_.store(now, kRelaxed);
    mine.now.running_unit.store(KindOf(work).unit, kRelaxed);
    mine.now.running_since_ns.store(now + monotonic_.load(kRelaxed), kRelaxed);
  }
  return now;
}

void Meter::End(const TaskWork& work, uint64_t began, const Ended& how) {
  ProcessWork& mine = Work();
  const uint64_t now = TicksNs();
  StateLayout* state = layout();
  const bool held = state != nullptr && state->figures.clock.held.load(kRelaxed) != 0;
  const uint64_t ns = held ? how.planned_ns : now - began;
  const uint64_t since = IsOwn(work) ? meters::WorkingSince(card_) : 0;  // nobody writes it before `running` falls
  const uint64_t before = mine.now.running.fetch_sub(Running(work), std::memory_order_release);
  if (before == Running(work)) Grow(mine.done.any_ns, held ? ns : now - std::min(now, active_since_.load(kRelaxed)));
  if (before == 0) mine.now.running.store(0, kRelaxed);  // it began in another life of the slot
  if (IsOwn(work)) {
    if (before < 2 * kOneOwn) meters::WorkEnds(card_, since, now);
    if (how.off_caller) meters::WorkedOffCaller(card_, now - began);
  }
  const auto [unit, update] = KindOf(work);
  if (how.done && IsKernel(work)) {
    meters::CountKernel(work.op, work.op, ns);
    if (update) meters::Updated(card_);
    if (unit == static_cast<uint8_t>(Unit::kCube)) meters::Multiplied(card_, now);
  }
  Grow(mine.done.busy_ns[unit], ns);
  if (how.done) {
    Grow(mine.done.tasks[unit], 1);
    if (how.failed) Grow(mine.done.failed, 1);
    if (work.bytes > 0) Grow(mine.done.bytes[work.flow % kFlows], work.bytes);
  }
  uint64_t moved = moved_.load(kRelaxed);
  if (state != nullptr && now - moved > kMoveEveryNs && moved_.compare_exchange_strong(moved, now, kRelaxed)) {
    MoveModel(*state, static_cast<uint32_t>(card_), NowNs(*state));
  }
}

void Meter::Received(uint64_t bytes) {
  if (bytes > 0) Grow(Work().done.bytes[static_cast<size_t>(Flow::kLinkReceive)], bytes);
}

}  // namespace npu::device
