#include "device/figures/model.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>

#include "device/faults/faults.h"

namespace npu::device {
namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;
constexpr double kPowerTauS = 0.4, kChipTauS = 12, kMemoryTauS = 20, kFaultTauS = 1;
constexpr uint64_t kTurnLostNs = 1'000'000'000;              // who holds the turn so long has died with it
constexpr double kShareOf[kUnits] = {1.0, 0.7, 0.35, 0.25};  // of full power that a unit takes when it is all busy

void Add(WorkSum* sum, const WorkCounters& done) {
  for (size_t u = 0; u < kUnits; ++u) {
    sum->busy_ns[u] += done.busy_ns[u].load(kRelaxed);
    sum->tasks[u] += done.tasks[u].load(kRelaxed);
  }
  for (size_t f = 0; f < kFlows; ++f) sum->bytes[f] += done.bytes[f].load(kRelaxed);
  sum->any_ns += done.any_ns.load(kRelaxed);
  sum->failed += done.failed.load(kRelaxed);
}

void Add(WorkSum* sum, const ProcessWork& work, uint64_t now_ns) {
  Add(sum, work.done);
  const uint64_t since = work.now.running_since_ns.load(kRelaxed);
  if (work.now.running.load(kRelaxed) == 0 || since == 0 || since >= now_ns) return;
  sum->any_ns += now_ns - since;
  sum->busy_ns[work.now.running_unit.load(kRelaxed) % kUnits] += now_ns - since;
}

// Where a quantity is after `dt` seconds on its way to `target`.
double Approach(double from, double target, double dt_s, double tau_s) {
  return target + (from - target) * std::exp(-dt_s / tau_s);
}

uint32_t Permille(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : static_cast<uint32_t>(std::min<uint64_t>(part * 1000 / whole, 1000));
}

// The counter's growth since the last look. A process between two of its writes may make it look smaller for a moment.
uint64_t Grown(std::atomic<uint64_t>& seen, uint64_t now) {
  const uint64_t before = seen.load(kRelaxed);
  if (now <= before) return 0;
  seen.store(now, kRelaxed);
  return now - before;
}

void Heat(StateLayout& layout, CardBoard& board, uint32_t card, double dt_s) {
  const Profile* profile =
      FindProfile(std::string_view(layout.header.soc, strnlen(layout.header.soc, sizeof layout.header.soc)));
  if (profile == nullptr) return;
  double load = 0;
  for (size_t u = 0; u < kUnits; ++u) load += kShareOf[u] * board.use_permille[u].load(kRelaxed) / 1000.0;
  load = std::min(load, 1.0);
  const double idle_w = profile->idle_power_dw / 10.0, busy_w = profile->busy_power_dw / 10.0;
  const double idle_c = profile->idle_temp_c, busy_c = profile->busy_temp_c;
  double power = idle_w, chip = idle_c, memory = idle_c - 2;
  if (board.modelled.load(kRelaxed) != 0) {
    power = static_cast<double>(board.power_uw.load(kRelaxed)) / 1e6;
    chip = static_cast<double>(board.chip_uc.load(kRelaxed)) / 1e6;
    memory = static_cast<double>(board.hbm_uc.load(kRelaxed)) / 1e6;
  }
  power = Approach(power, idle_w + (busy_w - idle_w) * load, dt_s, kPowerTauS);
  const double heat = (power - idle_w) / (busy_w - idle_w);
  const FaultRecord* hot = ActiveFault(layout, FaultKind::kOverTemperature, static_cast<int>(card));
  const double asked = hot == nullptr ? 0 : static_cast<double>(hot->amount.load(kRelaxed));
  chip = hot == nullptr
             ? Approach(chip, idle_c + (busy_c - idle_c) * heat, dt_s, chip > kThrottleFromC ? kFaultTauS : kChipTauS)
             : Approach(chip, asked, dt_s, kFaultTauS);
  memory = Approach(memory, chip - 2, dt_s, hot == nullptr && memory < kThrottleFromC ? kMemoryTauS : kFaultTauS * 2);
  const auto micro = [](double value) { return static_cast<uint64_t>(std::clamp(value, 0.0, 2000.0) * 1e6); };
  board.power_uw.store(micro(power), kRelaxed);
  board.chip_uc.store(micro(chip), kRelaxed);
  board.hbm_uc.store(micro(memory), kRelaxed);
  board.modelled.store(1, std::memory_order_release);
}

}  // namespace

uint64_t MonotonicNs() {
  return static_cast<uint64_t>(std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count());
}

uint64_t NowNs(const StateLayout& layout) {
  const Clock& clock = layout.figures.clock;
  return clock.held.load(std::memory_order_acquire) != 0 ? clock.ns.load(kRelaxed) : MonotonicNs();
}

WorkSum SumOf(const ProcessWork& work, uint64_t now_ns) {
  WorkSum sum;
  Add(&sum, work, now_ns);
  return sum;
}

WorkSum SumOf(const StateLayout& layout, uint32_t card, uint64_t now_ns) {
  WorkSum sum;
  Add(&sum, layout.figures.boards[card].ended);
  for (uint32_t i = 0; i < SlotHigh(layout); ++i) {
    if (layout.slots[i].state.load(std::memory_order_acquire) == kSlotLive) Add(&sum, layout.work[i][card], now_ns);
  }
  return sum;
}

void MoveModel(StateLayout& layout, uint32_t card, uint64_t now_ns) {
  CardBoard& board = layout.figures.boards[card];
  const uint64_t moved = board.moved_ns.load(std::memory_order_acquire);
  if (now_ns < moved + kWindowNs) return;
  uint64_t turn = board.turn.load(std::memory_order_relaxed);
  const uint64_t real_now = MonotonicNs();
  if (turn != 0 && real_now < turn + kTurnLostNs) return;
  if (!board.turn.compare_exchange_strong(turn, real_now, std::memory_order_acquire)) return;
  if (board.moved_ns.load(kRelaxed) == moved) {
    const WorkSum sum = SumOf(layout, card, now_ns);
    const uint64_t window = moved == 0 ? 0 : now_ns - moved;
    uint64_t grown[kUnits], bytes = 0;
    for (size_t u = 0; u < kUnits; ++u) {
      grown[u] = Grown(board.seen_ns[u], sum.busy_ns[u]);
      board.use_permille[u].store(Permille(grown[u], window), kRelaxed);
    }
    board.use_core_permille.store(Permille(grown[0] + grown[1], window), kRelaxed);
    board.use_any_permille.store(Permille(Grown(board.seen_any_ns, sum.any_ns), window), kRelaxed);
    const double seconds = static_cast<double>(window) / 1e9;
    for (size_t f = 0; f < kFlows; ++f) {
      const uint64_t more = Grown(board.seen_bytes[f], sum.bytes[f]);
      bytes += more;
      board.rate_bytes[f].store(window == 0 ? 0 : static_cast<uint64_t>(static_cast<double>(more) / seconds), kRelaxed);
    }
    const double full = kBandwidthBytesPerS * seconds;
    board.use_bandwidth_permille.store(
        full > 0 ? static_cast<uint32_t>(std::min(1000.0, static_cast<double>(bytes) * 1000 / full)) : 0, kRelaxed);
    Heat(layout, board, card, seconds);
    board.moved_ns.store(now_ns, std::memory_order_release);
  }
  board.turn.store(0, std::memory_order_release);
}

double ThrottleFactor(const CardBoard& board) {
  const double chip = static_cast<double>(board.chip_uc.load(kRelaxed)) / 1e6;
  if (chip <= kThrottleFromC) return 1;
  return 1 + std::min(1.0, (chip - kThrottleFromC) / (kHottestC - kThrottleFromC)) * 1.5;
}

int CoreMhz(const CardBoard& board, const Profile& profile) {
  constexpr int kIdleMhz = 800;
  if (board.use_any_permille.load(kRelaxed) == 0) return std::min(kIdleMhz, profile.cube_mhz);
  return static_cast<int>(profile.cube_mhz / ThrottleFactor(board));
}

void KeepWorkOf(StateLayout& layout, uint32_t slot) {
  const uint32_t cards = std::min<uint32_t>(layout.header.cards, kMaxCards);
  for (uint32_t card = 0; card < cards; ++card) {
    ProcessWork& work = layout.work[slot][card];
    WorkCounters& ended = layout.figures.boards[card].ended;
    const auto move = [](std::atomic<uint64_t>& to, std::atomic<uint64_t>& from) {
      if (const uint64_t value = from.load(kRelaxed)) {
        to.fetch_add(value, kRelaxed);
        from.store(0, kRelaxed);
      }
    };
    for (size_t u = 0; u < kUnits; ++u) {
      move(ended.busy_ns[u], work.done.busy_ns[u]);
      move(ended.tasks[u], work.done.tasks[u]);
    }
    for (size_t f = 0; f < kFlows; ++f) move(ended.bytes[f], work.done.bytes[f]);
    move(ended.any_ns, work.done.any_ns);
    move(ended.failed, work.done.failed);
    // Untouched pages stay holes.
    if (work.now.running.load(kRelaxed) != 0 || work.now.free_bytes.load(kRelaxed) != 0 ||
        work.now.running_since_ns.load(kRelaxed) != 0) {
      std::memset(static_cast<void*>(&work), 0, sizeof work);
    }
  }
}

void ForgetFigures(StateLayout& layout) {
  for (uint32_t card = 0; card < kMaxCards; ++card) {
    CardBoard& board = layout.figures.boards[card];
    if (board.moved_ns.load(kRelaxed) != 0 || board.ended.any_ns.load(kRelaxed) != 0) {
      std::memset(static_cast<void*>(&board), 0, sizeof board);
    }
  }
}

}  // namespace npu::device
