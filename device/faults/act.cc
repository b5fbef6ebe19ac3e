#include "device/faults/act.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "base/time/ticks.h"
#include "device/faults/faults.h"
#include "device/figures/model.h"
#include "gen/fault_errors.h"

namespace npu::device {

std::atomic<uint64_t (*)()> execute_limit_us{nullptr};

namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;
using std::chrono::milliseconds;
// Waits are looked at so often.
constexpr milliseconds kSlice(2);
// What a slow card owes is slept off in one piece of at least this; a shorter sleep would take longer than it should.
constexpr uint64_t kLeastSleepNs = 1'000'000;

std::string Injected(const FaultRecord& fault) {
  const FaultFacts* facts = FactsOf(static_cast<FaultKind>(fault.kind.load(kRelaxed)));
  return fmt::format("fault {} ({}) was injected", fault.id.load(kRelaxed), facts == nullptr ? "?" : facts->name);
}

constexpr const char* kRemedy = "anynpu faults lists what was injected, anynpu clear ends it.";

Status Hang(StateLayout& layout, int card, const TaskWork& work, const std::function<Status()>& give_up) {
  const auto began = std::chrono::steady_clock::now();
  const auto limit = execute_limit_us.load(kRelaxed);
  while (const FaultRecord* fault = FaultHere(layout, FaultKind::kHang, card)) {
    NPU_TRY(give_up());
    const uint64_t limit_us = limit == nullptr ? 0 : limit();
    if (limit_us != 0 && std::chrono::steady_clock::now() - began > std::chrono::microseconds(limit_us)) {
      return Error(fault::kAicoreTimeout, "Card {}: {} ran longer than its limit of {} us: {}.", card,
                   work.op == nullptr ? "a copy" : work.op, limit_us, Injected(*fault))
          .Remedy(kRemedy);
    }
    std::this_thread::sleep_for(kSlice);
  }
  return {};
}

Status Multi(const FaultRecord& fault, int card) {
  return Error(fault::kHbmEcc, "Card {}: HBM MULTI BIT ECC, Uncorrectable ECC, device_id={}, event_id=0x80e01801: {}.",
               card, card, Injected(fault))
      .Remedy(kRemedy);
}

// The first work after the error pays for it, once for each error.
Status EccError(StateLayout& layout, int card) {
  for (FaultRecord& fault : layout.figures.faults.faults) {
    if (fault.state.load(std::memory_order_acquire) != kFaultArmed) continue;
    if (fault.kind.load(kRelaxed) != static_cast<uint32_t>(FaultKind::kEccDouble) || !IsForThisProcess(fault)) continue;
    if (const int on = fault.card.load(kRelaxed); on >= 0 && on != card) continue;
    // An error in every card's memory fails work on each of them.
    const uint64_t bit = uint64_t{1} << static_cast<unsigned>(card);
    if (fault.card.load(kRelaxed) < 0 && fault.seen.load(kRelaxed) == 0 && fault.acted.load(kRelaxed) > 0) {
      if ((fault.told.fetch_or(bit, kRelaxed) & bit) == 0) return Multi(fault, card);
      continue;
    }
    for (uint64_t told = fault.amount.load(kRelaxed); told < fault.acted.load(kRelaxed);) {
      if (!fault.amount.compare_exchange_weak(told, told + 1, kRelaxed)) continue;
      return Multi(fault, card);
    }
  }
  return {};
}

Status Link(StateLayout& layout, int card, const std::function<Status()>& give_up) {
  if (const FaultRecord* fault = FaultHere(layout, FaultKind::kLinkDown, card)) {
    return Error(Code::kLinkError, "Card {}: its link is down: {}.", card, Injected(*fault)).Remedy(kRemedy);
  }
  while (const FaultRecord* fault = FaultHere(layout, FaultKind::kLinkFlapping, card)) {
    if (FlapIsUp(layout, *fault)) break;
    NPU_TRY(give_up());
    std::this_thread::sleep_for(kSlice);
  }
  for (FaultRecord& fault : layout.figures.faults.faults) {
    if (fault.state.load(std::memory_order_acquire) != kFaultArmed || !IsForThisProcess(fault)) continue;
    if (fault.kind.load(kRelaxed) != static_cast<uint32_t>(FaultKind::kPacketLoss)) continue;
    if (const int on = fault.card.load(kRelaxed); on >= 0 && on != card) continue;
    if (!Matches(fault)) continue;
    layout.figures.boards[card].packets_lost.fetch_add(1, kRelaxed);
    std::this_thread::sleep_for(milliseconds(std::min<uint64_t>(fault.amount.load(kRelaxed), 10'000)));
  }
  return {};
}

double SlowFactor(const StateLayout& layout, int card, const TaskWork& work) {
  if (work.unit == static_cast<uint8_t>(Unit::kLink)) return 1;
  double factor = ThrottleFactor(layout.figures.boards[card]);
  if (const FaultRecord* slow = FaultHere(layout, FaultKind::kSlow, card))
    factor *= slow->factor_permille.load(kRelaxed) / 1000.0;
  const bool over_pcie =
      work.unit == static_cast<uint8_t>(Unit::kMemory) &&
      (work.flow == static_cast<uint8_t>(Flow::kToDevice) || work.flow == static_cast<uint8_t>(Flow::kToHost));
  if (const FaultRecord* pcie = over_pcie ? FaultHere(layout, FaultKind::kPcieDegraded, card) : nullptr) {
    factor *= 16.0 / static_cast<double>(std::clamp<uint64_t>(pcie->amount.load(kRelaxed), 1, 16));
  }
  return factor;
}

}  // namespace

Status BeforeWork(Meter& meter, const TaskWork& work, const std::function<Status()>& give_up) {
  StateLayout* layout = meter.layout();
  if (layout == nullptr) return {};
  const int card = meter.card();
  CountWork(*layout, card);
  if (const FaultRecord* lost = FaultHere(*layout, FaultKind::kCardLost, card)) {
    return Error(fault::kLostHeartbeat, "Card {} is lost: {}.", card, Injected(*lost)).Remedy(kRemedy);
  }
  NPU_TRY(EccError(*layout, card));
  NPU_TRY(Hang(*layout, card, work, give_up));
  if (work.unit == static_cast<uint8_t>(Unit::kLink)) return Link(*layout, card, give_up);
  return {};
}

uint32_t AfterWork(Meter& meter, const TaskWork& work, uint64_t began, uint32_t planned_ns,
                   const std::function<Status()>& give_up) {
  StateLayout* layout = meter.layout();
  const double factor = layout == nullptr ? 1 : SlowFactor(*layout, meter.card(), work);
  if (factor <= 1) return planned_ns;
  const auto planned = static_cast<uint32_t>(std::min(planned_ns * factor, double{UINT32_MAX}));
  if (layout->figures.clock.held.load(kRelaxed) != 0) return planned;
  thread_local uint64_t owed_ns = 0;
  owed_ns += static_cast<uint64_t>(static_cast<double>(TicksNs() - began) * (factor - 1));
  while (owed_ns >= kLeastSleepNs && give_up().ok()) {
    const uint64_t piece = std::min<uint64_t>(owed_ns, 10'000'000), start = TicksNs();
    std::this_thread::sleep_for(std::chrono::nanoseconds(piece));
    owed_ns -= std::min(owed_ns, TicksNs() - start);
  }
  return planned;
}

Status CheckDriver(StateLayout& layout, int card, const char* function) {
  if (layout.figures.faults.armed.load(kRelaxed) == 0) return {};
  MeetFaults(layout, card);
  if (const FaultRecord* lost = FaultHere(layout, FaultKind::kCardLost, card)) {
    return Error(fault::kLostHeartbeat, "{}: card {} is lost: {}.", function, card, Injected(*lost)).Remedy(kRemedy);
  }
  if (const FaultRecord* late = FaultHere(layout, FaultKind::kDriverTimeout, card)) {
    const uint64_t ms = std::min<uint64_t>(late->amount.load(kRelaxed), 60'000);
    std::this_thread::sleep_for(milliseconds(ms));
    return Error(fault::kDriverTimeout, "{}: the driver of card {} did not answer within {} ms: {}.", function, card,
                 ms, Injected(*late))
        .Remedy(kRemedy);
  }
  return {};
}

uint64_t LeakedBytes(const StateLayout& layout, int card) {
  const FaultTable& table = layout.figures.faults;
  if (table.armed.load(kRelaxed) == 0) return 0;
  const uint64_t now = NowNs(layout);
  double bytes = 0;
  for (const FaultRecord& leak : table.faults) {
    if (leak.state.load(std::memory_order_acquire) != kFaultArmed || !Shows(leak, card) || !IsActive(leak)) continue;
    if (leak.kind.load(kRelaxed) != static_cast<uint32_t>(FaultKind::kHbmLeak)) continue;
    const uint64_t since = leak.since_ns.load(kRelaxed);
    bytes += static_cast<double>(now - std::min(now, since)) / 1e9 * static_cast<double>(leak.amount.load(kRelaxed));
  }
  const uint64_t most = layout.header.hbm_bytes - std::min(layout.header.hbm_bytes, layout.header.system_bytes);
  return bytes >= static_cast<double>(most) ? most : static_cast<uint64_t>(bytes);
}

uint64_t LargestBlock(const StateLayout& layout, int card, uint64_t free_bytes) {
  const FaultRecord* pieces = ActiveFault(layout, FaultKind::kHbmFragmentation, card);
  if (pieces == nullptr) return free_bytes;
  return free_bytes / 100 * (100 - std::min<uint64_t>(pieces->amount.load(kRelaxed), 99));
}

}  // namespace npu::device
